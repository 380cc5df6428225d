"""``agentd workflow check FILE…``."""

from __future__ import annotations

import json

from agentd.cli.output import emit
from agentd.cli.workflow.sources import Flaw, Unreadable, flaws, sources
from agentd.cli.workflow.words import read
from agentd.errors import EXIT_CONFIG


def main(args: list[str]) -> int:
    """Print every finding of every file; 2 if there is any."""
    words = read(args, {"json": False}, "check")
    found: list[Flaw] = []
    sound: list[str] = []
    for file in words.files:
        try:
            for source in sources(file):
                wrong = flaws(source)
                found += wrong
                if not wrong:
                    sound.append(f"{source.file}: {source.name}: ok")
        except Unreadable as unreadable:
            found.append(unreadable.flaw)
    if "json" in words.flags:
        code = emit(json.dumps([flaw._asdict() for flaw in found], indent=2, ensure_ascii=False) + "\n")
    else:
        code = emit("".join(f"{line}\n" for line in (*map(str, found), *sound)))
    return code or (EXIT_CONFIG if found else 0)
