"""KV blocks: a pool with prefix cache, freed blocks kept until their room is needed (least recently used first)."""

from collections import OrderedDict
from collections.abc import Sequence


class Block:
    """One full block of known content; its content includes all blocks before it."""

    __slots__ = ("content", "key", "users")

    def __init__(self, content: int, key: tuple[int, tuple[int, ...]]) -> None:
        self.content = content
        """A number that stands for this block and all before it."""
        self.key = key
        self.users = 1


class KvPool:
    """`total` blocks of `block_size` tokens. Requests hold full known blocks by reference and the rest by count."""

    def __init__(self, total: int, block_size: int, *, caching: bool = True) -> None:
        self.total = total
        self.block_size = block_size
        self._caching = caching
        self._empty = total
        self._known: dict[tuple[int, tuple[int, ...]], Block] = {}
        self._idle: OrderedDict[tuple[int, tuple[int, ...]], Block] = OrderedDict()
        self._contents = 0

    @property
    def usage(self) -> float:
        """Share of blocks that a request holds: 0 to 1 (cached blocks nobody holds count as free)."""
        return 1.0 - (self._empty + len(self._idle)) / self.total

    def free_blocks(self) -> int:
        """Blocks that can be had at once."""
        return self._empty + len(self._idle)

    def cached_prefix(self, tokens: Sequence[int], limit: int) -> list[Block]:
        """The cached blocks that hold the beginning of `tokens`, at most `limit` tokens; nothing is taken yet."""
        found: list[Block] = []
        if not self._caching:
            return found
        size, parent = self.block_size, 0
        for end in range(size, min(len(tokens), limit) + 1, size):
            block = self._known.get((parent, tuple(tokens[end - size : end])))
            if block is None:
                break
            found.append(block)
            parent = block.content
        return found

    def hold(self, blocks: Sequence[Block]) -> None:
        """One more user for each of the blocks."""
        for block in blocks:
            if block.users == 0:
                del self._idle[block.key]
            block.users += 1

    def take(self, count: int) -> bool:
        """True if `count` blocks were free and are now taken; older cached content makes room. Else nothing changes."""
        if count > self._empty + len(self._idle):
            return False
        while self._empty < count:
            _, evicted = self._idle.popitem(last=False)
            del self._known[evicted.key]
            self._empty += 1
        self._empty -= count
        return True

    def name_blocks(self, tokens: Sequence[int], held: list[Block], owned: int) -> int:
        """Blocks left without a name of `owned`, after the full blocks of `tokens` beyond `held` got theirs.

        A block whose content is known already keeps no name (vLLM holds duplicates too until they are freed).
        """
        if not self._caching:
            return owned
        size, known = self.block_size, self._known
        parent = held[-1].content if held else 0
        first = len(held) * size
        for start in range(first, min(len(tokens) - size + 1, first + owned * size), size):
            key = (parent, tuple(tokens[start : start + size]))
            if key in known:
                break
            self._contents += 1
            parent = self._contents
            block = Block(parent, key)
            known[key] = block
            held.append(block)
            owned -= 1
        return owned

    def release(self, held: Sequence[Block], owned: int) -> None:
        """The blocks are free; what is known of the last ones goes first when room is needed."""
        self._empty += owned
        for block in reversed(held):
            block.users -= 1
            if block.users == 0:
                self._idle[block.key] = block

    def reset_cache(self) -> bool:
        """True if all cached content was dropped; False while a request holds blocks (as vLLM answers)."""
        if self.free_blocks() < self.total:
            return False
        self._empty = self.total
        self._idle.clear()
        self._known.clear()
        return True
