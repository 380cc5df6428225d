"""How an instance and its runs stand, for a person to read; pure but for the local clock."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_WIDE = 100
"""A value longer than this is cut in a line."""


def instance(status: Mapping[str, Any]) -> str:
    """The whole instance."""
    lines = [
        f"{status['instance']}: {status['state']}, up {_span(status['uptime_ms'] / 1000)}, generation "
        f"{status['generation']}, store {status['store']}, pressure {status['pressure']}"
    ]
    workflows = [
        (w["name"], f"{w['running']} running", f"{w['waiting']} queued", "" if w["armed"] else "not armed",
         ", ".join(_start(start) for start in w["starts"]))
        for w in status["workflows"]
    ]  # fmt: skip
    lines += _section("workflows", workflows)
    lines += _section("runs", [(*_run(r), _doing(r)) for r in status["runs"]])
    lines += _section("queued", [(e["event"], e["workflow"], _ago(e["accepted"])) for e in status["inbox"]])
    lines += _section(f"finished ({_counts(status['finished'])})", [(*_run(r), _error(r)) for r in status["recent"]])
    return "\n".join(lines) + "\n"


def run(status: Mapping[str, Any]) -> str:
    """One run with its steps."""
    if status["status"] == "queued":
        return f"{status['run']}: queued\n"
    lines = [" ".join((f"{status['run']}:", status["workflow"], status["status"], _times(status), _error(status)))]
    lines += _section("inputs", [(name, _short(value)) for name, value in (status["inputs"] or {}).items()])
    steps = [
        (entry, step["status"], f"attempt {step['attempt']}" if step.get("attempt", 1) > 1 else "",
         _short(step.get("error") or step.get("output")))
        for entry, step in status["steps"].items()
    ]  # fmt: skip
    lines += _section("steps", steps)
    if status.get("waits"):
        lines.append(f"waits for {_doing(status)}")
    if status.get("output") is not None:
        lines += ["", "output", "  " + _short(status["output"])]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def question(gate: Mapping[str, Any]) -> str:
    """One open question."""
    whom = f" (to {gate['to']})" if gate.get("to") else ""
    form = f"\n  answer by {_short(gate['schema'])}" if gate.get("schema") else ""
    return f"{gate['task']}  {gate['workflow']} {gate['run']}{whom}\n  {gate['question']}{form}\n"


def _section(title: str, rows: Iterable[Sequence[str]]) -> list[str]:
    rows = list(rows)
    if not rows:
        return []
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return ["", title, *(f"  {line}" for line in lines)]


def _start(start: Mapping[str, Any]) -> str:
    when = f" next {start['next']}" if "next" in start else ""
    return f"{start['node']} ({start['kind']}{when})"


def _run(run: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return run["run"], run["workflow"], run["status"], _times(run)


def _times(run: Mapping[str, Any]) -> str:
    took = f", took {_span(run['ended'] - run['started'])}" if "ended" in run else ""
    return f"started {_ago(run['started'])}{took}"


def _doing(run: Mapping[str, Any]) -> str:
    waits = [f"{wait['step']} ({_wait(wait)})" for wait in run.get("waits", ())]
    return ", ".join([*run.get("doing", ()), *waits])


def _wait(wait: Mapping[str, Any]) -> str:
    until = f"until {time.strftime('%H:%M:%S', time.localtime(wait['until']))}" if wait.get("until") else ""
    on = wait["on"]
    what = " ".join(str(on[key]) for key in ("on", "signal", "name", "run", "gate") if on.get(key) not in (None, ""))
    return " ".join(part for part in (what, until) if part) or wait["kind"]


def _error(run: Mapping[str, Any]) -> str:
    err = run.get("err") or {}
    return f"{err.get('code', '')}: {err.get('message', '')}" if err else ""


def _counts(finished: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in sorted(finished.items()))


def _ago(at: float) -> str:
    return f"{_span(max(0.0, time.time() - at))} ago"


def _span(seconds: float) -> str:
    """``350ms``, ``12s``, ``3m05s``, ``2h10m``, ``4d03h``."""
    if seconds < 1:
        return f"{int(seconds * 1000)}ms"
    whole = int(seconds)
    for unit, below, size, part in (("m", "s", 60, 1), ("h", "m", 3600, 60), ("d", "h", 86400, 3600)):
        if whole < size * (60 if unit == "m" else 24 if unit == "h" else 1 << 62):
            return f"{whole}s" if whole < 60 else f"{whole // size}{unit}{whole % size // part:02d}{below}"
    return f"{whole}s"


def _short(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= _WIDE else text[: _WIDE - 1] + "…"
