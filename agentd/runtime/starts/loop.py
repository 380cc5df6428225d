"""`loop` fires again when the previous run ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.engine.starts import is_last
from agentd.errors import AgentdError
from agentd.runtime.admission import event_id
from agentd.runtime.ids import new_id
from agentd.runtime.outcome import Ended
from agentd.runtime.starts.start import Expects, Start
from agentd.runtime.starts.ticks import iso

if TYPE_CHECKING:
    from agentd.runtime.live import Live
    from agentd.runtime.timers import Timer
    from agentd.runtime.triggers import Door

_GOOD = ("completed", "partial")
_INITIAL, _FACTOR, _MOST = 1.0, 2.0, 300.0
"""The backoff of a loop that has no pause at all."""

_RETRY = 5.0
"""Seconds until a start that was not accepted is tried again."""


class Loop(Start):
    """The first at once; the next `interval` after a start and `delay` after an end, whichever is later.

    After failed runs the pause grows as `backoff` says; a loop without any pause gets the default one then, so that it
    does not spin. State ``{series, iteration, run, fired, due, failures, over}``: `run` is the live iteration or None,
    `due` when the next one starts. It moves with the event that starts an iteration, in one commit, and the run's id
    comes from series and iteration, so that an iteration is started once whatever happens.
    """

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self._timer: Timer | None = None
        self._disarmed = False

    @property
    def expects(self) -> Expects:  # type: ignore[override]
        return "nothing" if self._disarmed or (self.door.state or {}).get("over") else "surely"

    async def arm(self) -> None:
        instance, state = self.door.instance, self.door.state
        if state is None:
            state = {"series": new_id(), "iteration": 0, "run": None, "fired": 0.0, "due": instance.clock.now(),
                     "failures": 0, "over": False}  # fmt: skip
            self.door.note(state)
        if state["over"]:
            return
        run = state["run"]
        if run is None:
            self._wait(state["due"])
        elif (record := instance.finished_runs.get(run)) is not None:
            whole = await instance.spill.restore(record)
            self._ended(run, record["status"], whole.get("output"), record.get("err"), record["ended"])
        elif not instance.expected_run(run):
            self.dropped(run)

    def run_ended(self, ended: Ended, live: Live) -> None:
        if (self.door.state or {}).get("run") == ended.run:
            self._ended(ended.run, ended.status, ended.output, ended.error, live.record["ended"])

    def dropped(self, run: str) -> None:
        if (self.door.state or {}).get("run") == run:
            self._ended(run, "cancelled", None, None, self.door.instance.clock.now())

    def _ended(self, run: str, status: str, output: Any, error: Mapping[str, Any] | None, at: float) -> None:
        """The iteration is over: from the definition, the state and its end comes what is next."""
        door, instance = self.door, self.door.instance
        fields, state = door.node.fields, dict(door.state or {})
        facts = {"run": run, "status": status, "output": output, "err": error, "iteration": state["iteration"]}
        failures = 0 if status in _GOOD else state["failures"] + 1
        over = is_last(door.plan, door.node.id, facts, {"instance": instance.name, "ts": at}) or (
            fields.max_iterations is not None and state["iteration"] >= fields.max_iterations
        )
        due = max(state["fired"] + (fields.interval or 0.0), at + (fields.delay or 0.0), at + pause(fields, failures))
        door.note({**state, "run": None, "failures": failures, "due": due, "over": over})
        if not over:
            self._wait(due)

    def _wait(self, due: float) -> None:
        if not self._disarmed:
            self._timer = self.door.instance.timers.at(due, self._start)

    def _start(self) -> None:
        self.door.instance.background(self._fire())

    async def _fire(self) -> None:
        door, now = self.door, self.door.instance.clock.now()
        state = dict(door.state or {})
        iteration = state["iteration"] + 1
        run = event_id(door.plan.name, door.node.id, f"{state['series']}:{iteration}")
        state.update(iteration=iteration, run=run, fired=now, due=None)
        try:
            event = await door.fire({"iteration": iteration}, id=run, state=state)
        except AgentdError:
            event = None  # the door has said why
        if event is None:
            self._stay()

    def _stay(self) -> None:
        """Nothing was started: what a filter kept out counts as an iteration, what was refused is tried again."""
        instance, state = self.door.instance, self.door.state or {}
        if state.get("run") is not None and not instance.expected_run(state["run"]):
            self._ended(state["run"], "failed", None, None, instance.clock.now())
        else:
            self._wait(instance.clock.now() + _RETRY)

    def disarm(self) -> None:
        self._disarmed = True
        if self._timer is not None:
            self._timer.cancel()

    def describe(self) -> dict[str, Any]:
        state = self.door.state or {}
        due = {"next": iso(state["due"])} if state.get("due") is not None and not state.get("over") else {}
        return {"iteration": state.get("iteration", 0), **due}


def pause(fields: Any, failures: int) -> float:
    """Seconds of rest after so many failed runs in a row."""
    growing = fields.backoff
    if failures == 0 or (growing is None and (fields.interval is not None or fields.delay is not None)):
        return 0.0
    initial, factor, most = (growing.initial, growing.factor, growing.max) if growing else (_INITIAL, _FACTOR, _MOST)
    return float(min(most, initial * factor ** min(failures - 1, 64)))
