"""How an instance and its runs stand, as JSON for an operator."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from agentd import __version__

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance

_RECENT = 10
"""Finished runs that a status names; the others it counts."""


def state_of(instance: Instance) -> str:
    """running, paused, lameduck or draining."""
    if instance.draining:
        return "draining"
    return "lameduck" if instance.lameduck else "paused" if instance.paused else "running"


def of_instance(instance: Instance) -> dict[str, Any]:
    """The whole instance; instants are epoch seconds."""
    finished = instance.finished_runs
    recent = sorted(finished.items(), key=lambda item: item[1].get("ended", 0))[-_RECENT:]
    return {
        "instance": instance.name,
        "version": __version__,
        "state": state_of(instance),
        "shape": instance.shape,
        "generation": instance.journal.generation,
        "uptime_ms": int((instance.clock.monotonic() - instance.started) * 1000),
        "store": instance.journal.health.name.lower(),
        "pressure": instance.gauge.level.name.lower(),
        "workflows": [_workflow(instance, name) for name in instance.definitions.current],
        "runs": [_live(instance, id) for id in instance.runs.live],
        "inbox": [
            {"event": event.id, "workflow": event.workflow, "node": event.node, "accepted": event.ts}
            for event in instance.admission.waiting_events
        ],
        "finished": dict(Counter(str(record.get("status")) for record in finished.values())),
        "recent": [_summary(id, record) for id, record in reversed(recent)],
    }


def _workflow(instance: Instance, name: str) -> dict[str, Any]:
    plan = instance.definitions.current[name]
    return {
        "name": name,
        "hash": plan.hash,
        "armed": plan.workflow.armed,
        "running": instance.running()[1][name],
        "waiting": instance.admission.waiting(name),
        "starts": instance.triggers.described(name),
    }


_SHOWN = ("workflow", "node", "status", "started", "ended", "err")


def _summary(id: str, record: dict[str, Any]) -> dict[str, Any]:
    shown = {key: record[key] for key in _SHOWN if key in record}
    return {"run": id, **shown}


def _live(instance: Instance, id: str) -> dict[str, Any]:
    live = instance.runs.live[id]
    waits = [{"step": w.entry, "kind": w.kind, "on": dict(w.on), "until": w.until} for w in live.waits.values()]
    return {**_summary(id, live.record), "doing": sorted(live.tasks), "waits": waits}


async def of_run(instance: Instance, id: str) -> dict[str, Any] | None:
    """One run with its recorded steps, None when there is none."""
    if instance.admission.holds(id):
        return {"run": id, "status": "queued"}
    if id in instance.runs.live:
        told, record = _live(instance, id), instance.runs.live[id].record
    elif (found := instance.finished_runs.get(id)) is not None:
        told, record = _summary(id, found), await instance.spill.restore(found)
    else:
        return None
    steps = await instance.journal.read_many("step", f"{id}/")
    return {
        **told,
        "deadline": record.get("deadline"),
        "inputs": record.get("inputs"),
        "output": record.get("output"),
        "steps": {entry.partition("/")[2]: _step(state) for entry, state in steps.items()},
    }


def _step(state: dict[str, Any]) -> dict[str, Any]:
    return {key: state[key] for key in ("status", "attempt", "error", "output") if state.get(key) is not None}
