"""Templates: JSON values with ``{{path}}`` and ``{{path | fallback}}`` in their strings, compiled to closures; pure.

Alone in a string a path keeps its type; inside text strings go in raw and everything else as compact JSON. A fallback
is a JSON value, a path, or else the text as written; several are tried from left to right. ``{{secret:…}}`` and
``{{secret-file:…}}`` stay for the consumer. A string that begins with ``CEL:`` is an expression.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentd.engine.paths import Getter, Missing, Names, Read, compile_path, parse_path

Expressions = Callable[[str], Callable[[Mapping[str, Any]], Any]]
"""Compiles an expression (without its prefix); ValueError when it is wrong, at load and at run time alike."""

PREFIX = "CEL:"
NO_PLUGIN = "needs an expression plugin; install one with: pip install 'agentd[cel]'"

_SECRET = re.compile(r"\s*secret(-file)?:")
_FALLBACK_PATH = re.compile(r"(?:inputs|run|steps|vars|env|memory|signals|item|batch)[.\[].*", re.DOTALL)


class TemplateError(Exception):
    """A template could not be rendered: a path is missing, or an expression failed."""


class Compiler:
    """Compiles what one node says. `reads` collects every path, for the checks of the author's time."""

    def __init__(self, expressions: Expressions | None = None) -> None:
        self.reads: list[Read] = []
        self._expressions = expressions

    def value(self, value: Any) -> Getter | None:
        """A function that renders `value`, None when nothing in it is to be rendered. Raises ValueError."""
        if isinstance(value, str):
            return self._string(value)
        if isinstance(value, dict):
            return self._dict(value)
        if isinstance(value, list):
            return self._list(value)
        return None

    def text(self, value: str) -> Getter | None:
        """Like :meth:`value` for a string that must stay one."""
        get = self._string(value)
        return None if get is None else lambda names: to_text(get(names))

    def path(self, text: str, *, optional: bool = False) -> Getter:
        """A bare path. Raises ValueError."""
        path = parse_path(text)
        self.reads.append(Read(path, optional))
        return compile_path(path)

    def expression(self, text: str) -> Getter:
        """An expression of a plugin, its prefix included. Raises ValueError."""
        if self._expressions is None:
            raise ValueError(NO_PLUGIN)
        source = text[len(PREFIX) :].strip()
        evaluate = self._expressions(source)
        return lambda names: evaluate(names.everything(source))

    def hole(self, text: str) -> Getter:
        """What stands between the braces: a path and its fallbacks. Raises ValueError."""
        first, *others = _split(text)
        get = self.path(first, optional=bool(others))
        for other in others:
            get = _either(get, self._fallback(other))
        return get

    def _fallback(self, text: str) -> Getter:
        if _FALLBACK_PATH.fullmatch(text):
            return self.path(text, optional=True)
        value = literal(text)
        return lambda names: value

    def _string(self, text: str) -> Getter | None:
        if text.startswith(PREFIX):
            return self.expression(text)
        if "{{" not in text:
            return None
        parts: list[str | Getter] = []
        end = 0
        for start, stop in _holes(text):
            inside = text[start + 2 : stop - 2]
            if not _SECRET.match(inside):
                parts += [text[end:start], self.hole(inside)]
                end = stop
        if not parts:
            return None
        parts.append(text[end:])
        filled = [part for part in parts if part != ""]
        if len(filled) == 1 and not isinstance(filled[0], str):
            return filled[0]
        return lambda names: "".join([p if isinstance(p, str) else to_text(p(names)) for p in filled])

    def _dict(self, value: dict[str, Any]) -> Getter | None:
        moving = [(k, get) for k, v in value.items() if (get := self.value(v)) is not None]
        if not moving:
            return None

        def render(names: Names) -> dict[str, Any]:
            made = dict(value)
            for key, get in moving:
                made[key] = get(names)
            return made

        return render

    def _list(self, value: list[Any]) -> Getter | None:
        moving = [(i, get) for i, v in enumerate(value) if (get := self.value(v)) is not None]
        if not moving:
            return None

        def render(names: Names) -> list[Any]:
            made = list(value)
            for index, get in moving:
                made[index] = get(names)
            return made

        return render


def _either(get: Getter, other: Getter) -> Getter:
    def tried(names: Names) -> Any:
        try:
            return get(names)
        except Missing:
            return other(names)

    return tried


def _holes(text: str) -> Iterator[tuple[int, int]]:
    """Where ``{{…}}`` stand in `text`. Braces of a JSON fallback are balanced, those in quotes do not count."""
    start = text.find("{{")
    while start >= 0:
        stop = _close(text, start + 2)
        if stop < 0:
            return
        yield start, stop
        start = text.find("{{", stop)


def _close(text: str, at: int) -> int:
    """The end of the braces whose inside begins at `at`, -1 when they are never closed."""
    nearest = text.find("}}", at)
    depth, quote = 0, ""
    for i in range(at, len(text)) if nearest >= 0 else ():
        c = text[i]
        if quote:
            quote = "" if c == quote and text[i - 1] != "\\" else quote
        elif c in "\"'":
            quote = c
        elif c == "{":
            depth += 1
        elif c == "}" and depth:
            depth -= 1
        elif c == "}" and text[i + 1 : i + 2] == "}":
            return i + 2
    return nearest + 2 if nearest >= 0 else -1


def _split(text: str) -> list[str]:
    """Cut at ``|`` outside quotes."""
    parts, quote, start = [], "", 0
    for i, c in enumerate(text):
        if quote:
            quote = "" if c == quote and text[i - 1] != "\\" else quote
        elif c in "\"'":
            quote = c
        elif c == "|":
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def literal(text: str) -> Any:
    """A JSON value, a single-quoted string, or else the text itself."""
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1]
    try:
        return json.loads(text, parse_constant=lambda word: word)
    except (ValueError, RecursionError):
        return text


def to_text(value: Any) -> str:
    """A string raw, anything else as compact JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
