"""The block pool: prefix cache, eviction, counts that never drift."""

from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.simulator.kv import Block, KvPool


def fill(pool: KvPool, tokens: list[int]) -> tuple[list[Block], int]:
    held: list[Block] = []
    blocks = -(-len(tokens) // pool.block_size)
    assert pool.take(blocks)
    return held, pool.name_blocks(tokens, held, blocks)


def test_a_prefix_is_found_again_block_by_block() -> None:
    pool = KvPool(10, 4)
    held, owned = fill(pool, list(range(10)))
    assert (len(held), owned) == (2, 1)
    assert len(pool.cached_prefix(list(range(10)), 9)) == 2
    assert len(pool.cached_prefix([0, 1, 2, 3, 9, 9, 9, 9], 7)) == 1
    assert pool.cached_prefix([4, 5, 6, 7], 4) == []  # the same tokens elsewhere are another block
    pool.release(held, owned)
    assert pool.usage == 0.0
    assert len(pool.cached_prefix(list(range(10)), 9)) == 2


def test_the_last_blocks_of_the_oldest_request_go_first() -> None:
    pool = KvPool(4, 4)
    first = fill(pool, [1] * 8)
    pool.release(*first)
    second = fill(pool, [2] * 8)
    pool.release(*second)
    assert pool.take(1)
    assert len(pool.cached_prefix([1] * 8, 8)) == 1
    assert len(pool.cached_prefix([2] * 8, 8)) == 2


def test_what_is_held_is_never_evicted() -> None:
    pool = KvPool(4, 4)
    held, _ = fill(pool, [1] * 8)
    assert not pool.take(3)
    assert pool.take(2)
    assert pool.cached_prefix([1] * 8, 8) == held
    assert not pool.reset_cache()


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=20), max_size=20))
@settings(max_examples=60, deadline=None)
def test_every_block_is_accounted_for(texts: list[list[int]]) -> None:
    pool = KvPool(12, 2)
    running: list[tuple[list[Block], int]] = []
    for text in texts:
        hits = pool.cached_prefix(text, len(text) - 1)
        pool.hold(hits)
        missing = -(-len(text) // 2) - len(hits)
        if not pool.take(missing):
            pool.release(hits, 0)
            if running:
                pool.release(*running.pop(0))
            continue
        running.append((hits, pool.name_blocks(text, hits, missing)))
        in_use = {id(block) for held, _ in running for block in held}
        assert pool.free_blocks() + len(in_use) + sum(owned for _, owned in running) == 12
    for held, owned in running:
        pool.release(held, owned)
    assert pool.free_blocks() == 12
    assert pool.reset_cache()
