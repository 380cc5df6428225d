"""How steps are written down: durable records and log events; pure. Keys that say nothing are left out."""

from __future__ import annotations

from typing import Any

from agentd.engine.decision import Error
from agentd.engine.state import Record, Step

Event = tuple[str, dict[str, Any]]


def running(step: Step, now: float, not_before: float | None) -> Record:
    """An attempt is about to be performed."""
    record: Record = {"status": "running", "attempt": step.attempt, "at": now}
    if step.failures:
        record["failures"] = step.failures
    if step.tokens:
        record["tokens"] = step.tokens
    if not_before is not None:
        record["not_before"] = not_before
    if step.node.volatile:
        record["fields"] = step.fields
    return record


def suspended(step: Step, now: float) -> Record:
    """The step waits, for `on` or until an instant."""
    record: Record = {"status": "suspended", "on": step.on, "until": step.until, "attempt": step.attempt, "at": now}
    if step.failures:
        record["failures"] = step.failures
    if step.tokens:
        record["tokens"] = step.tokens
    if step.node.volatile:
        record["fields"] = step.fields
    return record


def ended(step: Step, now: float, status: str, output: Any, error: Error | None) -> Record:
    """The step is over. Its number `n` is given by the fold."""
    record: Record = {"status": status, "attempt": step.attempt, "at": now}
    if error is not None:
        record["error"] = error
    elif output is not None:
        record["output"] = output
    if step.tokens:
        record["tokens"] = step.tokens
    if step.rounds:
        record["rounds"] = step.rounds
    if step.node.volatile:
        record["fields"] = step.fields
    return record


def begun(step: Step) -> Event:
    return "step.start", {"step": step.entry, "kind": step.node.kind, "attempt": step.attempt}


def over(step: Step, now: float, status: str, error: Error | None = None) -> Event:
    fields: dict[str, Any] = {"step": step.entry, "status": status, "attempt": step.attempt}
    if step.tokens:
        fields["tokens"] = step.tokens
    if error is not None:
        fields["err"] = {"code": error["code"], "message": error["message"]}
    fields["dur_ms"] = round((now - step.started) * 1000, 3)
    return "step.done", fields


def retried(step: Step, attempt: int, delay: float) -> Event:
    return "step.retry", {"step": step.entry, "attempt": attempt, "backoff_ms": round(delay * 1000)}
