"""What a call is, when it is the same call again, and the key under which it is done once. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

LOOP = 4
"""The same call this many times in one turn ends it."""


def canonical(value: Any) -> bytes:
    """`value` as JSON that is equal for equal values: keys sorted, no spaces, raw UTF-8."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "surrogatepass")


def digest(args: dict[str, Any]) -> str:
    """The SHA-256 of the canonical arguments, in hex."""
    return hashlib.sha256(canonical(args)).hexdigest()


def key(scope: Iterable[str], tool: str, args: dict[str, Any], before: int) -> str:
    """The idempotency key of a call: stable over retries, whatever order the model makes its calls in.

    `scope` is run and step (or conversation and turn); `before` counts the identical calls made earlier.
    """
    return hashlib.sha256(canonical([*scope, tool, args, before])).hexdigest()


class Tally:
    """How often each call was made in this turn."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, bytes]] = Counter()

    def add(self, tool: str, args: dict[str, Any] | None) -> int:
        """Count a call of `tool`; how many identical ones came before it. None stands for unreadable arguments."""
        same = (tool, canonical(args))
        before = self._seen[same]
        self._seen[same] += 1
        return before
