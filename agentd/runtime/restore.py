"""What a new life makes of what the last one left: runs go on, accepted events wait again."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Limits, Run
from agentd.journal.restored import FINISHED, Restored

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance


def run_of(instance: str, id: str, record: Mapping[str, Any]) -> Run:
    """The engine's view of a run record; the same in every life."""
    limits = record.get("limits") or {}
    return Run(
        id=id, node=record["node"], payload=record.get("payload"), inputs=record.get("inputs") or {},
        started=record["started"], instance=instance,
        limits=Limits(steps=limits.get("steps"), tokens=limits.get("tokens")),
    )  # fmt: skip


async def restore(instance: Instance, restored: Restored) -> None:
    """Resume every live run on the definition it began with, and take back the inbox. Exactly one restore line."""
    instance.finished_runs = {id: run for id, run in restored.runs.items() if run.get("status") in FINISHED}
    kept = await instance.journal.read_many("definition")
    removals = instance.definitions.restore(kept, [run["hash"] for run in restored.unfinished.values()])
    if removals:
        instance.journal.write(removals, lambda error: None)
    resumed, lost = [], 0
    for id, record in restored.unfinished.items():
        plan = instance.definitions.pinned(record["hash"])
        if plan is None:
            lost += 1
            why = instance.definitions.unreadable.get(record["hash"])
            instance.log("restore.lost", run=id, workflow=record.get("workflow"), err=why,
                         msg="the definition this run was started with cannot be used; the run is kept")  # fmt: skip
            continue
        steps = await _whole(instance, restored.steps.get(id, {}))
        resumed.append(instance.runs.resume(run_of(instance.name, id, record), plan, record, steps.items()))
    instance.admission.restore(instance.signals.restore(restored))
    for event in instance.admission.waiting_events:
        if instance.definitions.plan(event.workflow) is None:
            lost += 1
            instance.log("restore.lost", run=event.id, workflow=event.workflow,
                         msg="the workflow of this accepted event is not configured; the event is kept")  # fmt: skip
    if restored.fresh:
        more: dict[str, Any] = {}
        if restored.superseded is not None:
            more = {"superseded": restored.superseded, "retired": restored.retired}
        instance.log("restore.fresh", generation=restored.generation, **more)
    else:
        instance.log("restore.done", generation=restored.generation, entities=restored.entities,
                     runs_resumed=len(resumed), events_replayed=len(restored.inbox),
                     inbox_pending=instance.admission.pending, lost=lost)  # fmt: skip
    for go_on in resumed:
        go_on()
    _unload(instance)


def _unload(instance: Instance) -> None:
    """Live runs of workflows that the configuration no longer has: each definition says what becomes of them."""
    for live in list(instance.runs.live.values()):
        unload = live.plan.workflow.unload
        if live.plan.name in instance.definitions.current:
            continue
        if unload.policy == "cancel":
            instance.runs.cancel(live.id, "its workflow was removed")
        elif unload.policy == "drain" and unload.timeout is not None:
            late = partial(instance.runs.cancel, live.id, "its workflow was removed, and it took too long to end")
            instance.timers.at(instance.clock.now() + unload.timeout, late)


async def recover(instance: Instance) -> None:
    """The store works again: runs whose records it refused go on from what is durable."""
    instance.definitions.doubt()
    for live in [r for r in instance.runs.live.values() if r.broken]:
        instance.runs.forget(live.id)
        record = await instance.journal.read("run", live.id)
        if record is None:  # it was its first commit that failed, so its event is still in the inbox
            if (event := await instance.journal.read("inbox", live.id)) is not None:
                instance.admission.restore({live.id: event})
            continue
        found = await instance.journal.read_many("step", f"{live.id}/")
        steps = await _whole(instance, {id.partition("/")[2]: state for id, state in found.items()})
        instance.runs.resume(run_of(instance.name, live.id, record), live.plan, record, steps.items())()
    instance.admission.changed()


async def _whole(instance: Instance, steps: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Step records with spilled outputs put back."""
    return {
        entry: await instance.spill.restore(state) if isinstance(state.get("output"), dict) else state
        for entry, state in steps.items()
    }
