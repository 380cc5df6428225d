"""Fresh ids: ULIDs, so that ids sort by time."""

from __future__ import annotations


def new_id() -> str:
    """A new id of an event, and so of its run."""
    from ulid import ULID

    return str(ULID())
