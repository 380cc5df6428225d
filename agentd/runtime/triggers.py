"""Start nodes, armed: each kind is an object that knows when to fire; all fire through one door."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

from agentd.engine.starts import InputsInvalid, passes, render_inputs
from agentd.errors import BudgetExceeded
from agentd.journal.journal import Record
from agentd.runtime.admission import NotAccepted
from agentd.runtime.outcome import Ended
from agentd.runtime.starts import KINDS
from agentd.runtime.starts.plugged import Plugged

if TYPE_CHECKING:
    from agentd.engine.plan import Plan, StartNode
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live


class Start(Protocol):
    """One armed start node."""

    async def arm(self) -> None:
        """Begin to watch for whatever fires it; called once, after the restore."""

    def disarm(self) -> None:
        """Fire no more."""

    def run_ended(self, ended: Ended, live: Live) -> None:
        """A run of this very node is final."""


class Door:
    """What a start node fires through: filter, inputs, inbox, and its own durable state.

    `state` is the node's durable state, None before the first.
    """

    def __init__(self, instance: Instance, plan: Plan, node: StartNode, state: dict[str, Any] | None) -> None:
        self.instance, self.plan, self.node, self.state = instance, plan, node, state
        self.id = f"{plan.name}/{node.id}"

    def record(self, state: dict[str, Any]) -> Record:
        """The record that makes `state` the node's; to be committed with what it belongs to."""
        self.state = state
        return ("start", self.id, state)

    async def save(self, state: dict[str, Any]) -> None:
        """Make `state` the node's, durably."""
        future = self.instance.journal.write([self.record(state)])
        assert future is not None
        await future

    async def fire(
        self, payload: Any, *, key: str | None = None, id: str | None = None, state: dict[str, Any] | None = None
    ) -> str | None:
        """Put an event in the inbox; its id once durable, None when nothing was started (and it was said why).

        `state` becomes the node's in the same commit. Raises NotAccepted when the store refuses.
        """
        instance, workflow, node = self.instance, self.plan.name, self.node.id
        env = {"instance": instance.name, "ts": instance.clock.now()}
        if not passes(self.plan, self.node.id, payload, env):
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
            return None
        except NotAccepted as error:
            self.state = before
            instance.log("start.skipped", level="warn", workflow=workflow, node=node, reason=error.message)
            raise
        instance.log("start.fired", workflow=workflow, node=node, kind=self.node.kind)
        return event


class Triggers:
    """All armed start nodes of an instance."""

    def __init__(self, instance: Instance, states: dict[str, dict[str, Any]]) -> None:
        self._instance, self._states = instance, states
        self._armed: dict[str, Start] = {}
        self.long_lived = False
        """Whether a start node may fire again: what keeps a job that is told to run until idle."""

    async def arm(self, plans: Iterable[Plan]) -> None:
        """Arm every start node of `plans` whose workflow is armed."""
        for plan in plans:
            if not plan.workflow.armed:
                continue
            for node in plan.starts.values():
                door = Door(self._instance, plan, node, self._states.get(f"{plan.name}/{node.id}"))
                make: Callable[[Door], Start] | None = KINDS.get(node.kind)
                start = make(door) if make is not None else Plugged(door)
                self._armed[door.id] = start
                self.long_lived |= node.spec.lifetime == "long"
                await start.arm()
                if node.kind not in ("once", "manual"):
                    more: dict[str, Any] = getattr(start, "describe", dict)()
                    self._instance.log("trigger.armed", workflow=plan.name, node=node.id, kind=node.kind, **more)

    async def disarm(self) -> None:
        """Fire nothing any more."""
        for start in self._armed.values():
            start.disarm()

    def run_ended(self, ended: Ended, live: Live) -> None:
        """Tell the start node whose run it was, and those that listen for ends of workflows."""
        start = self._armed.get(f"{ended.workflow}/{live.record['node']}")
        if start is not None:
            start.run_ended(ended, live)
        name = "workflow.finished" if ended.status in ("completed", "partial") else "workflow.failed"
        payload = {"run": ended.run, "workflow": ended.workflow, "status": ended.status, "output": ended.output,
                   "err": ended.error}  # fmt: skip
        self.happened(name, payload)

    def happened(self, name: str, payload: dict[str, Any]) -> None:
        """Something the instance says of itself (the `event` start node)."""
        for start in self._armed.values():
            hear = getattr(start, "happened", None)
            if hear is not None:
                hear(name, payload)

    async def signal(self, name: str, payload: Any, sender: str) -> int:
        """Offer a signal to every `signal` start node of that name; how many took it."""
        taken = 0
        for start in list(self._armed.values()):
            hear = getattr(start, "signalled", None)
            if hear is not None and await hear(name, payload, sender):
                taken += 1
        return taken

    async def manual(self, plan: Plan, node: StartNode, payload: Any, *, id: str | None = None,
                     key: str | None = None, parent: dict[str, str] | None = None) -> str:  # fmt: skip
        """Start a workflow on command; the event's id. Raises InputsInvalid, NotAccepted."""
        env = {"instance": self._instance.name, "ts": self._instance.clock.now()}
        inputs = render_inputs(plan, node.id, payload, env)
        event = await self._instance.admission.accept(
            plan.name, node.id, payload, inputs, key=key, id=id, parent=parent
        )
        self._instance.log("start.fired", workflow=plan.name, node=node.id, kind="manual")
        return event
