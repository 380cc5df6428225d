"""Paths into a run's data: parsing, walking, and what an author may name; pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

Segment = str | int
Path = tuple[Segment, ...]

_TOKEN = re.compile(r"""\.([\w$-]+)|\[(-?\d{1,9})\]|\["((?:[^"\\]|\\.)*)"\]|\['((?:[^'\\]|\\.)*)'\]""")
_ROOT = re.compile(r"[A-Za-z_$][\w$-]*")
_INDEX = re.compile(r"-?\d{1,9}")

STEP_FACTS = ("status", "output", "error", "attempt")


class Missing(Exception):
    """A path leads nowhere."""


class Names(Protocol):
    """Where paths begin. Root names are looked up by :meth:`name`, steps by :meth:`step`."""

    def name(self, root: str) -> Any:
        """The value of a root name; KeyError when there is none."""

    def step(self, id: str) -> Any:
        """An object with the attributes :data:`STEP_FACTS`, None when the step has not been reached."""

    def everything(self, text: str) -> dict[str, Any]:
        """All names as one mapping, for an expression plugin; at least those that occur in `text`."""


class Read(NamedTuple):
    """A path that a definition reads; `optional` when a missing one is no failure."""

    path: Path
    optional: bool


Getter = Callable[[Names], Any]


def parse_path(text: str) -> Path:
    """The segments of ``a.b[0]["c d"]``. Raises ValueError naming what is wrong."""
    text = text.strip()
    root = _ROOT.match(text)
    if root is None:
        raise ValueError(f"expected a path such as steps.a.output, got {text!r}")
    segments: list[Segment] = [root.group()]
    at = root.end()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"cannot read {text!r} as a path, from {text[at:]!r} on")
        word, index, double, single = token.groups()
        if index is not None:
            segments.append(int(index))
        elif word is not None:
            segments.append(word)
        else:
            segments.append(re.sub(r"\\(.)", r"\1", double if double is not None else single))
        at = token.end()
    return tuple(segments)


def write_path(path: Path) -> str:
    """`path` as text, for messages."""
    return str(path[0]) + "".join(f"[{s}]" if isinstance(s, int) else f".{s}" for s in path[1:])


def compile_path(path: Path) -> Getter:
    """A function from names to the value at `path`; it raises :class:`Missing`."""
    root, rest = str(path[0]), path[1:]
    if root == "steps":
        return _compile_step(path)
    if root == "memory" and len(path) > 1:
        return _compile_memory(path)

    def get(names: Names) -> Any:
        try:
            value = names.name(root)
        except KeyError:
            raise Missing(write_path(path)) from None
        for segment in rest:
            value = down(value, segment, path)
        return value

    return get


def _compile_step(path: Path) -> Getter:
    if len(path) < 2:
        raise ValueError("steps must be followed by a step's id")
    id, rest = str(path[1]), path[3:]
    if len(path) == 2:
        return lambda names: _facts(names.step(id))
    fact = str(path[2])
    if fact not in STEP_FACTS:
        raise ValueError(f"steps.{id} has {', '.join(STEP_FACTS)}, not {fact!r}")

    def get(names: Names) -> Any:
        step = names.step(id)
        if step is None:
            if fact == "status":
                return "pending"
            raise Missing(write_path(path))
        value = getattr(step, fact)
        if fact == "output" and step.status != "done" and value is None:
            raise Missing(f"{write_path(path)} (the step is {step.status})")
        for segment in rest:
            value = down(value, segment, path)
        return value

    return get


def _facts(step: Any) -> dict[str, Any]:
    if step is None:
        return {"status": "pending", "output": None, "error": None, "attempt": 0}
    return {fact: getattr(step, fact) for fact in STEP_FACTS}


def _compile_memory(path: Path) -> Getter:
    """Keys of the memory hold dots: the longest key that exists wins."""
    words = [str(segment) for segment in path[1:]]

    def get(names: Names) -> Any:
        memory: Mapping[str, Any] = names.name("memory")
        for end in range(len(words), 0, -1):
            try:
                value = memory[".".join(words[:end])]
            except KeyError:
                continue
            for segment in path[1 + end :]:
                value = down(value, segment, path)
            return value
        raise Missing(write_path(path))

    return get


def down(value: Any, segment: Segment, path: Path) -> Any:
    """One step into `value`. Raises :class:`Missing` naming the whole `path`."""
    if isinstance(value, dict):
        key = segment if isinstance(segment, str) else str(segment)
        if key in value:
            return value[key]
    elif isinstance(value, list) and (isinstance(segment, int) or _INDEX.fullmatch(segment)):
        index = int(segment)
        if -len(value) <= index < len(value):
            return value[index]
    elif isinstance(value, Mapping):
        try:
            return value[str(segment)]
        except KeyError:
            pass
    raise Missing(write_path(path))


class With:
    """`names`, and a few more that come first."""

    __slots__ = ("_more", "_names")

    def __init__(self, names: Names, more: Mapping[str, Any]) -> None:
        self._names, self._more = names, more

    def name(self, root: str) -> Any:
        return self._more[root] if root in self._more else self._names.name(root)

    def step(self, id: str) -> Any:
        return self._names.step(id)

    def everything(self, text: str) -> dict[str, Any]:
        return {**self._names.everything(text), **self._more}
