"""From how runs ended to what a job prints and the code it exits with; pure. Contract: `docs/exit-codes.md`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentd import errors

_BY_STATUS = {
    "completed": errors.EXIT_OK,
    "partial": errors.EXIT_PARTIAL,
    "stalled": errors.EXIT_PARTIAL,
    "refused": errors.EXIT_REFUSED,
    "loop_detected": errors.EXIT_REFUSED,
    "cancelled": errors.EXIT_FAILED,
}
_BY_ERROR = {
    "budget": errors.EXIT_BUDGET,
    "deadline": errors.EXIT_DEADLINE,
    "intelligence": errors.EXIT_INTELLIGENCE,
    "server": errors.EXIT_SERVER,
    "refused": errors.EXIT_REFUSED,
    "loop_detected": errors.EXIT_REFUSED,
    "config": errors.EXIT_CONFIG,
}
_SEVERITY = (2, 6, 4, 124, 7, 1, 5, 3, 0)
"""Which code speaks for several runs: the first of these that any of them has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A run that is final: its workflow, status, output and error as data (``{code, message}``) or None."""

    run: str
    workflow: str
    status: str
    output: Any = None
    error: Mapping[str, Any] | None = None


def code_of(run: Ended) -> int:
    """The exit code that `run` alone would give a job."""
    if run.status == "failed":
        return _BY_ERROR.get(str((run.error or {}).get("code")), errors.EXIT_FAILED)
    return _BY_STATUS.get(run.status, errors.EXIT_FAILED)


def job_code(runs: Sequence[Ended], remap: Mapping[Any, int]) -> int:
    """The exit code of a job whose runs ended so; `remap` is `lifecycle.exit_code_map`."""
    codes = {code_of(r) for r in runs}
    code = next((c for c in _SEVERITY if c in codes), errors.EXIT_OK)
    return remap.get(str(code), code)


def job_output(runs: Sequence[Ended]) -> str:
    """What the job prints: a string raw plus newline, null nothing, other JSON pretty-printed.

    Several runs print one object, by workflow.
    """
    shown = [r for r in runs if r.output is not None]
    if not shown:
        return ""
    value = shown[0].output if len(runs) == 1 else {r.workflow: r.output for r in shown}
    if isinstance(value, str):
        return value + "\n"
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def happening(ended: Ended) -> tuple[str, dict[str, Any], str]:
    """What the `event` start node hears of an end: its name, payload and key."""
    name = "workflow.finished" if ended.status in ("completed", "partial") else "workflow.failed"
    payload = {"run": ended.run, "workflow": ended.workflow, "status": ended.status, "output": ended.output,
               "err": dict(ended.error) if ended.error else None}  # fmt: skip
    return name, payload, ended.run
