"""Text to values, with positions: YAML with 1.2 scalars, JSON with comments; pure.

A scalar that would silently change is not converted: `0755`, `007`, `1_000`, `+49…`, `1:30`, dates, `.inf` and
`1e999` stay strings, `yes` and `on` too. Anchors, tags, duplicate keys and several documents are refused.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, NamedTuple, NoReturn

Where = tuple[str | int, ...]


class Parsed(NamedTuple):
    """A document and where its parts begin: `marks` maps a path to (line, column), both from 1."""

    value: Any
    marks: dict[Where, tuple[int, int]]


class SyntaxFault(ValueError):
    """The text cannot be read; `line` and `column` count from 1."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.message, self.line, self.column = message, line, column


_DEPTH = 100
_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INT = re.compile(r"0|-?[1-9][0-9]*", re.ASCII)
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?(?:[eE][-+]?[0-9]+)?|-?\.[0-9]+(?:[eE][-+]?[0-9]+)?", re.ASCII)


def scalar(text: str) -> Any:
    """The value of a plain (unquoted) YAML scalar."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text) and len(text) < 400:
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text) and math.isfinite(number := float(text)):
        return number
    return text


def parse_yaml(text: str) -> Parsed:
    """One YAML document. Raises :class:`SyntaxFault`."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Builder(list(yaml.parse(text, Loader=loader))).document()
    except yaml.MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise SyntaxFault(fault.problem or "not valid YAML", line, column) from None
    except yaml.YAMLError as fault:
        raise SyntaxFault(" ".join(str(fault).split()), 1, 1) from None


class _Builder:
    """Events to values. PyYAML's own constructor has 1.1 scalars and takes the last of two equal keys."""

    def __init__(self, events: list[Any]) -> None:
        self.events, self.next, self.marks = events, 0, dict[Where, tuple[int, int]]()

    def take(self) -> Any:
        event = self.events[self.next]
        self.next += 1
        return event

    def document(self) -> Parsed:
        starts = [e for e in self.events if type(e).__name__ == "DocumentStartEvent"]
        if not starts:
            return Parsed(None, {})
        if len(starts) > 1:
            _refuse(starts[1], "one document only: a second one begins here")
        self.next = self.events.index(starts[0]) + 1
        return Parsed(self.value(()), self.marks)

    def value(self, at: Where) -> Any:
        event = self.take()
        kind = type(event).__name__
        if kind == "AliasEvent" or event.anchor:
            _refuse(event, "anchors and aliases are not supported: write the value out")
        if event.tag is not None:
            _refuse(event, f"tags are not supported: remove {event.tag}")
        if len(at) > _DEPTH:
            _refuse(event, f"nested deeper than {_DEPTH} levels")
        self.marks.setdefault(at, (event.start_mark.line + 1, event.start_mark.column + 1))
        if kind == "ScalarEvent":
            return scalar(event.value) if event.implicit[0] else event.value
        return self.mapping(at) if kind == "MappingStartEvent" else self.sequence(at)

    def sequence(self, at: Where) -> list[Any]:
        items: list[Any] = []
        while type(self.events[self.next]).__name__ != "SequenceEndEvent":
            items.append(self.value((*at, len(items))))
        self.next += 1
        return items

    def mapping(self, at: Where) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while type(event := self.take()).__name__ != "MappingEndEvent":
            if type(event).__name__ != "ScalarEvent":
                _refuse(event, "a key must be a plain string (quote a value that begins with {{ )")
            if event.anchor or event.tag is not None:
                _refuse(event, "anchors and tags are not supported")
            key = event.value
            if key in found:
                _refuse(event, f"duplicate key {key!r}")
            self.marks[(*at, key)] = (event.start_mark.line + 1, event.start_mark.column + 1)
            found[key] = self.value((*at, key))
        return found


def _refuse(event: Any, message: str) -> NoReturn:
    raise SyntaxFault(message, event.start_mark.line + 1, event.start_mark.column + 1)


_COMMENT = r"//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/"
_JSONC = re.compile(rf'"(?:\\.|[^"\\\n])*"|{_COMMENT}|,(?=(?:\s|{_COMMENT})*[\]}}])')


def parse_json(text: str) -> Parsed:
    """JSON with comments and trailing commas. Raises :class:`SyntaxFault`."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        return found if found[0] == '"' else re.sub(r"[^\n]", " ", found)

    try:
        value = json.loads(
            _JSONC.sub(blank, text), object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
    except json.JSONDecodeError as fault:
        raise SyntaxFault(fault.msg, fault.lineno, fault.colno) from None
    except RecursionError:
        raise SyntaxFault("nested too deeply", 1, 1) from None
    except _Duplicate as fault:
        index = max(text.rfind(json.dumps(fault.key, ensure_ascii=False)), 0)
        line = text.count("\n", 0, index) + 1
        raise SyntaxFault(f"duplicate key {fault.key!r}", line, index - text.rfind("\n", 0, index)) from None
    except ValueError as fault:
        raise SyntaxFault(str(fault), 1, 1) from None
    return Parsed(value, {})


class _Duplicate(Exception):
    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _Duplicate(key)
        found[key] = value
    return found


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no JSON number")


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"{text} is too large a number")
    return number


def parse_any(text: str, name: str = "") -> Parsed:
    """By the extension of `name`; another extension is sniffed. Raises :class:`SyntaxFault`."""
    text = text.removeprefix("\ufeff")
    if name.endswith((".json", ".jsonc")):
        return parse_json(text)
    if not name.endswith((".yml", ".yaml")) and text.lstrip()[:1] in ("{", "/"):
        try:
            return parse_json(text)
        except SyntaxFault:
            pass
    return parse_yaml(text)
