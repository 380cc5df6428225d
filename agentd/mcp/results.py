"""What a tool's answer means: its value, its text for a model, and whether it is what the tool promised; pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agentd.mcp.records import Json, Tool, ToolResult


def read_result(name: str, tool: Tool | None, answer: Json) -> ToolResult:
    """The result in the raw `tools/call` answer of the tool `name`; `tool` is its listing, if it was listed.

    An error is never validated: its text is what the model needs. A promised structure that is missing is a warning
    where there is text, one that is wrong is an error naming the tool.
    """
    content = answer.get("content")
    text = render_content(content if isinstance(content, list) else [])
    structure = answer.get("structuredContent")
    if answer.get("isError") is True:
        return ToolResult(
            value=structure if structure is not None else text, text=text or _dump(structure), is_error=True
        )
    if answer.get("resultType", "complete") != "complete":
        return _broken(name, "asks for input that nobody here can give")
    schema = tool.output_schema if tool else None
    if structure is None:
        value, parsed = parse_text(text)
        missing = schema is not None and (f"tool {name!r} returned no structured content, its text is used",)
        return ToolResult(value=value if parsed else text, text=text, warnings=missing or ())
    if not isinstance(structure, dict):
        return _broken(name, f"returned structured content that is no object but {type(structure).__name__}")
    if schema is not None and (reason := _mismatch(schema, structure)):
        return _broken(name, f"returned structured content that breaks its own output schema: {reason}")
    return ToolResult(value=structure, text=_both(text, structure))


def parse_text(text: str) -> tuple[Any, bool]:
    """`text` parsed as JSON and True, or None and False; NaN and Infinity are no JSON."""
    try:
        return json.loads(text, parse_constant=_refuse), True
    except (ValueError, RecursionError):
        return None, False


def render_content(blocks: Sequence[Any]) -> str:
    """Content blocks as the text a model reads; what is no text is named, never inlined."""
    return "\n".join(filter(None, (_render(b) for b in blocks if isinstance(b, dict))))


def _render(block: Json) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text") or "")
    if kind in ("image", "audio"):
        return f"[{kind} {block.get('mimeType', '')}, {_size(block.get('data'))} bytes]"
    if kind == "resource_link":
        return f"[resource {block.get('uri', '')} {block.get('name', '')}]"
    if kind == "resource" and isinstance(held := block.get("resource"), dict):
        if isinstance(held.get("text"), str):
            return f"[resource {held.get('uri', '')}]\n{held['text']}"
        return f"[resource {held.get('uri', '')} {held.get('mimeType', '')}, {_size(held.get('blob'))} bytes]"
    return f"[{kind or 'unknown'} content]"


def _size(base64: Any) -> int:
    return len(base64) * 3 // 4 if isinstance(base64, str) else 0


def _both(text: str, structure: Json) -> str:
    """The text, and the structure where the text does not already tell it."""
    if not text:
        return _dump(structure)
    return text if parse_text(text)[1] or _tells(text, structure) else f"{text}\n{_dump(structure)}"


def _tells(text: str, value: Any) -> bool:
    """Whether each leaf of `value` stands in the text."""
    if isinstance(value, dict | list):
        return all(_tells(text, part) for part in (value.values() if isinstance(value, dict) else value))
    return (value if isinstance(value, str) else _dump(value)) in text


def _mismatch(schema: Json, value: Any) -> str:
    """Why `value` does not fit `schema`, "" when it does or the schema cannot be read; nothing is fetched."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema, offline=True, pattern_options=jsonschema_rs.RegexOptions())
    except ValueError:
        return ""
    error = next(iter(validator.iter_errors(value)), None)
    return "" if error is None else error.message


def _broken(name: str, reason: str) -> ToolResult:
    text = f"tool {name!r} {reason}"
    return ToolResult(value=text, text=text, is_error=True, warnings=(text,))


def _dump(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")
