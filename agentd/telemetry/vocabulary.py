"""The closed vocabulary: every event agentd may write, with the fields of its own.

People build dashboards and alerts on these names, so that a name or a field is never renamed. `docs/telemetry.md` shows
this table; a test keeps the two in step, and another finds every literal event in the sources here.

The fields `dur_ms`, `err` and `msg` belong to the canonical block that any event may carry and are not repeated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

CANONICAL = ("ts", "level", "event", "run_id", "agent_id", "agent_path", "comp", "pid",
             "trace_id", "span_id", "parent_span_id", "dur_ms", "err", "msg")  # fmt: skip
"""The block each line begins with, in this order; from `trace_id` on a part is there only when it has a value."""

LEVELS = {"debug": 10, "info": 20, "warn": 30, "error": 40}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One word of the vocabulary.

    `content` are fields that hold what was said: their length and hash are written unless content is switched on.
    `open`: further fields are allowed. `comp`: the component it always speaks for, else the writer's own.
    """

    name: str
    fields: tuple[str, ...]
    help: str
    level: str = "info"
    comp: str = ""
    content: tuple[str, ...] = ()
    open: bool = False

    def unknown(self, given: Iterable[str]) -> list[str]:
        """Those of `given` that this event does not have."""
        return [] if self.open else [f for f in given if f not in self.fields and f not in self.content]


class UnknownEvent(LookupError):
    """An event or a field outside the vocabulary: a mistake of the code, raised where a test listens."""


def require(name: str, given: Iterable[str] = ()) -> Event:
    """The event called `name`. Raises :class:`UnknownEvent` for an unknown name or a field it does not have."""
    event = EVENTS.get(name)
    if event is None:
        raise UnknownEvent(f"event {name!r} is not in agentd.telemetry.vocabulary")
    if unknown := event.unknown(given):
        raise UnknownEvent(f"event {name!r} has no field {', '.join(unknown)} in agentd.telemetry.vocabulary")
    return event


def _event(
    name: str, fields: str, help: str, level: str = "info", comp: str = "", content: str = "", open: bool = False
) -> Event:
    names = tuple(fields.split())
    return Event(name=name, fields=names, help=help, level=level, comp=comp, content=tuple(content.split()), open=open)


