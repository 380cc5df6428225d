"""Start nodes, armed: each kind is an object that knows when to fire; all fire through one door."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from agentd.engine.starts import InputsInvalid, passes, render_inputs
from agentd.errors import BudgetExceeded
from agentd.journal.journal import Record
from agentd.runtime.admission import Event, NotAccepted
from agentd.runtime.outcome import Ended, happening
from agentd.runtime.starts import start_class
from agentd.runtime.starts.start import Expects, Start

if TYPE_CHECKING:
    from agentd.engine.plan import Plan, StartNode
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live


_REST_FIRST, _REST_MOST = 1.0, 30.0


class Door:
    """What a start node fires through: filter, inputs, inbox, and its own durable state.

    `state` is the node's durable state, None before the first.
    """

    def __init__(self, instance: Instance, plan: Plan, node: StartNode, state: dict[str, Any] | None) -> None:
        self.instance, self.plan, self.node, self.state = instance, plan, node, state
        self.id = f"{plan.name}/{node.id}"
        self.filters = True
        """Whether the node's filter is asked of each payload."""

    def record(self, state: dict[str, Any]) -> Record:
        """The record that makes `state` the node's; to be committed with what it belongs to."""
        self.state = state
        return ("start", self.id, {"kind": self.node.kind, "state": state})

    def skip(self, reason: str, *, level: str = "info") -> None:
        """Say that it fired, or would have, and that nothing came of it."""
        self.instance.log("start.skipped", level=level, workflow=self.plan.name, node=self.node.id, reason=reason)

    def note(self, state: dict[str, Any]) -> None:
        """Make `state` the node's, durable a little later: for what would be found again without it."""
        self.instance.journal.write([self.record(state)], lambda error: self.instance.idle.check())

    async def save(self, state: dict[str, Any]) -> None:
        """Make `state` the node's, durably."""
        future = self.instance.journal.write([self.record(state)])
        assert future is not None
        await future

    async def insist(self, payload: Any, *, key: str, state: dict[str, Any]) -> str | None:
        """Like :meth:`fire`, again and again while the event is shed or not accepted: for sources that can wait."""
        rest = _REST_FIRST
        while True:
            try:
                return await self.fire(payload, key=key, state=state, shed=False)
            except (NotAccepted, BudgetExceeded):
                await self.instance.clock.sleep(rest)
                rest = min(_REST_MOST, rest * 2)

    async def fire(self, payload: Any, *, key: str | None = None, id: str | None = None,
                   state: dict[str, Any] | None = None, shed: bool = True) -> str | None:  # fmt: skip
        """Put an event in the inbox; its id once durable, None when nothing was started (and it was said why).

        `state` becomes the node's in the same commit. Raises NotAccepted when the store refuses; without `shed`
        BudgetExceeded when pressure does.
        """
        instance, workflow, node = self.instance, self.plan.name, self.node.id
        env = {"instance": instance.name, "ts": instance.clock.now()}
        if self.filters and not passes(self.plan, self.node.id, payload, env):
            if state is not None:
                await self.save(state)
            return None
        try:
            inputs = render_inputs(self.plan, self.node.id, payload, env)
        except InputsInvalid as error:
            instance.log("run.inputs.invalid", level="warn", workflow=workflow, node=node, err=str(error))
            if state is not None:
                await self.save(state)
            return None
        before = self.state
        also = [self.record(state)] if state is not None else []
        try:
            event = await instance.admission.accept(workflow, node, payload, inputs, key=key, id=id, also=also)
        except BudgetExceeded as error:
            self.state = before
            instance.log("start.shed", level="warn", workflow=workflow, node=node, reason=error.message)
            if not shed:
                raise
            return None
        except NotAccepted as error:
            self.state = before
            self.skip(error.message, level="warn")
            raise
        instance.log("start.fired", workflow=workflow, node=node, kind=self.node.kind, inbox_event=event)
        return event


class Triggers:
    """All armed start nodes of an instance."""

    def __init__(self, instance: Instance, states: dict[str, dict[str, Any]]) -> None:
        self._instance, self._states = instance, states
        self._armed: dict[str, Start] = {}

    async def arm(self, plans: Iterable[Plan]) -> None:
        """Arm every start node of `plans` whose workflow is armed."""
        for plan in plans:
            if not plan.workflow.armed:
                continue
            for node in plan.starts.values():
                door = Door(self._instance, plan, node, self._state(plan, node))
                start = self._armed[door.id] = start_class(node.kind)(door)
                await start.arm()
                if node.kind not in ("once", "manual"):
                    self._instance.log(
                        "trigger.armed", workflow=plan.name, node=node.id, kind=node.kind, **start.describe()
                    )

    def _state(self, plan: Plan, node: StartNode) -> dict[str, Any] | None:
        """What an earlier life left of `node`; a node that became one of another kind begins anew."""
        kept = self._states.get(f"{plan.name}/{node.id}")
        return kept["state"] if kept is not None and kept.get("kind") == node.kind else None

    async def disarm(self) -> None:
        """Fire nothing any more."""
        for start in self._armed.values():
            start.disarm()

    def expect(self, how: Expects) -> bool:
        """Whether a start node expects to fire so: what a job waits for."""
        return any(start.expects == how for start in self._armed.values())

    def described(self, workflow: str) -> list[dict[str, Any]]:
        """The armed start nodes of a workflow, with what each says of itself."""
        return [
            {"node": start.door.node.id, "kind": start.door.node.kind, **start.describe()}
            for start in self._armed.values()
            if start.door.plan.name == workflow
        ]

    def run_ended(self, ended: Ended, live: Live) -> None:
        """Tell the start node whose run it was, and those that listen for ends of workflows."""
        start = self._armed.get(f"{ended.workflow}/{live.record['node']}")
        if start is not None:
            start.run_ended(ended, live)
        self.happened(*happening(ended))

    def dropped(self, event: Event) -> None:
        """Tell the start node whose event will not become a run."""
        if (start := self._armed.get(f"{event.workflow}/{event.node}")) is not None:
            start.dropped(event.id)

    def happened(self, name: str, payload: dict[str, Any], key: str | None = None) -> None:
        """Something the instance says of itself (the `event` start node); the same `key` is the same happening."""
        for start in self._armed.values():
            start.happened(name, payload, key)

    async def signal(self, name: str, payload: Any, sender: str, id: str) -> int:
        """Offer the signal `id` to every `signal` start node of that name; how many took it."""
        return sum([await start.signalled(name, payload, sender, id) for start in list(self._armed.values())])

    async def manual(self, plan: Plan, node: StartNode, payload: Any, *, id: str | None = None,
                     key: str | None = None, parent: dict[str, str] | None = None) -> str:  # fmt: skip
        """Start a workflow on command; the event's id. Raises InputsInvalid, NotAccepted."""
        env = {"instance": self._instance.name, "ts": self._instance.clock.now()}
        inputs = render_inputs(plan, node.id, payload, env)
        event = await self._instance.admission.accept(
            plan.name, node.id, payload, inputs, key=key, id=id, parent=parent
        )
        self._instance.log("start.fired", workflow=plan.name, node=node.id, kind="manual", inbox_event=event)
        return event
