"""Human gates: durable questions, answered from outside.

A gate is either the wait of a `human` step, or asked in the middle of one by a turn (`ask_human`, a server's question)
which waits for it in memory. Its record ``{run, step, workflow, question, schema, to, asked, until, answer?}`` outlives
the process: an answer that comes while nobody listens is kept and answers the same question when it is asked again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.engine.decision import Done, Wait
from agentd.engine.schemas import Schema
from agentd.errors import AgentdError, UsageError

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call, Live

State = dict[str, Any]

_EARLY = 0.01
"""Seconds that a timer may come before its time."""


class NoSuchGate(AgentdError):
    """There is no such question, or it is over."""

    code = "no_gate"
    template = "there is no open question {task}"


class NobodyToAsk(AgentdError):
    """No person can reach this instance."""

    code = "nobody"


class Gates:
    """The questions of an instance, by task."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._states: dict[str, State] = {}
        self._waits: dict[str, tuple[Live, Wait]] = {}
        self._listening: dict[str, asyncio.Future[Any]] = {}

    def restore(self, kept: Mapping[str, State], unfinished: Mapping[str, Any]) -> None:
        """Take back the questions of an earlier life, but for those whose run is over."""
        for task, state in kept.items():
            if state.get("run") in unfinished:
                self._states[task] = state
            else:
                self._forget(task)

    # --- questions of `human` steps ------------------------------------------------------------------------------

    def arm(self, live: Live, wait: Wait) -> None:
        """A step waits for an answer."""
        about = {"run": live.id, "step": wait.entry, "workflow": live.plan.name, "until": wait.until}
        asked = {word: wait.on.get(word) for word in ("question", "schema", "to", "asked")}
        self._waits[wait.on["gate"]] = (live, wait)
        self._states[wait.on["gate"]] = {**asked, **about}

    def disarm(self, live: Live, wait: Wait) -> None:
        """It does no longer: answered, cancelled, or nobody answered in time."""
        task = wait.on["gate"]
        if self._waits.pop(task, None) is None:
            return
        self._forget(task)
        if wait.until is not None and wait.until <= self._instance.clock.now() + _EARLY:
            live.log("human.timeout", task=task)
            about = {"task": task, "run": live.id, "workflow": live.plan.name, "step": wait.entry}
            self._instance.triggers.happened("human.timeout", about)

    # --- questions in the middle of a step -----------------------------------------------------------------------

    async def ask(self, call: Call, key: str, question: str, schema: Any = None, to: str | None = None) -> Any:
        """The answer to a question of a running step, whose time stands still meanwhile.

        `key` is the same when the same question is asked again after a restart. Raises NobodyToAsk.
        """
        if not self._instance.operations.reachable:
            raise NobodyToAsk("nobody can be asked: this instance has no durable state that agentd answer could reach")
        task = task_of(key)
        state = self._states.get(task)
        if state is None:
            now = self._instance.clock.now()
            state = {"run": call.run_id, "step": call.step_id, "workflow": call.workflow, "asked": now, "until": None,
                     "question": question, "schema": schema, "to": to}  # fmt: skip
            self._states[task] = state
            await self._instance.journal.write([("gate", task, state)])
            call.log("human.ask", task=task, question=question)
        if "answer" not in state:
            future = self._listening.setdefault(task, asyncio.get_running_loop().create_future())
            async with call.waiting():
                await asyncio.shield(future)
        return state["answer"]

    # --- answers -------------------------------------------------------------------------------------------------

    def asked(self) -> list[State]:
        """The open questions: ``{task, run, workflow, step, question, schema, to, asked, until}``."""
        return [{"task": task, **state} for task, state in self._states.items() if "answer" not in state]

    async def answer(self, task: str, value: Any, *, via: str = "operator") -> dict[str, Any]:
        """Answer a question; returns once the answer is durable.

        Raises NoSuchGate, and UsageError for an answer that does not meet the question's schema.
        """
        state = self._states.get(task)
        if state is None or "answer" in state:
            raise NoSuchGate(task=task)
        problem = None if state["schema"] is None else Schema(state["schema"]).problem(value)
        if problem is not None:
            raise UsageError(f"the answer does not meet the schema of {task}: {problem}")
        if (waiting := self._waits.pop(task, None)) is not None:
            live, wait = waiting
            del self._states[task]
            self._instance.runs.wake(live, wait.entry, Done(value), [("gate", task, None)])
            await self._instance.journal.settled()
        else:
            state["answer"] = value
            await self._instance.journal.write([("gate", task, state)])
            if (future := self._listening.pop(task, None)) is not None and not future.done():
                future.set_result(None)
        self._instance.log("human.answered", task=task, via=via)
        return {"task": task, "run": state["run"]}

    def run_ended(self, run: str) -> None:
        """A run is over, and so are its questions."""
        for task in [task for task, state in self._states.items() if state["run"] == run]:
            self._forget(task)

    def _forget(self, task: str) -> None:
        self._states.pop(task, None)
        self._listening.pop(task, None)
        self._instance.journal.forget("gate", task, lambda error: None)


def task_of(key: str) -> str:
    """The task that the question of this key is."""
    return f"ask-{key[:20]}"
