"""Which finished work is let go; pure."""

from __future__ import annotations

from collections.abc import Iterable


def expired(
    finished: Iterable[tuple[str, float]], *, keep_last: int | None, ttl: float | None, now: float
) -> list[str]:
    """Ids of `finished` (id and end, in epoch seconds) that neither `keep_last` nor `ttl` keeps, oldest first.

    Both set: what exceeds either is let go. None set: everything is kept.
    """
    oldest_first = sorted(finished, key=lambda item: (item[1], item[0]))
    surplus = len(oldest_first) - keep_last if keep_last is not None else 0
    return [id for n, (id, ended) in enumerate(oldest_first) if n < surplus or (ttl is not None and ended + ttl <= now)]
