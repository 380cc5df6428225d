"""The parts of pages that are written from the code, and where they stand in them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Part(NamedTuple):
    """The text between two lines of a page."""

    page: str
    begin: str
    end: str
    text: str

    def whole(self) -> str:
        """The page with the text in its place."""
        before, begin, rest = (ROOT / self.page).read_text().partition(self.begin)
        _, end, after = rest.partition(self.end)
        if not (begin and end):
            raise SystemExit(f"{self.page} holds no place for its reference: {self.begin.strip()}")
        return f"{before}{begin}\n{self.text.strip()}\n\n{end}{after}"


def parts() -> list[Part]:
    """Every part, from the code as it stands."""
    sys.path.insert(0, str(ROOT / "scripts"))
    import config_reference
    import workflow_reference

    from agentd.telemetry import vocabulary

    return [
        marked("docs/configuration.md", "config_reference", config_reference.reference()),
        marked("docs/workflows.md", "workflow_reference", workflow_reference.reference()),
        Part("docs/telemetry.md", "<!-- events -->\n", "<!-- /events -->\n", vocabulary.markdown()),
    ]


def marked(page: str, script: str, text: str) -> Part:
    begin = f"<!-- reference: begin (written by scripts/{script}.py) -->\n"
    return Part(page, begin, "<!-- reference: end -->\n", text)


def write(part: Part, arguments: list[str]) -> int:
    """Put `part` in its page; with ``--check`` only tell whether it is there."""
    path, wanted = ROOT / part.page, part.whole()
    stale = path.read_text() != wanted
    if stale and "--check" not in arguments:
        path.write_text(wanted)
    return int(stale and "--check" in arguments)
