"""The living instance: boot, work, drain, in this order on the page.

One loop and one writer. Nothing here waits for work: runs, timers and triggers call back, and :meth:`Instance.run`
sleeps until something says to leave.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentd import RUNTIME, __version__, net
from agentd.children.linux import become_subreaper
from agentd.children.reaper import Reaper
from agentd.children.spawner import Spawner
from agentd.clock import SystemClock
from agentd.config import lifetime
from agentd.config.instruction import read_instruction
from agentd.engine.definition import Kinds
from agentd.errors import EXIT_OK, AgentdError, StoreError
from agentd.journal.delivery import Health
from agentd.journal.memory import Memory
from agentd.journal.restored import Restored
from agentd.journal.streams import Keep, Streams
from agentd.ports.host import Clock, Secrets
from agentd.runtime import health, outcome
from agentd.runtime.admission import Admission, Event
from agentd.runtime.caches import Caches
from agentd.runtime.connections import OwnConnections
from agentd.runtime.credentials import Credentials
from agentd.runtime.definitions import Definitions, documents
from agentd.runtime.drain import descend, rungs
from agentd.runtime.host import InstanceHost
from agentd.runtime.idle import Idle
from agentd.runtime.ids import new_id
from agentd.runtime.live import Live
from agentd.runtime.opening import open_store
from agentd.runtime.operations import Operations
from agentd.runtime.outcome import Ended
from agentd.runtime.pressure import Gauge
from agentd.runtime.restore import recover, restore, run_of
from agentd.runtime.retention import Retention
from agentd.runtime.runs import Runs
from agentd.runtime.servers import Servers
from agentd.runtime.signals import Signals
from agentd.runtime.spill import Spill
from agentd.runtime.steps import Steps, calls_servers
from agentd.runtime.timers import Timers
from agentd.runtime.triggers import Triggers
from agentd.runtime.turns import Turns
from agentd.runtime.waits import Waits
from agentd.security.trifecta import explain

if TYPE_CHECKING:
    from agentd.config.load import Loaded
    from agentd.journal.journal import Journal
    from agentd.ports.store import StoreSpec
    from agentd.telemetry.emitter import Telemetry


class Instance:
    """One agentd instance. Make it before any loop runs; :meth:`run` is its life."""

    journal: Journal
    store_spec: StoreSpec
    store_options: Any

    def __init__(
        self, loaded: Loaded, log: Telemetry, spawner: Spawner | None, *, secrets: Secrets, flush: Callable[[], object],
        clock: Clock | None = None, ready: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        """`flush` writes out the log, for the moment before an end without goodbye; `ready` is called once booted."""
        assert loaded.document is not None
        self._secrets, self._flush_log, self._ready = secrets, flush, ready
        self.loaded, self.document, self.log = loaded, loaded.document, log
        self.shape = lifetime.shape(self.document, loaded.plugins)
        self.name = lifetime.instance(self.document, loaded.environ)
        self.clock: Clock = clock or SystemClock()
        self.ended: list[Ended] = []
        self.paused = False
        self.lameduck = False
        self._spawner, self._reaper = spawner, Reaper()
        self._leave: asyncio.Future[str] | None = None
        self._fatal: AgentdError | None = None
        self._background: set[asyncio.Task[Any]] = set()
        self._stack = contextlib.AsyncExitStack()
        self.finished_runs: dict[str, dict[str, Any]] = {}
        self._assembled = False
        self.draining = False
        self.idle = Idle(self)
        self.started = self.clock.monotonic()

    # --- life ----------------------------------------------------------------------------------------------------

    async def run(self) -> int:
        """Boot, work until there is nothing left or a signal comes, drain. The exit code."""
        loop = asyncio.get_running_loop()
        self._leave = loop.create_future()
        loop.set_exception_handler(self._unexpected)
        self._adopt_processes(loop)
        self.log("proc.start", version=__version__, runtime=RUNTIME, instance=self.name, config_files=self.loaded.files)
        code = 1
        if wrong := self._overridden():
            self.log("audit", action="security.allow_trifecta", principal="configuration", role="operator",
                     target="agent", outcome="allowed", msg=wrong)  # fmt: skip
        for variable, problem in net.proxy_findings(self.loaded.environ):
            self.log("config.warning", level="warn", path=variable, msg=problem)
        try:
            await self._boot()
            reason = await self._leave
            code = await self._drain(reason)
        except AgentdError as error:
            self._fatal = error
            self.log("proc.fatal", level="error", err=error, msg=error.message)
            code = error.exit_code
            await self._drain("fatal")
        except Exception as error:
            self.log("proc.fatal", level="error", err=error, msg=f"a mistake in agentd: {error!r}; please report it")
            await self._drain("fatal")
        finally:
            await self._stack.aclose()
            self._release_processes(loop)
        turns = self.turns if self._assembled else None
        self.log(
            "proc.exit", code=code, uptime_ms=int((self.clock.monotonic() - self.started) * 1000),
            runs=self.runs.finished if self._assembled else 0, turns=turns.total if turns else 0,
            tool_calls=turns.tool_calls if turns else 0, tokens_in=turns.tokens_in if turns else 0,
            tokens_out=turns.tokens_out if turns else 0,
        )  # fmt: skip
        return code

    def _overridden(self) -> str:
        """What the rule of two would refuse and the operator admits."""
        document = self.document
        if not document.security.allow_trifecta:
            return ""
        return explain(document.mcp.servers, document.agent.tools.mcp, document.tools.disabled)

    def _unexpected(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What nobody awaited went wrong: one event instead of a traceback on stderr."""
        error = context.get("exception")
        self.log("proc.fault", err=error, msg=str(context.get("message") or error))

    def _adopt_processes(self, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(OSError):
            become_subreaper()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._signalled, signal.Signals(number).name)
        self._reaper.start(loop)
        if self._spawner is not None:
            self._spawner.attach(loop, self._reaper)

    def _release_processes(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._spawner is not None:
            self._spawner.close()
        self._reaper.stop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    def _signalled(self, name: str) -> None:
        if self.draining or (self._leave is not None and self._leave.done()):
            # A second signal: everything ends now, and leases are not released.
            if self._spawner is not None:
                self._spawner.kill_all()
            self.log("proc.exit", level="error", code=1, msg=f"a second {name}: killed everything at once")
            self._flush_log()
            os._exit(1)
        self.leave(name)

    def leave(self, reason: str) -> None:
        """Begin the drain, once."""
        if self._leave is not None and not self._leave.done():
            self._leave.set_result(reason)

    def fail(self, error: AgentdError) -> None:
        """Leave because of `error`, with its exit code."""
        self._fatal = self._fatal or error
        self.leave("fatal")

    # --- boot ----------------------------------------------------------------------------------------------------

    async def _boot(self) -> None:
        document, loaded, log, clock = self.document, self.loaded, self.log, self.clock
        self.host = InstanceHost(
            instance=self.name, clock=clock, log=log, secrets=self._secrets, environ=loaded.environ
        )
        self.definitions = Definitions(Kinds.of(loaded.plugins))
        from agentd.runtime.fetch import fetch_workflows

        self.definitions.adopt(await fetch_workflows(documents(document), self.host, document))
        self.instruction = read_instruction(document.agent.instruction, loaded.cwd)
        restored = await open_store(self, self._stack, self._store_health)
        self._assemble(restored)
        await self.streams.open()
        await self.caches.open()
        if self._needs_servers():
            await self.connections.boot()
        await restore(self, restored)
        await self.triggers.arm(self.definitions.current.values())
        self.triggers.happened("restore.done", {"generation": restored.generation, "fresh": restored.fresh})
        await self.signals.resume()
        await self.operations.open()
        self._watch()
        log(
            "proc.ready", instance=self.name, job_shape=self.shape == "job", workflows=len(self.definitions.current),
            runs=len(self.runs.live), inbox_pending=self.admission.pending,
        )  # fmt: skip
        self._ready()
        self.idle.begin()

    def _needs_servers(self) -> bool:
        """Whether MCP servers are connected at boot: steps call them, or a daemon may not come up without one.

        A job's turns connect their servers themselves, so that one process imports the SDK.
        """
        required = self.shape == "daemon" and any(server.required for server in self.document.mcp.servers)
        steps = self.document.mcp.servers and any(map(calls_servers, self.definitions.current.values()))
        return required or bool(steps)

    def _assemble(self, restored: Restored) -> None:
        document, clock, log = self.document, self.clock, self.log
        pressure, options = self.store_spec.pressure, self.store_options
        self.gauge = Gauge((lambda: pressure(options)) if pressure is not None else None, clock, log)
        self.timers = Timers(clock)
        self.memory = Memory(restored.of("memory"), now=clock.now)
        self.caches = Caches(self.journal, clock)
        self.spill = Spill(self.journal, document.limits.inline_max_bytes)
        self.waits = Waits(self)
        self.servers = Servers(document.mcp.servers, log, all_needed=self.shape == "job")
        self.turns = Turns(self._spawner, log, parallel=document.agent.max_parallel_turns, hold=self.gauge.relief)
        self.credentials = Credentials(document, self.loaded.plugins, self._secrets)
        self.connections = OwnConnections(self)
        self._stack.push_async_callback(self.connections.close)
        self.steps = Steps(self)
        self.runs = Runs(
            self.journal, self.timers, clock, log,
            performer=self.steps.performer, host=self.host, memory=self.memory.view, spill=self.spill,
            step_timeout=document.limits.step_timeout, on_end=self._on_end, on_wait=self.waits.arm,
            on_unwait=self.waits.disarm, on_store_error=self._on_store_error, caches=self.caches,
        )  # fmt: skip
        self.admission = Admission(
            self.journal, clock, log, max_runs=document.limits.max_runs, plan=self.definitions.plan,
            begin=self.begin, running=self.running, known=self.known_run, replace=self._replace,
            new_id=new_id, level=lambda: self.gauge.level,
            on_drop=lambda event: self.triggers.dropped(event),
        )  # fmt: skip
        self.triggers = Triggers(self, restored.of("start"))
        self.signals = Signals(self)
        self.operations = Operations(self)
        self.retention = Retention(self)
        declared = {name: Keep(s.retention.max_events, s.retention.max_age) for name, s in document.streams.items()}
        self.streams = Streams(self.journal, declared, clock)
        self.waits.gates.restore(restored.of("gate"), restored.unfinished)
        self._assembled = True

    def _watch(self) -> None:
        if self.document.observability.health_file:
            path = str(self.loaded.cwd / self.document.observability.health_file)
            self.background(health.keep(path, self.name, self.clock, self.log))
        if self.shape == "daemon":
            self.background(self.gauge.watch())
            self.background(self.retention.keep())

    def background(self, work: Any) -> asyncio.Task[Any]:
        """Run `work` until it ends or the instance does."""
        task: asyncio.Task[Any] = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    # --- work ----------------------------------------------------------------------------------------------------

    def begin(self, event: Event) -> None:
        """Make a run of an accepted event: its record, its event's removal and its first records in one commit."""
        plan = self.definitions.plan(event.workflow)
        assert plan is not None
        own, limits, now = plan.workflow.limits, self.document.limits.run, self.clock.now()
        record: dict[str, Any] = {
            "workflow": plan.name, "hash": plan.hash, "node": event.node, "payload": event.payload,
            "inputs": event.inputs, "status": "running", "started": now, "accepted": event.ts,
            "deadline": now + (own.deadline or limits.deadline),
            "limits": {"steps": own.steps or limits.steps, "tokens": own.tokens or limits.tokens},
        }  # fmt: skip
        if event.parent is not None:
            record["parent"] = event.parent
        also = [("inbox", event.id, None), *self.definitions.pin(plan)]
        self.runs.start(run_of(self.name, event.id, record), plan, record, also)

    def running(self) -> tuple[int, Counter[str]]:
        """How many runs hold a slot of the whole (those that only wait hold none), and the live runs by workflow."""
        live = self.runs.live.values()
        active = sum(1 for r in live if r.tasks or r.unwritten or not r.waits)
        return active, Counter(r.plan.name for r in live)

    def known_run(self, id: str) -> bool:
        """Whether `id` is a run already, live or over."""
        return id in self.runs.live or id in self.finished_runs

    def expected_run(self, id: str) -> bool:
        """Whether `id` is a run, or an accepted event that will become one."""
        return self.known_run(id) or self.admission.holds(id)

    def _replace(self, workflow: str) -> None:
        oldest = next((r for r in self.runs.live.values() if r.plan.name == workflow), None)
        if oldest is not None:
            self.runs.cancel(oldest.id, "replaced by a newer event")

    def _on_end(self, ended: Ended, live: Live) -> None:
        if self.shape == "job" and "parent" not in live.record:
            self.ended.append(ended)
        self.finished_runs[live.id] = live.record
        self.steps.run_ended(live)
        self.waits.run_ended(ended, live)
        self.triggers.run_ended(ended, live)
        self.operations.run_ended(ended)
        self.retention.run_ended()
        self.admission.changed()
        self.idle.check()

    def recall(self, run: str | None) -> None:
        """A job's work was done in an earlier life: what it came to is told again."""
        record = self.finished_runs.get(run or "")
        if self.shape == "job" and run is not None and record is not None:
            self.ended.append(Ended(run=run, workflow=record["workflow"], status=record["status"],
                                    output=record.get("output"), error=record.get("err")))  # fmt: skip

    def _on_store_error(self, error: AgentdError) -> None:
        if isinstance(error, StoreError):
            self.log("store.error", level="error", err=error, op="commit")

    def _store_health(self, state: Health) -> None:
        self.admission.open = state in (Health.OK, Health.DEGRADED) and not (self.draining or self.lameduck)
        if state is Health.FENCED and self.document.store.on_conflict == "exit":
            self.fail(StoreError("another process writes under this identity (store.on_conflict: exit)"))
        if state is Health.OK:
            self.background(recover(self))

    # --- leaving -------------------------------------------------------------------------------------------------

    def job_code(self) -> int:
        """The exit code of a job whose runs ended as they did."""
        return outcome.job_code(self.ended, self.document.lifecycle.exit_code_map)

    async def _drain(self, reason: str) -> int:
        if self.draining:
            return 1
        self.draining = True
        began = self.clock.monotonic()
        quiet = reason == "idle"
        if not quiet:
            children = len(self._spawner.live) if self._spawner is not None else 0
            self.log(
                "drain.start",
                reason=reason,
                children=children,
                runs=len(self.runs.live) if self._assembled else 0,
            )
        if self._assembled:
            overran = await descend(rungs(self), self.document.lifecycle.drain_timeout, self.clock, self.log)
            if "stop" in overran or "checkpoint" in overran:
                self.log("drain.abandon", level="warn", live=len(self.runs.live))
        for task in list(self._background):
            task.cancel()
        if not quiet:
            self.log("drain.done", drain_ms=int((self.clock.monotonic() - began) * 1000))
        if self._fatal is not None:
            return self._fatal.exit_code
        return self.job_code() if quiet else EXIT_OK

    # --- the result ----------------------------------------------------------------------------------------------

    def result(self) -> str:
        """What a job prints."""
        return outcome.job_output(self.ended)
