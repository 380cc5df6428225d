"""What goes into the engine and what comes out of it: plain records, no behaviour.

An *entry* names one execution of a step inside its run: the scoped step id, and from the second entry by a `goto` (or
a repeated body) on `#<visit>`: ``pull``, ``pull#2``, ``each[0].pull``, ``par{fast}.call``, ``sub.work``. The entry is
the id of the step's durable record, the word in the log, and what the idempotency key is made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from agentd.ports.nodes import StepSpec

RunStatus = Literal["completed", "failed", "refused", "cancelled", "stalled", "partial"]
Error = dict[str, Any]
"""``{code, message, step?, …}``; `code` is a word of :mod:`agentd.errors` or the user's own (`fail.code`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one run. `steps` counts effect steps and model rounds; None is no bound."""

    steps: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is known of a run before its first step; constant for its life.

    `started` (epoch seconds) is the `now` of the beginning and must come back unchanged on a resume, as must everything
    else here: the engine recomputes pure steps from it.
    """

    id: str
    node: str
    """The start node that fired."""
    payload: Any = None
    inputs: Mapping[str, Any] = field(default_factory=dict)
    """As :func:`agentd.engine.starts.render_inputs` made them."""
    started: float = 0.0
    instance: str = ""
    limits: Limits = Limits()


# --- outcomes: what the runtime says of an entry -------------------------------------------------------------------


@dataclass(slots=True)
class Done:
    """The step succeeded. `tokens` and `rounds` are charged to the run; `cached` says that nothing was performed."""

    output: Any = None
    tokens: int = 0
    rounds: int = 0
    cached: bool = False


@dataclass(slots=True)
class Failed:
    """The attempt failed. `retry` says whether another attempt may help (the step's `retry.max` bounds them)."""

    code: str
    message: str
    retry: bool = True
    fields: Mapping[str, Any] = field(default_factory=dict)
    tokens: int = 0
    rounds: int = 0


@dataclass(slots=True)
class TimedOut:
    """The attempt, the wait or the body ran out of its time; retried like a failure."""

    message: str = ""
    tokens: int = 0
    rounds: int = 0


@dataclass(slots=True)
class Skipped:
    """Nothing was done and the run goes on (`on_replay: skip`)."""

    reason: str = ""
    tokens: int = 0
    rounds: int = 0


Outcome = Any
"""Done | Failed | TimedOut | Skipped | :class:`agentd.ports.nodes.Suspend`."""

# --- decisions: what the runtime has to do -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cache:
    """`key` is rendered and scoped to workflow and step; `ttl` in seconds, None for ever."""

    key: str
    ttl: float | None


@dataclass(slots=True)
class Effect:
    """An effect to perform, after the records of the same decision are durable.

    `fields` are the kind's fields with templates rendered and defaults filled; shared, not to be changed. `key` is the
    idempotency key, the same for every attempt and replay. `timeout` is the step's own (seconds), None for the
    instance's. `not_before` (epoch seconds) holds back a retry. `cache`: look there first and settle with
    ``Done(output, cached=True)``. `options` holds `budget` (tokens) where given. `replay` is
    true when the entry was found running at a resume, and may have been performed.
    """

    entry: str
    kind: str
    spec: StepSpec
    fields: dict[str, Any]
    attempt: int
    key: str
    timeout: float | None
    options: Mapping[str, Any]
    not_before: float | None = None
    cache: Cache | None = None
    replay: bool = False


@dataclass(slots=True)
class Wait:
    """Something to wait for: settle `entry` with ``Done(value)`` when it comes, with :class:`TimedOut` at `until`.

    ``on == {}`` is a plain timer (`sleep`, a paced or repeated body): at `until` settle with ``Done()``.
    ``on == {"body": True}`` is the deadline of a body: at `until` settle with ``TimedOut()``; void when the body ends
    before. Otherwise `on` is what a performer put in its `Suspend`, or the rendered fields of a `wait` step. Settling a
    wait that is no longer there is harmless. `key` is the entry's idempotency key.
    """

    entry: str
    kind: str
    on: Mapping[str, Any]
    until: float | None
    key: str = ""


@dataclass(slots=True)
class Finished:
    """The end of a run. `err` names the failed step in `step`."""

    status: RunStatus
    output: Any = None
    err: Error | None = None
    reason: str = ""


@dataclass(slots=True)
class Decision:
    """What follows from one event, in the order it is to be done.

    1. `records` ``(entry, state)`` are made durable together, in one commit, before anything below;
    2. entries in `cancelled` are abandoned: effects in flight are cancelled, waits and timers dropped; what they still
       say is ignored;
    3. `effects` are performed, `waits` armed (past deadlines fire at once), `caches` ``(cache, output)`` kept;
    4. `finished`, when set, ends the run; nothing else follows.

    `events` ``(event, fields)`` are to be logged, without the run's id. `flush`: a `checkpoint` step asks for its
    records to be on disk even when no effect follows; the run goes on by itself.
    """

    records: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    waits: list[Wait] = field(default_factory=list)
    caches: list[tuple[Cache, Any]] = field(default_factory=list)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    finished: Finished | None = None
    flush: bool = False
