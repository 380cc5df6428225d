"""``agentd plugins``: what is installed, what each contributes, what failed to load and why.

Needs no configuration and exits 0 whatever is broken: it is where one looks when something is.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agentd.errors import EXIT_OK, UsageError
from agentd.plugins import Key, PluginSet, load


def main(args: list[str], environ: Mapping[str, str], plugins: PluginSet | None = None) -> int:
    """Print the plugins: a table, or one JSON object with ``--json``. `plugins` is what is already loaded."""
    unknown = [arg for arg in args if arg != "--json"]
    if unknown:
        raise UsageError(f"agentd plugins: unknown argument {unknown[0]}; it takes --json only")
    found = plugins if plugins is not None else load()
    sys.stdout.write(json.dumps(as_data(found), indent=2) + "\n" if "--json" in args else as_table(found))
    return EXIT_OK


def as_data(plugins: PluginSet) -> dict[str, Any]:
    """For programs; `contributes` and `builtin` are ``{slot: [kind]}``."""
    return {
        "builtin": _by_slot(_builtin(plugins)),
        "plugins": [
            {
                "name": p.name,
                "dist": p.dist,
                "version": p.version,
                "entry_point": f"{p.name} = {p.value}",
                "state": p.state,
                "reason": p.reason,
                "contributes": _by_slot(p.kinds),
            }
            for p in plugins.installed
        ],
        "contested": [
            {"slot": slot, "kind": kind, "claimed_by": [str(owner) for owner in owners]}
            for (slot, kind), owners in sorted(plugins.contested.items())
        ],
    }


def as_table(plugins: PluginSet) -> str:
    """For people: a line for each plugin and each hook it uses; reasons and contested kinds in words."""
    rows = [("PLUGIN", "FROM", "STATE", "CONTRIBUTES")]
    rows += _rows("-", "agentd itself", "built in", _words(_builtin(plugins)))
    for p in plugins.installed:
        rows += _rows(p.name, f"{p.dist} {p.version}", p.state, [p.reason] if p.reason else _words(p.kinds))
    for slot, kind in sorted(plugins.contested):
        rows += _rows("", "", "contested", [plugins.missing(slot, kind)])
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ("  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[3]]) for row in rows)
    return "".join(_printable(line).rstrip() + "\n" for line in lines)


def _rows(name: str, origin: str, state: str, last: Sequence[str]) -> list[tuple[str, str, str, str]]:
    first, *others = last or [""]
    return [(name, origin, state, first), *(("", "", "", other) for other in others)]


def _builtin(plugins: PluginSet) -> list[Key]:
    return [key for key, origin in plugins.origins.items() if origin.dist == "agentd"]


def _by_slot(keys: Sequence[Key]) -> dict[str, list[str]]:
    slots: dict[str, list[str]] = {}
    for slot, kind in sorted(keys):
        slots.setdefault(slot, []).append(kind)
    return slots


def _words(keys: Sequence[Key]) -> list[str]:
    return [f"{slot.replace('_', ' ')}: {', '.join(kinds)}" for slot, kinds in _by_slot(keys).items()]


def _printable(line: str) -> str:
    """Names and reasons are foreign text: nothing of it may steer a terminal."""
    return "".join(c if c.isprintable() else "?" for c in line)
