"""A stateless, reversible tokenizer: ids are the pieces' own bytes, so every process and profile agrees on them."""

import codecs
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

END_OF_TEXT = 0
IM_START = 1
IM_END = 2
EOS = IM_END
SPECIAL_TEXT = {"<|endoftext|>": END_OF_TEXT, "<|im_start|>": IM_START, "<|im_end|>": IM_END}

_FIRST_PIECE_ID = 16
_MAX_PIECE_BYTES = 6
# Ids of pieces of n bytes start here: pieces are numbered by length, then by value (bijective, no gaps).
_OFFSETS = [_FIRST_PIECE_ID + sum(1 << 8 * k for k in range(1, n)) for n in range(_MAX_PIECE_BYTES + 2)]
VOCAB_SIZE = _OFFSETS[_MAX_PIECE_BYTES + 1]

_SPECIAL = re.compile("|".join(re.escape(text) for text in SPECIAL_TEXT))
# About 4 characters a token on English and on code: a word's start takes its space along, an indent its newline.
_PIECE = re.compile(
    r" ?[A-Za-z]{1,5}| ?[0-9]{1,3}|\n {0,5}| {1,6}|[^\x00-\x7f]{1,2}|[()\[\]{}:,;=.\"'`]{1,2}|.", re.DOTALL
)
_SPECIAL_BY_ID = {token: text for text, token in SPECIAL_TEXT.items()}


def _id_of(piece: bytes) -> int:
    return _OFFSETS[len(piece)] + int.from_bytes(piece, "big")


@lru_cache(maxsize=65536)
def _ids_of_piece(piece: str) -> tuple[int, ...]:
    data = piece.encode("utf-8", "replace")
    return tuple(_id_of(data[i : i + _MAX_PIECE_BYTES]) for i in range(0, len(data), _MAX_PIECE_BYTES))


@lru_cache(maxsize=65536)
def token_bytes(token: int) -> bytes:
    """The bytes of one token, b"" for a special one; ValueError for an id outside the vocabulary."""
    if 0 <= token < _FIRST_PIECE_ID:
        return b""
    if not 0 <= token < VOCAB_SIZE:
        raise ValueError(f"token id {token} is outside the vocabulary of {VOCAB_SIZE} ids")
    length = next(n for n in range(1, _MAX_PIECE_BYTES + 1) if token < _OFFSETS[n + 1])
    return (token - _OFFSETS[length]).to_bytes(length, "big")


def _encode_plain(text: str, out: list[int]) -> None:
    for piece in _PIECE.findall(text):
        out.extend(_ids_of_piece(piece))


def encode(text: str) -> list[int]:
    """Token ids of a text; the special tokens' own spelling becomes their id, as a chat template needs it."""
    ids: list[int] = []
    at = 0
    for match in _SPECIAL.finditer(text):
        _encode_plain(text[at : match.start()], ids)
        ids.append(SPECIAL_TEXT[match.group()])
        at = match.end()
    _encode_plain(text[at:], ids)
    return ids


def decode(ids: Iterable[int], *, skip_special: bool = True) -> str:
    """The text of token ids; broken UTF-8 becomes U+FFFD. ValueError for an id outside the vocabulary."""
    if skip_special:
        return b"".join(map(token_bytes, ids)).decode("utf-8", "replace")
    return b"".join(_SPECIAL_BY_ID.get(i, "").encode() or token_bytes(i) for i in ids).decode("utf-8", "replace")


class IncrementalDecoder:
    """Text as tokens come: an unfinished character is held back until its last byte is there."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, ids: Iterable[int], *, final: bool = False) -> str:
        """The text that is complete by now; `final` gives out what is held back as U+FFFD."""
        return self._decoder.decode(b"".join(map(token_bytes, ids)), final)


def render_chat(messages: Sequence[tuple[str, str]], *, add_generation_prompt: bool = True) -> str:
    """The ChatML text of (role, content) messages, ending with the assistant's header."""
    body = "".join(f"<|im_start|>{role}\n{content}<|im_end|>\n" for role, content in messages)
    return body + ("<|im_start|>assistant\n" if add_generation_prompt else "")
