"""``agentd workflow show FILE``."""

from __future__ import annotations

from agentd.cli.output import emit
from agentd.cli.workflow.sources import chosen, plan_of
from agentd.cli.workflow.words import read


def main(args: list[str]) -> int:
    """Print the graph of every workflow in the files. Raises ConfigError when one is not sound."""
    words = read(args, {"mermaid": False, "workflow": True}, "show")
    if "mermaid" in words.flags:
        from agentd.engine.mermaid import draw
    else:
        from agentd.engine.picture import draw
    plans = [plan_of(source) for file in words.files for source in chosen(file, words.last("workflow"))]
    return emit("\n".join(draw(plan) for plan in plans))
