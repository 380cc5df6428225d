"""`workflow`, `workflow.signal|wait|cancel` and `join`: what runs do with other runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Done, Failed, Outcome
from agentd.engine.starts import InputsInvalid
from agentd.ports.nodes import Suspend
from agentd.runtime.operations import entrance

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call
    from agentd.runtime.runs import Performer

MAX_DEPTH = 16
"""How deep workflows may start one another: a definition that starts itself comes to an end."""


def performers(instance: Instance) -> Mapping[str, Performer]:
    """The kinds of this family."""
    steps = WorkflowSteps(instance)
    return {
        "workflow": steps.run, "workflow.signal": steps.signal, "workflow.wait": steps.wait,
        "workflow.cancel": steps.cancel, "join": steps.join,
    }  # fmt: skip


class WorkflowSteps:
    """A run that another one starts enters by the same inbox as every event; the step's key makes it one run."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def run(self, call: Call) -> Outcome:
        """sync: ``{run, status, output}``, failing with the run; async and detached: ``{run, workflow}`` at once."""
        fields, instance = call.fields, self._instance
        plan = instance.definitions.plan(fields["name"])
        if plan is None:
            known = ", ".join(sorted(instance.definitions.current))
            return _wrong(f"there is no workflow {fields['name']!r}; there are: {known}")
        depth = int((call.live.record.get("parent") or {}).get("depth", 0)) + 1
        if depth > MAX_DEPTH:
            return _wrong(f"workflows started one another {MAX_DEPTH} deep: does {plan.name} start itself?")
        parent = {"run": call.run_id, "step": call.step_id, "depth": str(depth)}
        if fields["cascade"] and fields["mode"] != "detached":
            parent["cascade"] = fields["mode"]
        try:
            run = await instance.triggers.manual(
                plan, entrance(plan), fields["inputs"], key=f"{plan.name}/{call.key}", parent=parent
            )
        except InputsInvalid as error:
            return Failed(error.code, error.message, retry=False)
        instance.steps.nested.started(run, parent)
        if fields["mode"] != "sync":
            return Done({"run": run, "workflow": plan.name})
        return Suspend(on={"run": run, "must_complete": True}, until=_until(instance, call))

    async def signal(self, call: Call) -> Outcome:
        """``{id, woken, started, kept}``: where the signal went, once it is durable."""
        fields = call.fields
        taken = await self._instance.signals.send(
            fields["name"], fields["payload"], sender=call.run_id, run=fields["run"]
        )
        return Done({"id": taken.id, "woken": taken.woken, "started": taken.started, "kept": taken.kept})

    def wait(self, call: Call) -> Outcome:
        """``{run, status, output}`` of a run, however it ends."""
        return Suspend(on={"run": handle(call.fields["run"])}, until=_until(self._instance, call))

    def cancel(self, call: Call) -> Outcome:
        """``{run, cancelled}``: whether there was one to cancel."""
        run, instance = handle(call.fields["run"]), self._instance
        reason = call.fields["reason"] or f"cancelled by {call.workflow}"
        cancelled = instance.admission.cancel(run) or instance.runs.cancel(run, reason)
        return Done({"run": run, "cancelled": cancelled})

    def join(self, call: Call) -> Outcome:
        """Runs by position, ``{run, status, output}`` each; null for one that is not over when that is allowed."""
        given = call.fields["handles"]
        handles = list(map(handle, given if isinstance(given, list) else [given]))
        if not handles:
            return Done([])
        least = min(call.fields["min"] or len(handles), len(handles))
        until = _until(self._instance, call)
        on: dict[str, Any] = {"join": handles, "min": least}
        if call.fields["partials"]:
            # The wait answers by itself at its time, with what there is.
            return Suspend(on={**on, "partials_at": until})
        return Suspend(on=on, until=until)


def handle(value: Any) -> str:
    """The run that a handle, or the output of a `workflow` step, names."""
    return str(value["run"] if isinstance(value, Mapping) and "run" in value else value)


def _until(instance: Instance, call: Call) -> float | None:
    return None if call.effect.timeout is None else instance.clock.now() + call.effect.timeout


def _wrong(message: str) -> Failed:
    return Failed("step", message, retry=False)
