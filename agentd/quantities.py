"""Durations and sizes as people write them; pure."""

from __future__ import annotations

import math
import re

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b?)", re.ASCII | re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_LIMIT = 1 << 62


def parse_duration(value: object) -> float:
    """Seconds of ``250ms``, ``5s``, ``5m``, ``2h``, ``1d``, a sequence of those (``1h30m``) or a bare number.

    Raises ValueError saying what was expected; a bool is no number and ``1:30`` is no duration.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"expected a duration such as 250ms, 5s, 5m, 2h or 1d, got {value!r}")
    if isinstance(value, str):
        text = value.strip()
        if text.isascii() and text.isdigit() and len(text) < 16:
            return float(text)
        parts = _DURATION.findall(text)
        if not parts or "".join(n + u for n, u in parts) != text:
            raise ValueError(f"expected a duration such as 250ms, 5s, 5m, 2h or 1d, got {value!r}")
        seconds = sum(float(n) * _SECONDS[u] for n, u in parts)
    else:
        seconds = float(value)
    if not math.isfinite(seconds) or seconds < 0 or seconds > _LIMIT:
        raise ValueError(f"expected a duration of zero or more, got {value!r}")
    return seconds


def parse_size(value: object) -> int:
    """Bytes of ``512M``, ``1.5GiB``, ``64KB`` or a bare integer; units are powers of 1024. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"expected a size such as 512M, 1.5GiB or a number of bytes, got {value!r}")
    if isinstance(value, int):
        size = value
    else:
        found = _SIZE.fullmatch(value.strip())
        if not found or len(value) > 40:
            raise ValueError(f"expected a size such as 512M, 1.5GiB or a number of bytes, got {value!r}")
        unit = found.group(2).lower().rstrip("b").rstrip("i")
        count = float(found.group(1)) if "." in found.group(1) else int(found.group(1))
        size = int(count * 1024 ** _POWERS[unit])
    if size < 0 or size > _LIMIT:
        raise ValueError(f"expected a size of zero or more bytes, got {value!r}")
    return size