_TABLE = (
    # the process
    _event("proc.start", "version runtime instance config_files", "The process begins"),
    _event("proc.ready", "instance job_shape workflows runs inbox_pending", "It accepts work"),
    _event("proc.fatal", "", "It cannot go on, and stops in order", level="error"),
    _event("proc.fault", "", "Something unexpected happened in the background; work goes on", level="error"),
    _event("proc.exit", "code uptime_ms runs turns tool_calls tokens_in tokens_out", "The last line"),
    _event("lifecycle.idle_exit", "code job_shape", "A job has nothing left to do"),
    _event("log.dropped", "lines", "Nobody read stderr, and lines were lost", level="warn"),
    # configuration
    _event("config.valid", "files schema", "The configuration has no error"),
    _event("config.invalid", "path", "One reason why it has; one line each", level="error"),
    _event("config.warning", "path", "Valid, and probably not what was meant", level="warn"),
    _event("config.reloaded", "trigger changed", "A new configuration is in force"),
    _event("config.reload.invalid", "trigger path", "The new one is wrong, the old one stays", level="error"),
    _event("config.reload.restart_required", "trigger paths reason", "Not without a restart", level="warn"),
    _event("plugin.failed", "plugin dist version entry_point", "A plugin does not load", level="warn"),
    # durable state
    _event("store.file", "path generation defaulted", "State is kept in a file"),
    _event("store.open", "kind generation", "State is kept in another kind of store", open=True),
    _event("store.none", "", "State is not kept"),
    _event("store.conflict", "key latest", "Another process writes under this identity", level="error"),
    _event("store.config_changed", "sections", "Settings that shape the state have moved", level="warn"),
    _event("store.error", "op key", "An operation failed", level="error"),
    _event("store.degraded", "reason", "Work goes on without durability", level="error"),
    _event("store.recovered", "", "The store works again"),
    _event("store.warning", "path", "The store works, at a price", level="warn"),
    _event("restore.fresh", "generation superseded retired", "A new life begins"),
    _event("restore.done", "generation entities runs_resumed events_replayed inbox_pending lost", "An old one goes on"),
    _event("restore.lost", "run workflow", "A run whose definition is gone; it is kept", level="error"),
    _event("restore.step.replay", "run step attempt", "A step found running is done again"),
    _event("restore.timer.repaired", "run step", "A suspended step had lost its timer", level="warn"),
    # MCP
    _event("mcp.connect", "server tools resources protocol", "A server is connected", comp="mcp"),
    _event("mcp.connect.fail", "server", "A server is not", level="warn", comp="mcp"),
    _event("mcp.disconnect", "server reason", "A connection has ended", comp="mcp"),
    _event("mcp.warning", "server tool", "A server's answer was repaired or left out", level="warn", comp="mcp"),
    _event("mcp.tool_changed", "server tool", "A tool's description or schema moved", level="warn", comp="mcp"),
    _event("subscribe", "server uri", "A resource is watched", comp="mcp"),
    _event("unsubscribe", "server uri reason", "It no longer is", comp="mcp"),
    _event("resource.updated", "server uri", "A watched resource moved", comp="mcp"),
    # what begins work
    _event("trigger.armed", "workflow node kind", "A start node waits", open=True),
    _event("start.fired", "workflow node kind inbox_event", "It fired"),
    _event("start.skipped", "workflow node reason", "It fired, and nothing came of it"),
    _event("start.shed", "workflow node reason", "It fired, and pressure forbade a run", level="warn"),
    _event("claim.granted", "workflow node item lease_id expires_in_ms", "The item is ours", open=True),
    _event("claim.lost", "workflow node item held_by", "The item is another's", open=True),
    _event("claim.renewed", "workflow node item lease_id", "The lease goes on", open=True),
    _event("claim.acked", "workflow node item lease_id", "The item is done", open=True),
    _event("claim.released", "workflow node item lease_id reason", "The item is given back", open=True),
    _event("claim.lease_lost", "workflow node item lease_id reason", "The lease is lost", level="warn", open=True),
    _event("claim.key_reused", "workflow node item", "A known key with other content", level="warn", open=True),
    _event("shard.skipped", "workflow node item shard", "Another shard's item", level="debug"),
    # runs and steps
    _event("run.start", "run workflow node inbox_event", "A run begins"),
    _event("run.done", "run workflow status", "A run has ended; `status` says how", content="output"),
    _event("run.dropped", "run workflow node reason", "An event will not become a run", level="warn"),
    _event("run.inputs.invalid", "workflow node path", "An event does not fit the inputs", level="warn"),
    _event("workflow.finished", "run workflow status", "A workflow that another one started has ended"),
    _event("workflow.failed", "run workflow status", "It has ended badly", level="warn"),
    _event("step.start", "run step kind attempt", "An attempt of a step begins"),
    _event("step.done", "run step status attempt tokens", "It has ended"),
    _event("step.retry", "run step attempt backoff_ms", "It will be tried again", level="warn"),
    _event("step.goto", "run from to", "The run goes back"),
    _event("step.cache_hit", "run step", "The output of an earlier execution is used"),
    # turns
    _event("turn.spawn", "ctx run step node turn", "A turn begins in a child process"),
    _event("turn.done", "ctx run step node turn status rounds tool_calls tokens", "It has ended"),
    _event("turn.reply", "ctx chars", "The answer of a conversation", content="text"),
    _event("loop.start", "tools servers max_steps", "A turn knows its tools", comp="agent"),
    _event("intel.call", "index host model round attempt mock", "The model is called", comp="intel"),
    _event("intel.result", "index host model round finish status tokens_in tokens_out estimated mock",
           "The model has answered, or failed", comp="intel"),
    _event("intel.failover", "index host to reason", "The next endpoint is asked", level="warn", comp="intel"),
    _event("intel.swap", "index host reason", "The preferred endpoint is back", comp="intel"),
    _event("tool.request", "tool caller", "The model asks for a tool", content="args"),
    _event("tool.call", "server tool call_id", "A tool is called"),
    _event("tool.result", "server tool call_id is_error bytes", "It has answered", content="result"),
    _event("subagent.spawn", "handle mode node depth", "A subagent begins"),
    _event("subagent.ready", "handle", "It has its servers"),
    _event("subagent.result", "handle status tokens", "It has an answer"),
    _event("subagent.failed", "handle", "It ended without one", level="warn"),
    _event("subagent.exit", "handle child code signal", "A child process is gone"),
    _event("subagent.stuck", "handle child idle_ms", "A child process says nothing", level="warn"),
    _event("subagent.drain", "handle child", "It is asked to come to an end"),
    _event("subagent.sigterm", "handle child", "It is told to", level="warn"),
    _event("subagent.sigkill", "handle child", "It is made to", level="warn"),
    # bounds
    _event("budget.wait", "ctx until_ms reason", "Work waits for tokens"),
    _event("budget.exhausted", "scope", "No tokens are left", level="warn"),
    _event("limit.threshold", "limit at", "Nearly there", level="warn"),
    _event("limit.exceeded", "limit at run", "Over it", level="warn"),
    _event("pressure.warn", "cause free_bytes", "Room runs low", level="warn"),
    _event("pressure.shed", "cause free_bytes", "No new work is admitted", level="warn"),
    _event("pressure.cleared", "cause free_bytes", "There is room again"),
    # people and listeners
    _event("human.ask", "task question deadline_ms", "A person is asked"),
    _event("human.answered", "task via", "A person has answered"),
    _event("human.timeout", "task", "Nobody has", level="warn"),
    _event("a2a.listen", "authority bound tls mtls require_auth", "Callers are heard"),
    _event("a2a.request", "method role outcome", "A caller was answered", level="debug"),
    _event("webhooks.listen", "authority bound tls routes", "Webhooks are heard"),
    _event("audit", "action principal role target outcome request_id", "Who did what", open=True),
    # stopping
    _event("drain.start", "reason children runs", "The end begins"),
    _event("drain.done", "drain_ms", "Everything is saved"),
    _event("drain.abandon", "live", "Time ran out before everything had ended", level="warn"),
    _event("drain.claim_release_failed", "item", "A lease could not be given back", level="warn"),
)  # fmt: skip

EVENTS: Mapping[str, Event] = {event.name: event for event in _TABLE}


def markdown() -> str:
    """The table for `docs/telemetry.md`."""
    rows = ["| event | level | own fields | when |", "| --- | --- | --- | --- |"]
    for e in _TABLE:
        fields = ", ".join((*e.fields, *(f"{c}\\*" for c in e.content), *(("…",) if e.open else ())))
        rows.append(f"| `{e.name}` | {e.level} | {fields} | {e.help} |")
    return "\n".join(rows) + "\n"


def _rewrite(path: str) -> None:
    """Put the table between the marks of the document at `path`."""
    from pathlib import Path

    document = Path(path)
    head, mark, rest = document.read_text().partition("<!-- events -->\n")
    tail = rest.partition("<!-- /events -->")[2]
    document.write_text(f"{head}{mark}\n{markdown()}\n<!-- /events -->{tail}")


if __name__ == "__main__":
    import sys

    _rewrite(sys.argv[1])
