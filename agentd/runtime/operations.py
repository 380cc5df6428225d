"""What an operator may ask of a living instance: one method an operation, arguments and answers as JSON.

Answers come after what they say is durable. The command line asks through the control socket
(:mod:`agentd.runtime.control`); other doors may use the same operations.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentd.config.effective import effective
from agentd.config.findings import nearest
from agentd.errors import UsageError
from agentd.journal.delivery import Health
from agentd.runtime import standing
from agentd.runtime.admission import NotAccepted
from agentd.runtime.control import Control
from agentd.runtime.outcome import Ended, code_of
from agentd.runtime.signals import NoSuchRun

if TYPE_CHECKING:
    from agentd.engine.plan import Plan
    from agentd.runtime.instance import Instance

Operation = Callable[..., Awaitable[Any]]


class Operations:
    """The operations of one instance, and the socket that serves them where there is a state directory."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._control: Control | None = None
        self._awaited: dict[str, list[asyncio.Future[Ended]]] = {}
        self._table: dict[str, Operation] = {
            "run": self.run, "status": self.status, "cancel": self.cancel, "pause": self.pause,
            "resume": self.resume, "signal": self.signal, "drain": self.drain, "lameduck": self.lameduck,
            "config": self.config, "gates": self.gates, "answer": self.answer,
        }  # fmt: skip

    async def open(self) -> None:
        """Listen on the control socket of a durable store that lives in a directory."""
        instance = self._instance
        describe = instance.store_spec.describe
        if not instance.store_spec.durable or describe is None:
            return
        path = describe(instance.store_options).get("path")
        if isinstance(path, str):
            self._control = Control(Path(path), instance.loaded.environ, self.operate, instance.log)
            await self._control.open()

    @property
    def reachable(self) -> bool:
        """Whether an operator can reach this instance."""
        return self._control is not None

    async def close(self) -> None:
        """Tell those who still wait for a run that it goes on in a later life, and hang up."""
        for futures in self._awaited.values():
            for future in futures:
                if not future.done():
                    future.set_exception(NotAccepted("the instance stops; the run goes on when it is started again"))
        await asyncio.sleep(0)  # the answers above are written on this turn of the loop
        if self._control is not None:
            await self._control.close()

    async def operate(self, op: str, args: dict[str, Any]) -> Any:
        """Do `op`. Raises UsageError for an unknown one or wrong arguments, else what the operation raises."""
        operation = self._table.get(op)
        if operation is None:
            raise UsageError(f"there is no operation {op!r}{nearest(op, self._table)}")
        try:
            inspect.signature(operation).bind(**args)
        except TypeError as error:
            raise UsageError(f"{op}: {error}") from error
        return await operation(**args)

    # --- runs ----------------------------------------------------------------------------------------------------

    async def run(
        self,
        workflow: str,
        inputs: dict[str, Any] | None = None,
        id: str | None = None,
        key: str | None = None,
        wait: bool = False,
    ) -> dict[str, Any]:
        """Start a run of `workflow`; `id` or `key` twice is one run. With `wait` the answer comes with its end."""
        instance = self._instance
        plan = self._plan(workflow)
        known = id is not None and instance.expected_run(id)
        run = await instance.triggers.manual(plan, entrance(plan), inputs or {}, id=id, key=key)
        if not wait:
            return {"run": run, "workflow": workflow, "known": known}
        return await self.end(run)

    def _plan(self, workflow: str) -> Plan:
        plans = self._instance.definitions.current
        if workflow not in plans:
            raise UsageError(
                f"there is no workflow {workflow!r}{nearest(workflow, plans)}; there are: {', '.join(plans)}"
            )
        return plans[workflow]

    async def end(self, run: str) -> dict[str, Any]:
        """The end of a run, once there is one: ``{run, workflow, status, output, err, exit}``."""
        instance = self._instance
        if (record := instance.finished_runs.get(run)) is not None:
            whole = await instance.spill.restore(record)
            return _told(Ended(run=run, workflow=record["workflow"], status=record["status"],
                               output=whole.get("output"), error=record.get("err")))  # fmt: skip
        future: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        futures = self._awaited.setdefault(run, [])
        futures.append(future)
        try:
            return _told(await future)
        finally:
            futures.remove(future)
            if not futures:
                self._awaited.pop(run, None)

    def run_ended(self, ended: Ended) -> None:
        """A run is final, durably: answer those who wait for it."""
        for future in self._awaited.get(ended.run, ()):
            if not future.done():
                future.set_result(ended)

    async def status(self, run: str | None = None) -> dict[str, Any]:
        """How the instance stands, or one run with its steps. Raises NoSuchRun."""
        if run is None:
            return standing.of_instance(self._instance)
        found = await standing.of_run(self._instance, run)
        if found is None:
            raise NoSuchRun(f"there is no run {run}: agentd status lists those there are", run=run)
        return found

    async def cancel(self, run: str, reason: str = "cancelled by an operator") -> dict[str, Any]:
        """End a run, or take back an event that waits to become one. Raises NoSuchRun."""
        instance = self._instance
        if not (instance.admission.cancel(run) or instance.runs.cancel(run, reason)):
            raise NoSuchRun(f"there is no run {run} to cancel", run=run)
        await self._durable(run)
        return {"cancelled": run}

    async def pause(self, run: str | None = None) -> dict[str, Any]:
        """Perform no further effect of a run, or begin no new runs. Raises NoSuchRun."""
        instance = self._instance
        if run is None:
            instance.paused = instance.admission.paused = True
            return {"state": standing.state_of(instance)}
        if not instance.runs.pause(run):
            raise NoSuchRun(f"there is no run {run} to pause", run=run)
        await self._durable(run)
        return {"paused": run}

    async def resume(self, run: str | None = None) -> dict[str, Any]:
        """The end of a pause. Raises NoSuchRun."""
        instance = self._instance
        if run is None:
            instance.paused = instance.admission.paused = False
            instance.admission.changed()
            return {"state": standing.state_of(instance)}
        if not instance.runs.unpause(run):
            raise NoSuchRun(f"there is no run {run} to resume", run=run)
        await self._durable(run)
        return {"resumed": run}

    async def _durable(self, run: str) -> None:
        """What was just asked of `run` is on disk. Raises NotAccepted when the store refused it."""
        instance = self._instance
        await instance.journal.settled()
        live = instance.runs.live.get(run)
        if (live is not None and live.broken) or instance.journal.health in (Health.FAILING, Health.FENCED):
            raise NotAccepted("the store refuses writes: nothing was changed for good, try again when it works")

    async def signal(
        self, name: str, payload: Any = None, run: str | None = None, sender: str = "operator"
    ) -> dict[str, Any]:
        """Send a signal: ``{id, woken, started, kept}`` says where it went. Raises NoSuchRun, NotAccepted."""
        return asdict(await self._instance.signals.send(name, payload, sender=sender, run=run))

    async def gates(self) -> dict[str, Any]:
        """The questions that wait for a person: ``{gates: [{task, run, workflow, step, question, schema, to, …}]}``."""
        return {"gates": self._instance.waits.gates.asked()}

    async def answer(self, task: str, value: Any = None) -> dict[str, Any]:
        """Answer a question. Raises NoSuchGate, UsageError for an answer that does not meet its schema."""
        return await self._instance.waits.gates.answer(task, value)

    # --- the instance --------------------------------------------------------------------------------------------

    async def drain(self) -> dict[str, Any]:
        """Stop in order, as a SIGTERM does."""
        self._instance.leave("drain")
        return {"state": "draining"}

    async def lameduck(self) -> dict[str, Any]:
        """Take no new work, for good, and stay up: the first step of a drain."""
        instance = self._instance
        instance.lameduck = True
        instance.admission.open = False
        await instance.triggers.disarm()
        return {"state": standing.state_of(instance)}

    async def config(self) -> dict[str, Any]:
        """The configuration as it is in force, credentials hidden."""
        return effective(self._instance.loaded)


def entrance(plan: Plan) -> Any:
    """The start node that a command enters by: the `manual` one, else the first."""
    return next((node for node in plan.starts.values() if node.kind == "manual"), next(iter(plan.starts.values())))


def _told(ended: Ended) -> dict[str, Any]:
    return {"run": ended.run, "workflow": ended.workflow, "status": ended.status, "output": ended.output,
            "err": dict(ended.error) if ended.error else None, "exit": code_of(ended)}  # fmt: skip
