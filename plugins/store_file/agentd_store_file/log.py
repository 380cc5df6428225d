"""Whether a write-ahead log lost commits in its middle; pure.

SQLite takes a log up to the first frame whose checksum is wrong, without a word: that is how a torn last transaction is
dropped, and how damage in the middle would drop everything behind it. Each commit was flushed before the next began,
so behind the first bad frame a crash leaves one commit at most; two of them mean damage.
"""

from __future__ import annotations

import struct

_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = 0x377F0682  # the last bit says in which byte order the checksums count
_MASK = 0xFFFFFFFF


def is_damaged(log: bytes) -> bool:
    """Judge the bytes of a log that was open when its writer died."""
    if len(log) < _HEADER.size:
        return True
    magic, _, page, _, salt1, salt2, *stored = _HEADER.unpack_from(log)
    order = ">" if magic & 1 else "<"
    sums = _checksum(order, log[:24], (0, 0))
    if magic & ~1 != _MAGIC or list(sums) != stored:
        return True
    size = _FRAME.size + page
    frames = range(_HEADER.size, len(log) - size + 1, size)
    for number, at in enumerate(frames):
        _, _, *salts, sum1, sum2 = _FRAME.unpack_from(log, at)
        sums = _checksum(order, log[at + _FRAME.size : at + size], _checksum(order, log[at : at + 8], sums))
        if salts != [salt1, salt2] or sums != (sum1, sum2):
            return sum(_is_commit(log, later, salt1, salt2) for later in frames[number + 1 :]) > 1
    return False


def _is_commit(log: bytes, at: int, salt1: int, salt2: int) -> bool:
    _, size_after, *salts = _FRAME.unpack_from(log, at)[:4]
    return size_after != 0 and salts == [salt1, salt2]


def _checksum(order: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = iter(struct.unpack(f"{order}{len(data) // 4}I", data))
    for even, odd in zip(words, words, strict=True):
        first = (first + even + second) & _MASK
        second = (second + odd + first) & _MASK
    return first, second
