"""What every dialect shares: reading what models send in shapes they should not, writing what strict servers take.

Pure. The rules come from many providers' habits: arguments as an object, as a string, encoded twice, empty or cut;
counts as text, floats, negative or absent; bodies with a byte order mark or a wrong charset label.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from typing import Any

from agentd.ports.model import Usage

Json = Any

_FENCE = re.compile(r"^```[a-zA-Z0-9]*[ \t]*\r?\n(.*?)\r?\n?```$", re.DOTALL)
_COUNT = re.compile(r"^[0-9]{1,18}$", re.ASCII)
_LAYERS = 3
"""How often arguments may be encoded over each other; more is no accident of a gateway any more."""


def to_bytes(value: Json) -> bytes:
    """`value` as compact raw UTF-8 JSON. Halves of a surrogate pair become U+FFFD: strict servers refuse them."""
    return sound(json.dumps(value, ensure_ascii=False, separators=(",", ":"))).encode()


def sound(text: str) -> str:
    """`text` as something UTF-8 can hold: pairs of surrogates joined, lone ones replaced by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def decode(body: bytes) -> str:
    """`body` as text: UTF-8 whatever its label says, a byte order mark dropped. Raises ValueError."""
    return body.decode("utf-8-sig")


def parse(text: str) -> Json:
    """`text` as JSON. Raises ValueError, also for nesting no message has."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parse_or_none(text: str) -> Json:
    """`text` as JSON, None where it is none."""
    try:
        return parse(text)
    except ValueError:
        return None


def read_arguments(value: Json) -> tuple[dict[str, Any] | None, str | None]:
    """The arguments of a tool call as ``(object, None)``, or ``(None, why not)``.

    An object, a string that holds one, and a string that holds such a string are the same; nothing, null and an
    empty string are no arguments. A repeated key counts with its last value, as in every JSON reader. A fence around
    the object, a byte order mark and raw line breaks in strings are forgiven; anything that would need a guess is not.
    """
    for _ in range(_LAYERS + 1):
        if value is None:
            return {}, None
        if isinstance(value, dict):
            return _finite(value)
        if not isinstance(value, str):
            return None, f"expected a JSON object, got {_kind(value)}"
        text = value.strip().removeprefix("\ufeff").strip()
        if fenced := _FENCE.match(text):
            text = fenced[1]
        if not text:
            return {}, None
        try:
            value = json.loads(text, strict=False, parse_constant=_refuse)
        except json.JSONDecodeError as e:
            return None, f"not valid JSON: {e.msg} at character {e.pos}"
        except (ValueError, RecursionError) as e:
            return None, f"not valid JSON: {e}"
    return None, "JSON inside JSON inside JSON: expected an object"


def _refuse(word: str) -> Json:
    raise ValueError(f"{word} is no JSON number")


def _finite(value: dict[str, Any]) -> tuple[dict[str, Any] | None, str | None]:
    """`value` unless it holds what cannot be sent on: 1e999 reads as infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return None, "a number in it is too large, or it is nested too deeply"
    return value, None


def _kind(value: Json) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return {list: "an array", int: "a number", float: "a number"}.get(type(value), "something else")


def count(value: Json) -> int | None:
    """A count of tokens, None where there is none: negative, not finite, text that is no number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value >= 0 else None
    if isinstance(value, str):
        return int(value.strip()) if _COUNT.match(value.strip()) else None
    return value if isinstance(value, int) and value >= 0 else None


def usage_of(tokens_in: int | None, tokens_out: int | None, total: int | None = None) -> Usage:
    """Usage from what was reported; a total fills in what is missing. `reported` only when both sides are known."""
    if total is not None:
        if tokens_in is None:
            tokens_in = max(total - (tokens_out or 0), 0)
        if tokens_out is None:
            tokens_out = max(total - tokens_in, 0)
    known = tokens_in is not None and tokens_out is not None
    return Usage(tokens_in=tokens_in or 0, tokens_out=tokens_out or 0, reported=known)


def text_of(content: Json) -> str:
    """The text of a message: a string, or a list of parts that are joined."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    return "".join(part if isinstance(part, str) else _part(part) for part in content)


def _part(part: Json) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else ""


def fresh_id(wanted: Json, taken: Collection[str], prefix: str = "call") -> str:
    """`wanted` if no other call has it; else one that is unique: some servers repeat ids, or send none."""
    base = wanted if isinstance(wanted, str) and wanted else ""
    if base and base not in taken:
        return base
    stem, n = base or prefix, len(taken) + 1
    while f"{stem}_{n}" in taken:
        n += 1
    return f"{stem}_{n}"


def mapping(value: Json) -> dict[str, Any]:
    """`value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}
