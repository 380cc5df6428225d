"""What a step grants its turn in place of the configured selection: servers that exist, and the rule of two."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agentd.config.findings import Finding, dotted, nearest
from agentd.config.syntax import Where

if TYPE_CHECKING:
    from agentd.config.document import Document

_KINDS = frozenset({"agent"})


def check(document: Document) -> Iterator[Finding]:
    """Findings about the `servers` and `tools` of each step whose turn has tools."""
    known = [server.name for server in document.mcp.servers]
    for at, step in _turns(document.workflows, ("workflows",)):
        for name in _listed(step, "servers"):
            if name not in known and "{{" not in name:
                wrong = f"there is no MCP server {name!r}{nearest(name, known)}; declared: {', '.join(known) or 'none'}"
                yield Finding("error", dotted((*at, "servers")), wrong)
        yield from _rule_of_two(document, at, step)


def _rule_of_two(document: Document, at: Where, step: dict[str, Any]) -> Iterator[Finding]:
    """A step's own `tools` may be wider than the selection that is judged for the whole document."""
    if not isinstance(step.get("tools"), list):
        return
    from agentd.security.trifecta import explain

    # What a template will name is not known here: it may be anything.
    granted = ["*" if "{{" in glob else glob for glob in _listed(step, "tools")]
    named = _listed(step, "servers")
    narrowed = isinstance(step.get("servers"), list) and not any("{{" in name for name in named)
    servers = [s for s in document.mcp.servers if not narrowed or s.name in named]
    if wrong := explain(servers, granted, document.tools.disabled):
        if document.security.allow_trifecta:
            yield Finding("warning", dotted((*at, "tools")), f"admitted: {wrong}")
        else:
            yield Finding("error", dotted((*at, "tools")), f"{wrong}; narrow them, or set security.allow_trifecta")


def _listed(step: dict[str, Any], field: str) -> list[str]:
    value = step.get(field)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _turns(value: Any, at: Where) -> Iterator[tuple[Where, dict[str, Any]]]:
    """Every step of those kinds, however deep."""
    if isinstance(value, dict):
        if value.get("kind") in _KINDS:
            yield at, value
        for key, below in value.items():
            yield from _turns(below, (*at, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from _turns(below, (*at, index))
