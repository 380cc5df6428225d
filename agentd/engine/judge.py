"""What an answer, or a rendering, amounts to; pure."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentd.engine.decision import Done, Error, Failed, Finished, Outcome, RunStatus, Skipped, TimedOut
from agentd.engine.plan import Plan
from agentd.engine.state import Record, Step


class Verdict(NamedTuple):
    """The end of an attempt; `retry` says whether another may help, `cached` that nothing was performed."""

    status: str
    output: Any = None
    error: Error | None = None
    retry: bool = True
    cached: bool = False


def verdict(step: Step, outcome: Outcome) -> Verdict:
    """What `outcome` means for `step`, its output schema included."""
    if isinstance(outcome, Done):
        error = unmet(step, outcome.output)
        return Verdict("failed" if error else "done", outcome.output, error, cached=outcome.cached)
    if isinstance(outcome, Failed):
        failure: Error = {"code": outcome.code, "message": outcome.message}
        if outcome.fields:
            failure["fields"] = dict(outcome.fields)
        return Verdict("failed", None, failure, outcome.retry)
    if isinstance(outcome, TimedOut):
        return Verdict(
            "timeout", None, {"code": "timeout", "message": outcome.message or "the step ran out of its time"}
        )
    if isinstance(outcome, Skipped):
        return Verdict("skipped")
    raise TypeError(f"no outcome: {outcome!r}")


def unmet(step: Step, output: Any) -> Error | None:
    """The error of an output that does not meet the step's `output_schema`."""
    problem = step.node.schema.problem(output) if step.node.schema is not None else None
    if problem is None:
        return None
    return {"code": "output_schema", "message": f"the output does not meet output_schema: {problem}"}


def render(step: Step, known: Record | None) -> dict[str, Any] | None:
    """The rendered fields of `step`, None when its guard does not hold.

    `known` is what an earlier life wrote down of an entry that reads the memory: what was read then counts. Raises
    :class:`~agentd.engine.paths.Missing` and ValueError.
    """
    node, scope = step.node, step.scope
    if known is not None and known["status"] == "skipped" and "n" not in known:
        return None
    if known is not None and "fields" in known:
        fields: dict[str, Any] = known["fields"]
        return fields
    if node.when is not None and not node.when(scope):
        return None
    return node.render(scope) if node.render is not None else node.fields


def conclusion(plan: Plan, step: Step) -> Finished:
    """The end of the run as its `finish` step has it, `outputs.schema` enforced."""
    fields = step.fields
    output, status, reason = fields.get("output"), fields["status"], fields.get("reason") or ""
    if step.node.options.get("output") == "dependency":
        output = _only_dependency(step)
    problem = plan.outputs.problem(output) if status in ("completed", "partial") else None
    err: Error | None = None
    if problem is not None:
        status = "failed"
        err = {"code": "output_schema", "message": f"the output does not meet outputs.schema: {problem}"}
    elif status == "failed":
        err = {"code": "failed", "message": reason or "finished as failed"}
    final: RunStatus = status
    return Finished(final, output, None if err is None else {**err, "step": step.entry}, reason)


def _only_dependency(step: Step) -> Any:
    """A `finish` without an output passes on what came from the one step before it, when it was one."""
    sources = [step.scope.steps[i] for i in step.scope.graph.sources[step.node.index]]
    done = [s for s in sources if s is not None and s.status == "done" and s.node.role != "start"]
    return done[0].output if len(done) == 1 else None
