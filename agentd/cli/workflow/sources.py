"""Workflow files, read with the place of everything in them, and what the engine says of each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from agentd.config.files import reason, text_of
from agentd.config.findings import dotted
from agentd.config.syntax import SyntaxFault, Where, parse_any
from agentd.engine.definition import check, compile_plan
from agentd.engine.kinds import Kinds
from agentd.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from agentd.engine.plan import Plan


class Source(NamedTuple):
    """A definition and where it stands: its file, and the places of its parts by dotted path."""

    file: str
    definition: Any
    places: dict[str, tuple[int, int]]

    @property
    def name(self) -> str:
        name = self.definition.get("name") if isinstance(self.definition, dict) else None
        return name if isinstance(name, str) else "?"


class Flaw(NamedTuple):
    """A finding and its place; line and column count from 1, None where the format does not tell."""

    file: str
    line: int | None
    column: int | None
    path: str
    message: str

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{place}: {self.path}: {self.message}" if self.path else f"{place}: {self.message}"


def sources(file: str) -> list[Source]:
    """The workflows of `file`: itself, or those of a configuration, inline or in files of their own.

    Those that a configuration fetches from elsewhere are left out. Raises :class:`Unreadable`.
    """
    try:
        value, marks = parse_any(text_of(Path(file)), file)
    except SyntaxFault as fault:
        raise Unreadable(Flaw(file, fault.line, fault.column, "", fault.message)) from None
    except (OSError, ValueError) as fault:
        raise Unreadable(Flaw(file, None, None, "", reason(fault))) from None
    if isinstance(value, dict) and "steps" not in value and isinstance(value.get("workflows"), list):
        return [
            s for n, entry in enumerate(value["workflows"]) for s in _of_entry(file, entry, ("workflows", n), marks)
        ]
    if isinstance(value, dict) and "name" not in value:
        value = {"name": Path(file).stem, **value}
    return [Source(file, value, _places(marks, ()))]


def _of_entry(file: str, entry: Any, at: Where, marks: dict[Where, tuple[int, int]]) -> Iterator[Source]:
    if isinstance(entry, dict) and isinstance(entry.get("file"), str):
        for source in sources(entry["file"]):
            yield (
                source._replace(definition={**source.definition, "name": entry["name"]}) if "name" in entry else source
            )
    elif not (isinstance(entry, dict) and {"dir", "url", "uri"} & entry.keys() and "steps" not in entry):
        yield Source(file, entry, _places(marks, at))


def _places(marks: dict[Where, tuple[int, int]], at: Where) -> dict[str, tuple[int, int]]:
    return {dotted(where[len(at) :]): mark for where, mark in marks.items() if where[: len(at)] == at}


class Unreadable(ConfigError):
    """A file that holds no document; `flaw` says why and where."""

    def __init__(self, flaw: Flaw) -> None:
        super().__init__(findings=[("", str(flaw))])
        self.flaw = flaw


@cache
def installed() -> Kinds:
    """The kinds of everything that is installed."""
    from agentd.plugins import load

    return Kinds.of(load())


def flaws(source: Source) -> list[Flaw]:
    """Everything that is wrong with a definition, in the order of the file."""
    found = [_flaw(source, path, message) for path, message in check(source.definition, installed())]
    return sorted(found, key=lambda f: (f.line or 0, f.column or 0))


def _flaw(source: Source, path: str, message: str) -> Flaw:
    known = path
    while known and known not in source.places:
        known = known[: max(known.rfind("."), known.rfind("["), 0)]
    line, column = source.places.get(known, (None, None))
    return Flaw(source.file, line, column, path, message)


def plan_of(source: Source) -> Plan:
    """The compiled workflow. Raises ConfigError with every finding and its place."""
    if found := flaws(source):
        raise ConfigError(findings=[("", str(flaw)) for flaw in found])
    return compile_plan(source.definition, installed())


def chosen(file: str, name: str | None) -> list[Source]:
    """The workflows of `file`, or the one called `name`. Raises UsageError when there is none."""
    found = sources(file)
    fitting = [source for source in found if name in (None, source.name)]
    if not fitting:
        there = ", ".join(source.name for source in found) or "none"
        raise UsageError(f"{file} holds no workflow{f' {name}' if name else ''}; there are: {there}")
    return fitting
