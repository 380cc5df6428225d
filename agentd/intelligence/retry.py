"""When to try again: Retry-After in all its forms, and a jittered backoff. Pure; time and chance are given."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

RETRIES = 2
"""How often a call is repeated at one endpoint."""
MAX_WAIT = 30.0
"""Seconds. A provider that asks for a longer wait is left for the next endpoint at once."""

_BASE = 0.5
_NUMBER = re.compile(r"^[0-9]{1,15}(\.[0-9]{1,9})?$", re.ASCII)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the provider asks to wait, None when it asks for nothing that can be understood.

    `headers` have lower-case names; `now` is seconds since the epoch. ``retry-after-ms`` beats ``retry-after``, which
    is seconds or one of the three date forms of RFC 9110; a header sent twice counts with its larger number. A date is
    rounded up to whole seconds, since it was rounded down when it was made; a past one is 0. What is negative, empty or
    no number is ignored.
    """
    if (ms := _number(headers.get("retry-after-ms", ""))) is not None:
        return ms / 1000
    value = headers.get("retry-after", "").strip()
    numbers = [_number(part) for part in value.split(",")]
    known = [n for n in numbers if n is not None]
    if known and len(known) == len(numbers):
        return max(known)
    when = _date(value)
    return None if when is None else float(max(0, math.ceil(when - now)))


def _number(text: str) -> float | None:
    text = text.strip()
    return float(text) if _NUMBER.match(text) else None


def _date(text: str) -> float | None:
    """Seconds since the epoch of an HTTP date: IMF-fixdate, RFC 850 or asctime, always GMT."""
    if not any(c.isdigit() for c in text) or ":" not in text:
        return None
    try:
        when = parsedate_to_datetime(text)
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        pass
    try:  # asctime
        return datetime.strptime(" ".join(text.split()), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        return None


def delay(attempt: int, asked: float | None, chance: float) -> float:
    """Seconds to wait after failed `attempt` (1 is the first); `chance` is in [0, 1).

    What the provider asked for is waited in full and a tenth more at most, so that a fleet does not come back in one
    instant; otherwise 0.5 s, doubling, spread by a quarter both ways: each wait is longer than the one before.
    """
    if asked is not None:
        return asked + min(asked * 0.1, 1.0) * chance
    return float(_BASE * 2 ** (attempt - 1) * (0.75 + chance / 2))
