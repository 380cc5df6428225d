"""Any value as one physical line of valid JSON.

Lines are raw UTF-8, compact. What JSON lets stand but a terminal or a line reader acts upon (U+2028, U+2029, the C1
controls) is escaped, a lone surrogate, which is no character and breaks strict readers, becomes U+FFFD.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from agentd.errors import AgentdError

MAX_LINE = 1 << 20
"""Bytes of one line, its newline included."""
_KEEP = 16 << 10
_DEPTH = 32
_MARK = "…[{} more characters]"
_UNSAFE = re.compile("[\x80-\x9f\u2028\u2029\ud800-\udfff]")


def error_data(err: BaseException | Mapping[str, Any] | str) -> dict[str, str]:
    """`err` as ``{type, message}``: the type is an agentd error's code, or the name of any other exception."""
    if isinstance(err, AgentdError):
        return {"type": err.code, "message": err.message}
    if isinstance(err, BaseException):
        return {"type": type(err).__name__, "message": str(err)}
    if isinstance(err, Mapping):
        return {"type": str(err.get("type") or err.get("code") or "error"), "message": str(err.get("message", ""))}
    return {"type": "error", "message": str(err)}


def members(values: Mapping[str, Any]) -> str:
    """`values` as the inside of a JSON object, without its braces; never raises."""
    if not values:
        return ""
    try:
        text = _encode(values)[1:-1]
    except (TypeError, ValueError, RecursionError):
        # A key that is no string, NaN, a cycle, or a depth no reader would follow.
        text = _encode(tame(values))[1:-1]
    return text if text.isascii() or not _UNSAFE.search(text) else text.translate(_SAFE)


def tame(value: Any, depth: int = 0) -> Any:
    """`value` rebuilt of plain JSON types."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if depth >= _DEPTH:
        return "…"
    if isinstance(value, Mapping):
        return {str(k): tame(v, depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [tame(v, depth + 1) for v in value]
    return tame(_plain(value), depth + 1)


def shorten(value: Any, keep: int = _KEEP, depth: int = 0) -> Any:
    """`value` with its long strings cut to `keep` characters and a mark, and its long lists and objects likewise."""
    if isinstance(value, str):
        return value if len(value) <= keep else value[:keep] + _MARK.format(len(value) - keep)
    if isinstance(value, Mapping):
        few = list(value.items())[:64] if depth else list(value.items())
        cut = {k: shorten(v, keep // 4 if depth else keep, depth + 1) for k, v in few}
        return cut if len(few) == len(value) else {**cut, "…": f"{len(value) - len(few)} more"}
    if isinstance(value, list | tuple):
        items = [shorten(v, keep // 4, depth + 1) for v in value[:16]]
        return items if len(items) == len(value) else [*items, f"…{len(value) - len(items)} more"]
    return value


def _plain(value: Any) -> Any:
    """For what JSON does not know. Never a `repr`: it may hold a secret."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    if isinstance(value, BaseException):
        return error_data(value)
    if isinstance(value, datetime.date | PurePath):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    return f"<{type(value).__name__}>"


_SAFE = {
    **{code: f"\\u{code:04x}" for code in (*range(0x80, 0xA0), 0x2028, 0x2029)},
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),
}
# A cycle meets the recursion limit all the same; not to look for one halves the cost of a line.
_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, separators=(",", ":"), allow_nan=False, default=_plain
).encode
