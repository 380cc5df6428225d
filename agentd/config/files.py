"""The file layer: which files, in which order, and how they compose (JSON Merge Patch, RFC 7396)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentd.config.findings import Finding, dotted
from agentd.config.syntax import SyntaxFault, Where, parse_any

DISCOVERED = ("agentd.yml", "agentd.yaml", ".agentd.yml", ".agentd.yaml")
_LIMIT = 16 << 20


@dataclass(slots=True)
class Tree:
    """A document under assembly: the value, and which layer set each leaf (`sources`: path to the layer's text)."""

    value: dict[str, Any] = field(default_factory=dict)
    sources: dict[Where, str] = field(default_factory=dict)

    def set(self, at: Where, value: Any, source: str) -> None:
        """Replace what is at `at`, making the objects on the way."""
        here = self.value
        for key in at[:-1]:
            below = here.get(key)  # type: ignore[arg-type]
            if not isinstance(below, dict):
                below = here[key] = {}  # type: ignore[index]
            here = below
        here[at[-1]] = value  # type: ignore[index]
        self.credit(at, source)

    def credit(self, at: Where, source: str) -> None:
        """From now on `source` is who set `at` and all below it."""
        for old in [old for old in self.sources if old[: len(at)] == at]:
            del self.sources[old]
        self.sources[at] = source

    def source(self, at: Where) -> str:
        """Who set `at`, or what it lies in."""
        for end in range(len(at), -1, -1):
            if at[:end] in self.sources:
                return self.sources[at[:end]]
        return ""

    def merge(self, patch: Mapping[str, Any], source: str, marks: Mapping[Where, tuple[int, int]]) -> None:
        """Apply `patch`: objects merge, all else replaces, null unsets (and stays null where nothing was set)."""
        self._merge(self.value, patch, (), source, marks)

    def _merge(
        self,
        target: dict[str, Any],
        patch: Mapping[str, Any],
        at: Where,
        source: str,
        marks: Mapping[Where, tuple[int, int]],
    ) -> None:
        for key, value in patch.items():
            here = (*at, key)
            if isinstance(value, dict):
                if not isinstance(target.get(key), dict):
                    target[key] = {}
                    self.credit(here, _at(source, here, marks))
                self._merge(target[key], value, here, source, marks)
            elif value is None and key in target:
                del target[key]
                self.credit(here, _at(source, here, marks))
            else:
                target[key] = value
                self.credit(here, _at(source, here, marks))


def _at(source: str, here: Where, marks: Mapping[Where, tuple[int, int]]) -> str:
    mark = marks.get(here)
    return f"{source}:{mark[0]}:{mark[1]}" if mark else source


def chosen(environ: Mapping[str, str], named: Sequence[str], cwd: Path) -> tuple[list[str], bool, list[Finding]]:
    """The files to read, whether somebody named them, and what is wrong with the choice."""
    listed = environ.get("AGENTD_CONFIG") or environ.get("AGENT_CONFIG") or ""
    files = [part for part in listed.split(":") if part] + list(named)
    if files:
        return files, True, []
    found = [name for name in DISCOVERED if (cwd / name).is_file()]
    if len(found) > 1:
        wrong = f"both {' and '.join('./' + name for name in found)} are here: remove one, or name one with --config"
        return [], False, [Finding("error", "", wrong)]
    return [f"./{name}" for name in found], False, []


def read(files: Sequence[str], cwd: Path) -> tuple[Tree, list[Finding]]:
    """All `files` composed in order."""
    tree, findings = Tree(), []
    for name in files:
        try:
            parsed = parse_any(text_of(cwd / name), name)
        except SyntaxFault as fault:
            findings.append(Finding("error", "", f"{name}:{fault.line}:{fault.column}: {fault.message}"))
            continue
        except (OSError, ValueError) as fault:
            findings.append(Finding("error", "", f"{name}: {reason(fault)}"))
            continue
        if parsed.value is None:
            continue
        if not isinstance(parsed.value, dict):
            findings.append(Finding("error", "", f"{name}: expected an object of sections at the top"))
            continue
        tree.merge(parsed.value, f"file {name}", parsed.marks)
    return tree, findings


def text_of(path: Path) -> str:
    """The text of a file. Raises OSError, or ValueError when it is no text or too large."""
    with path.open("rb") as file:
        data = file.read(_LIMIT + 1)
    if len(data) > _LIMIT:
        raise ValueError(f"larger than {_LIMIT >> 20} MiB")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as fault:
        line = data.count(b"\n", 0, fault.start) + 1
        raise ValueError(f"not UTF-8 text (line {line})") from None


def reason(fault: BaseException) -> str:
    """Why a file cannot be read, in a few words."""
    return (fault.strerror or str(fault)) if isinstance(fault, OSError) else str(fault)


def relaxations(tree: Tree, controls: Sequence[Where]) -> list[Finding]:
    """What an unnamed file may not do: it is picked up from wherever the command is started."""
    found = []
    for at in controls:
        here: Any = tree.value
        for key in at:
            here = here.get(key) if isinstance(here, dict) else None
        if here:
            wrong = f"an unnamed file may not relax a security control ({tree.source(at)}): name it with --config"
            found.append(Finding("error", dotted(at), wrong))
    return found
