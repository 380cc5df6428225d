"""`schedule` fires on the clock."""

from __future__ import annotations

from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from agentd.engine.startrules import time_of_day
from agentd.errors import AgentdError
from agentd.runtime.starts.start import Expects, Start
from agentd.runtime.starts.ticks import At, Daily, Every, Ruled, Spread, Ticks, Verdict, instant, iso, judge, key

if TYPE_CHECKING:
    from agentd.runtime.timers import Timer
    from agentd.runtime.triggers import Door


class Schedule(Start):
    """State ``{anchor, handled}``: when it was first armed and the last tick that was handled.

    The event of a tick and the state that calls it handled are one commit, and its key comes from the tick: a restart
    neither repeats nor loses one. The payload is ``{tick}``.
    """

    def __init__(self, door: Door) -> None:
        super().__init__(door)
        self._timer: Timer | None = None
        self._next: float | None = None
        self._spread = Spread(door.node.fields.jitter or 0.0, door.id)
        self._firing = False
        self._disarmed = False

    @property
    def expects(self) -> Expects:  # type: ignore[override]
        return "surely" if self._firing or self._next is not None else "nothing"

    async def arm(self) -> None:
        door, now = self.door, self.door.instance.clock.now()
        state = door.state
        if state is None:
            state = {"anchor": now, "handled": 0 if isinstance(self._of(door.node.fields, now), At) else now}
            door.note(state)
        self._ticks = self._of(door.node.fields, float(state["anchor"]))
        door.instance.timers.stepped.append(self._stepped)
        await self._look(present=False)

    def _of(self, fields: Any, anchor: float) -> Ticks:
        zone: tzinfo = UTC if fields.tz is None else ZoneInfo(fields.tz)
        if fields.every is not None:
            return Every(anchor, fields.every)
        if fields.at is not None:
            try:
                return Daily(time_of_day(fields.at), zone)
            except ValueError:
                return At(instant(fields.at, zone))
        ((name, text),) = fields.model_extra.items()
        return Ruled(self.door.instance.loaded.plugins.schedule_rules[name].parse(text, zone))

    async def _look(self, *, present: bool) -> None:
        """Fire what is due, and wait for what comes next."""
        self._firing = True
        try:
            await self._act(present)
        finally:
            self._firing = False
            if present:
                self.door.instance.idle.check()

    async def _act(self, present: bool) -> None:
        door, now = self.door, self.door.instance.clock.now()
        state = dict(door.state or {})
        verdict = judge(
            self._ticks, float(state["handled"]), now,
            catch_up=door.node.fields.catch_up, spread=self._spread, present=present,
        )  # fmt: skip
        self._await(verdict)
        if verdict.missed:
            door.skip(f"missed {verdict.missed} ticks up to {iso(verdict.handled)}")
            if not verdict.fire:
                door.note({**state, "handled": verdict.handled})
        for tick in verdict.fire:
            try:
                await door.fire({"tick": iso(tick)}, key=self._key(tick), state={**state, "handled": tick})
            except AgentdError:
                return  # the door has said why; what was not accepted counts as missed when it is looked at next

    def _await(self, verdict: Verdict) -> None:
        self._next = None if verdict.next is None or self._disarmed else self._spread.due(verdict.next)
        if self._next is not None:
            self._timer = self.door.instance.timers.at(self._next, self._tick)

    def _tick(self) -> None:
        self.door.instance.background(self._look(present=True))

    def _key(self, tick: float) -> str:
        """What names a tick of this node; a period that was begun anew has other ticks."""
        anchor = f"{self._ticks.anchor:.3f}:" if isinstance(self._ticks, Every) else ""
        return f"{anchor}{key(tick)}"

    def _stepped(self, by: float) -> None:
        """The wall clock was set. A period is elapsed time: when it was set back, the next tick comes as much sooner.

        Set forward (or a machine that slept) looks like an absence, and the missed ticks are treated so.
        """
        if by >= 0 or not isinstance(self._ticks, Every) or self._disarmed:
            return
        state = dict(self.door.state or {})
        state.update(anchor=state["anchor"] + by, handled=state["handled"] + by)
        self.door.note(state)
        self._ticks = Every(state["anchor"], self._ticks.period)
        if self._timer is not None:
            self._timer.cancel()
        self._tick()

    def disarm(self) -> None:
        self._disarmed, self._next = True, None
        if self._timer is not None:
            self._timer.cancel()

    def describe(self) -> dict[str, Any]:
        return {"next": iso(self._next)} if self._next is not None else {}
