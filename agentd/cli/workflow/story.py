"""A rehearsal, told line by line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentd.runtime.rehearsal.play import Line

_WIDTH = 100
_SIGNS = {"done": "✓", "failed": "✗", "timeout": "✗", "skipped": "-"}


def told(line: Line) -> str | None:
    """``    1m30s  ✓ pull  {"count":2}``; None for what another line tells."""
    facts, sign, text = line.facts, "·", ""
    match line.event:
        case "start":
            sign, text = "▶", f"{facts['kind']} {_short(facts['inputs'])}"
        case "ask":
            again = f" (attempt {facts['attempt']})" if facts["attempt"] > 1 else ""
            sign, text = "…", f"{facts['kind']} {facts['name']}".rstrip() + again
            text += "".join(f"\n{'':14}{call}" for call in map(_cut, facts["calls"]))
        case "wait":
            text = _awaited(facts)
            sign = "◌"
        case "step.done":
            sign = _SIGNS.get(facts["status"], "✗")
            error = facts.get("err")
            text = f"{error['code']}: {error['message']}" if error else _short(facts.get("output"))
        case "step.retry":
            sign, text = "↻", f"again in {length(facts['backoff_ms'] / 1000)}"
        case "step.goto":
            sign, text = "↷", f"to {facts['to']}"
        case "step.cache_hit":
            sign, text = "=", "from the cache"
        case _:
            return None
    return f"{length(line.at):>9}  {sign} {line.step}  {text}".rstrip()


def length(seconds: float) -> str:
    """``1h30m``, ``2.5s``."""
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    days, hours = divmod(hours, 24)
    parts = [f"{n}{unit}" for n, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if n]
    return "".join([*parts, *([f"{rest:g}s"] if rest or not parts else [])])


def _awaited(facts: Any) -> str:
    on, seconds = facts["on"], facts["seconds"]
    what = " ".join(str(on[word]) for word in ("on", "name", "run", "uri", "handle") if on.get(word))
    limit = "" if seconds is None else f"{'at most ' if on else ''}{length(seconds)}"
    return ", ".join(filter(None, (f"waits for {what}" if what else "waits", limit)))


def _short(value: Any) -> str:
    return "" if value is None else _cut(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _WIDTH else text[: _WIDTH - 1] + "…"
