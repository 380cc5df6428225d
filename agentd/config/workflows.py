"""`workflows`: reading those that stand in files, and having the engine check them all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentd.config.files import reason, text_of
from agentd.config.findings import Finding, dotted
from agentd.config.syntax import SyntaxFault, Where, parse_any

if TYPE_CHECKING:
    from agentd.config.document import Document
    from agentd.plugins import PluginSet


def expand(value: dict[str, Any], cwd: Path) -> tuple[dict[str, Any], list[Finding]]:
    """`value` with each ``{file}`` and ``{dir}`` entry replaced by what it names; paths are relative to `cwd`."""
    entries = value.get("workflows")
    if not isinstance(entries, list):
        return value, []
    found: list[Any] = []
    findings: list[Finding] = []
    for index, entry in enumerate(entries):
        at: Where = ("workflows", index)
        if not isinstance(entry, dict) or not ({"file", "dir"} & entry.keys()):
            found.append(entry)
            continue
        try:
            for path in _files(entry, cwd):
                found.append(_read(path, entry if "file" in entry else {}, cwd))
        except SyntaxFault as fault:
            findings.append(
                Finding("error", dotted(at), f"{fault.args[1]}:{fault.line}:{fault.column}: {fault.message}")
            )
        except (OSError, ValueError) as fault:
            findings.append(
                Finding("error", dotted(at), f"{getattr(fault, 'filename', '') or ''}: {reason(fault)}".lstrip(": "))
            )
    return {**value, "workflows": found}, findings


def _files(entry: dict[str, Any], cwd: Path) -> Iterator[Path]:
    if "file" in entry:
        if not isinstance(entry["file"], str) or entry.keys() - {"file", "name"}:
            raise ValueError("expected {file: PATH} or {name: NAME, file: PATH}")
        yield cwd / entry["file"]
        return
    given = {"path": entry["dir"]} if isinstance(entry["dir"], str) else entry["dir"]
    if not isinstance(given, dict) or not isinstance(given.get("path"), str) or entry.keys() - {"dir"}:
        raise ValueError("expected {dir: {path: PATH, glob: GLOB, order: name|date}}")
    if unknown := given.keys() - {"path", "glob", "order"}:
        raise ValueError(f"unknown key {min(unknown)} in dir; allowed: glob, order, path")
    folder = cwd / given["path"]
    if not folder.is_dir():
        raise ValueError(f"{given['path']} is no directory")
    globs = [given["glob"]] if isinstance(given.get("glob"), str) else ["*.yaml", "*.yml", "*.json", "*.jsonc"]
    files = {path for glob in globs for path in folder.glob(glob) if path.is_file() and not path.name.startswith(".")}
    yield from sorted(files, key=lambda p: (p.stat().st_mtime_ns if given.get("order") == "date" else 0, p.name))


def _read(path: Path, entry: dict[str, Any], cwd: Path) -> dict[str, Any]:
    shown = str(path.relative_to(cwd)) if path.is_relative_to(cwd) else str(path)
    try:
        definition = parse_any(text_of(path), path.name).value
    except SyntaxFault as fault:
        fault.args = (fault.message, shown)
        raise
    except ValueError as fault:
        raise ValueError(f"{shown}: {fault}") from None
    if not isinstance(definition, dict):
        raise ValueError(f"{shown}: expected an object with name and steps")
    if "name" in entry:
        return {**definition, "name": entry["name"]}
    return definition if "name" in definition else {"name": path.stem, **definition}


def check(document: Document, plugins: PluginSet) -> Iterator[Finding]:
    """Whether every workflow that is at hand is one, whether names are unique and servers are declared."""
    names: dict[str, int] = {}
    servers = {server.name for server in document.mcp.servers}
    for index, definition in enumerate(document.workflows):
        at: Where = ("workflows", index)
        name = definition.get("name")
        if isinstance(name, str):
            if name in names:
                yield Finding("error", dotted((*at, "name")), f"{name!r} is the name of workflows[{names[name]}] too")
            names.setdefault(name, index)
        if "url" in definition or "uri" in definition:
            continue
        yield from _engine(definition, at, plugins)
        yield from _servers(definition.get("steps"), (*at, "steps"), servers)


def _engine(definition: dict[str, Any], at: Where, plugins: PluginSet) -> Iterator[Finding]:
    from agentd.engine.definition import Kinds
    from agentd.engine.definition import check as check_definition

    for path, message in check_definition(definition, Kinds.of(plugins)):
        yield Finding("error", ".".join(filter(None, (dotted(at), path))).replace(".[", "["), message)


def _servers(value: Any, at: Where, known: set[str]) -> Iterator[Finding]:
    if isinstance(value, dict):
        server = value.get("server")
        if isinstance(server, str) and "{{" not in server and "kind" in value and server not in known:
            declared = ", ".join(sorted(known)) or "none"
            yield Finding("error", dotted((*at, "server")), f"there is no MCP server {server!r}; declared: {declared}")
        for key, below in value.items():
            yield from _servers(below, (*at, key), known)
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _servers(below, (*at, index), known)
