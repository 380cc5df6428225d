"""Human gates: durable questions, answered from outside.

A gate is a wait of its step. Its record ``{run, step, workflow, question, schema, to, asked, until}`` goes with it, for
whoever looks at the store; everything a later life needs is in the step's own record too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Done, Wait
from agentd.engine.schemas import Schema
from agentd.errors import AgentdError, UsageError

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Live

_EARLY = 0.01
"""Seconds that a timer may come before its time."""


class NoSuchGate(AgentdError):
    """There is no such question, or it is over."""

    code = "no_gate"
    template = "there is no open question {task}"


class Gates:
    """The open questions of an instance."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._open: dict[str, tuple[Live, Wait]] = {}

    def arm(self, live: Live, wait: Wait) -> None:
        """A step waits for an answer."""
        self._open[wait.on["gate"]] = (live, wait)

    def disarm(self, live: Live, wait: Wait) -> None:
        """It does no longer: answered, cancelled, or nobody answered in time."""
        task = wait.on["gate"]
        if self._open.pop(task, None) is None:
            return
        self._instance.journal.forget("gate", task, lambda error: None)
        if wait.until is not None and wait.until <= self._instance.clock.now() + _EARLY:
            live.log("human.timeout", task=task)
            about = {"task": task, "run": live.id, "workflow": live.plan.name, "step": wait.entry}
            self._instance.triggers.happened("human.timeout", about)

    def asked(self) -> list[dict[str, Any]]:
        """The open questions: ``{task, run, workflow, step, question, schema, to, until}``."""
        return [
            {"task": task, "run": live.id, "workflow": live.plan.name, "step": wait.entry, "until": wait.until,
             **{word: wait.on.get(word) for word in ("question", "schema", "to")}}
            for task, (live, wait) in self._open.items()
        ]  # fmt: skip

    async def answer(self, task: str, value: Any, *, via: str = "operator") -> dict[str, Any]:
        """Answer a question; returns once the answer is durable.

        Raises NoSuchGate, and UsageError for an answer that does not meet the question's schema.
        """
        if task not in self._open:
            raise NoSuchGate(task=task)
        live, wait = self._open[task]
        schema = wait.on.get("schema")
        problem = None if schema is None else Schema(schema).problem(value)
        if problem is not None:
            raise UsageError(f"the answer does not meet the schema of {task}: {problem}")
        del self._open[task]
        self._instance.runs.wake(live, wait.entry, Done(value), [("gate", task, None)])
        live.log("human.answered", task=task, via=via)
        await self._instance.journal.settled()
        return {"task": task, "run": live.id}
