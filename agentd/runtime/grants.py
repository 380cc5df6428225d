"""Whether a tool may be called: the supervisor's word at the time of the call, whatever the model was shown; pure."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from agentd.config.document import Tools


def refusal(tool: str, granted: Sequence[str], tools: Tools) -> str | None:
    """Why the MCP tool `tool` (``<ns or server>.<tool>``) may not be called, None when it may.

    A tool that serves another by `tools.overrides` is granted with the one it serves.
    """
    if _matches(tool, tools.disabled):
        return f"the tool {tool} is disabled"
    names = [tool, *(shown for shown, served in tools.overrides.items() if served == tool)]
    if any(_matches(name, granted) for name in names):
        return None
    return f"the tool {tool} is not granted"


def _matches(name: str, globs: Sequence[str]) -> bool:
    return any(fnmatchcase(name, glob) for glob in globs)
