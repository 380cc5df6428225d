"""``agentd workflow check|show|test``: look at workflow files before an instance runs them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

from agentd.cli.output import emit
from agentd.errors import UsageError

USAGE = """usage: agentd workflow COMMAND FILE...

  check FILE...            everything that is wrong, one finding a line with its place; exit 2 if there is any
  show FILE [--mermaid]    the graph, drawn for a terminal or as a Mermaid flowchart
  test FILE --script MOCK.yaml [--input NAME=VALUE]... [--inputs JSON] [--payload JSON]
                           run a workflow against scripted answers, in fake time, and tell step by step what happens;
                           exit as a job with this result would

  --workflow NAME          show, test: which one of several in FILE
  --start ID               test: the start node that fires; else the first
  --json                   check, test: for programs

FILE is a workflow or a configuration with `workflows`. No instance, model or server is needed or asked.
"""

_COMMANDS = {name: f"{__name__}.{name}" for name in ("check", "show", "test")}


def main(args: list[str], environ: Mapping[str, str]) -> int:
    """Do ``args[0]``; its exit code. Raises UsageError, ConfigError."""
    if not args or any(word in ("-h", "--help") for word in args):
        return emit(USAGE)
    if args[0] not in _COMMANDS:
        raise UsageError(f"there is no command workflow {args[0]}; there are: {', '.join(_COMMANDS)}")
    return int(importlib.import_module(_COMMANDS[args[0]]).main(args[1:]))
