"""What a start needs beyond a valid configuration. Probes do without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentd.config import lifetime
from agentd.config.findings import Finding
from agentd.config.instruction import read_instruction
from agentd.errors import ConfigError

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
    elif lifetime.has_turns(document, loaded.plugins) and not document.intelligence.endpoints:
        wrong = "no model: give --intelligence URL (or mock:final to try without one)"
        found.append(Finding("error", "intelligence.endpoints", wrong))
    try:
        read_instruction(document.agent.instruction, loaded.cwd)
    except ConfigError as wrong_source:
        found += [Finding("error", path, message) for path, message in wrong_source.findings]
    return found + loaded.secrets.missing(loaded.value)
