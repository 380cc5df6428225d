"""What is wrong with a configuration: found all at once, told one line each."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal, NamedTuple

from agentd.config.syntax import Where


class Finding(NamedTuple):
    """`path` is dotted, list positions in brackets; a flag or variable stands in its own spelling."""

    level: Literal["error", "warning"]
    path: str
    msg: str


def dotted(at: Where) -> str:
    """``limits.run.steps``, ``mcp.servers[0].name``."""
    text = ""
    for key in at:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text


def nearest(word: str, known: Iterable[str]) -> str:
    """`` (did you mean …?)`` for a likely slip, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f" (did you mean {close[0]}?)" if close else ""
