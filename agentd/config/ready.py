"""What a start needs beyond a valid configuration. Probes do without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentd.config.findings import Finding

if TYPE_CHECKING:
    from agentd.config.load import Loaded


def findings(loaded: Loaded) -> list[Finding]:
    """Something to do, a model to do it with, and every secret that is referred to."""
    document = loaded.document
    assert document is not None, "asked for a valid configuration only"
    found = []
    if document.agent.instruction is None and document.agent.prompt is None and not document.workflows:
        wrong = "nothing to do: give --instruction TEXT, --instruction.file FILE, --prompt TEXT or a workflow"
        found.append(Finding("error", "agent.instruction", wrong))
    elif not document.workflows and not document.intelligence.endpoints:
        wrong = "no model: give --intelligence URL (or mock:final to try without one)"
        found.append(Finding("error", "intelligence.endpoints", wrong))
    return found + loaded.secrets.missing(loaded.value)
