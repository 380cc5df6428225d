"""Writes events: one compact JSON object a line, the canonical block first.

A logger is cheap to make (:meth:`Telemetry.bind`) and to call: the block of a bound logger is encoded once, an event
below the level costs a comparison, and no call waits for a disk, a pipe or a reader.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypedDict, Unpack

from agentd.telemetry import content as said
from agentd.telemetry import encode, vocabulary
from agentd.telemetry.trace import TraceContext

_CANONICAL = frozenset(vocabulary.CANONICAL)


class Lines(Protocol):
    """Where lines go; :class:`agentd.telemetry.writer.LineWriter` is the real one."""

    def put(self, line: str) -> None:
        """Take `line`, its newline included; never blocks, never raises."""


class Redactor(Protocol):
    """Keeps credentials out; :class:`agentd.security.redaction.Redactor` is the real one."""

    def suspects(self, line: str, fields: Mapping[str, Any]) -> bool:
        """Whether `line`, which encodes `fields`, may hold something to hide; quick, and rather true than false."""

    def value(self, value: Any) -> Any:
        """`value` with what must be hidden replaced, to any depth."""


class View(Protocol):
    """Another way to show events than JSON; :class:`agentd.telemetry.pretty.PrettyView` is one."""

    def line(self, record: dict[str, Any]) -> str:
        """The text for one event, "" for one that is not shown."""


class Block(TypedDict, total=False):
    """The part of the canonical block that belongs to a logger rather than to an event."""

    run_id: str
    agent_id: str
    agent_path: str
    comp: str
    pid: int
    trace: TraceContext | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    run_id: str = ""
    agent_id: str = "sup"
    agent_path: str = "0"
    comp: str = "supervisor"
    pid: int = 0
    trace: TraceContext | None = None

    def values(self, comp: str) -> dict[str, Any]:
        values: dict[str, Any] = {
            "run_id": self.run_id,
            "agent_id": self.agent_id,
            "agent_path": self.agent_path,
            "comp": comp or self.comp,
            "pid": self.pid or os.getpid(),
        }
        if (trace := self.trace) is not None:
            values.update(trace_id=trace.trace_id, span_id=trace.span_id)
            if trace.parent_id:
                values["parent_span_id"] = trace.parent_id
        return values


class _Core:
    """What all loggers bound from one another share."""

    def __init__(self, lines: Lines, redactor: Redactor, view: View | None, strict: bool, now: Callable[[], float]):
        self.lines, self.redactor, self.view, self.strict, self.now = lines, redactor, view, strict, now
        self.threshold = vocabulary.LEVELS["info"]
        self.content = False
        self.stamp = (-1, "")

    def timestamp(self, at: float) -> str:
        second, ms = divmod(int(at * 1000), 1000)
        known, text = self.stamp  # read and replaced as one: several threads log
        if second != known:
            text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
            self.stamp = (second, text)
        return f"{text}.{ms:03d}Z"


class Telemetry:
    """Implements :class:`agentd.ports.host.Log`.

    `level` is the least that is written, `content` whether what was said is written as it is. `view` shows events in
    another form than JSON. `strict` raises :class:`~agentd.telemetry.vocabulary.UnknownEvent` for anything outside the
    vocabulary: for tests; without it such an event is written all the same.
    """

    def __init__(self, lines: Lines, *, redactor: Redactor, level: str = "info", content: bool = False,
                 view: View | None = None, strict: bool = False, now: Callable[[], float] = time.time,
                 **block: Unpack[Block]) -> None:  # fmt: skip
        self._core = _Core(lines, redactor, view, strict, now)
        self._block = _Block(**block)
        self._heads: dict[tuple[str, str], str] = {}
        self.configure(level=level, content=content)

    def configure(self, *, level: str, content: bool) -> None:
        """Change what is written, for every logger bound from this one or from which this one was bound."""
        self._core.threshold = vocabulary.LEVELS[level]
        self._core.content = content

    def enabled(self, level: str) -> bool:
        """Whether an event of `level` would be written."""
        return vocabulary.LEVELS[level] >= self._core.threshold

    @property
    def trace(self) -> TraceContext | None:
        """The span this logger writes for."""
        return self._block.trace

    def bind(self, **block: Unpack[Block]) -> Telemetry:
        """A logger for another run, agent or span, with everything else as here."""
        other = object.__new__(Telemetry)
        other._core = self._core
        other._block = replace(self._block, **block)
        other._heads = {}
        return other

    def __call__(self, event: str, /, *, level: str | None = None, msg: str = "", err: Any = None,
                 dur_ms: float | None = None, **fields: Any) -> None:  # fmt: skip
        """Write `event`; `level` defaults to the vocabulary's. `err` is an exception, text, or ``{code, message}``.

        A field that bears a name of the canonical block is written with an underscore before it.
        """
        core = self._core
        if core.strict:
            vocabulary.require(event, fields)
        known = vocabulary.EVENTS.get(event)
        if level not in vocabulary.LEVELS:
            level = known.level if known else "info"
        if vocabulary.LEVELS[level] < core.threshold:
            return
        own: dict[str, Any] = {}
        if isinstance(dur_ms, int | float):
            own["dur_ms"] = round(dur_ms, 3)
        if err is not None:
            own["err"] = encode.error_data(err)
        if msg:
            own["msg"] = msg
        hide = known.content if known and not core.content else ()
        if not hide and _CANONICAL.isdisjoint(fields):
            own.update(fields)
        else:
            for name, value in fields.items():
                if name in hide:
                    own.update(said.digest(name, value))
                else:
                    own[f"_{name}" if name in _CANONICAL else name] = value
        self._write(event, level, known.comp if known else "", own)

    def emit_frame(self, frame: Mapping[str, Any]) -> None:
        """Write what a child's `log` frame ``{event, level, msg, fields}`` says, as this (bound) logger."""
        fields = {str(k): v for k, v in (frame.get("fields") or {}).items()}
        for name in ("event", "level", "msg"):
            if name in fields:
                fields[f"_{name}"] = fields.pop(name)
        dur_ms = fields.pop("dur_ms", None)
        if not isinstance(dur_ms, int | float):
            dur_ms = None
        level = str(frame.get("level"))
        self(str(frame.get("event", "")), level=level,
             msg=str(frame.get("msg") or ""), dur_ms=dur_ms, **fields)  # fmt: skip

    def notice(self, lost: int) -> str:
        """The line that tells of `lost` lines, for a writer to put in their place."""
        return self._line("log.dropped", "warn", "", {"lines": lost})

    def _write(self, event: str, level: str, comp: str, own: dict[str, Any]) -> None:
        if line := self._line(event, level, comp, own):
            self._core.lines.put(line)

    def _line(self, event: str, level: str, comp: str, own: dict[str, Any]) -> str:
        core = self._core
        ts = core.timestamp(core.now())
        if core.view is not None:
            own = core.redactor.value(encode.tame(own))
            return core.view.line({"ts": ts, "level": level, "event": event, **self._block.values(comp), **own})
        head = f'{{"ts":"{ts}",{self._head(event, level, comp)}'
        line = _join(head, encode.members(own))
        if core.redactor.suspects(line, own):
            own = core.redactor.value(encode.tame(own))
            line = _join(head, encode.members(own))
        if len(line) * 4 > encode.MAX_LINE and (size := len(line.encode("utf-8", "replace"))) > encode.MAX_LINE:
            line = _cut(head, own, size)
        return line

    def _head(self, event: str, level: str, comp: str) -> str:
        """The encoded block after the time; the same for each event of a name and level."""
        head = self._heads.get((event, level))
        if head is None:
            head = encode.members({"level": level, "event": event, **self._block.values(comp)})
            if event in vocabulary.EVENTS:
                self._heads[event, level] = head
        return head


def _join(head: str, own: str) -> str:
    return f"{head},{own}}}\n" if own else f"{head}}}\n"


def _cut(head: str, own: dict[str, Any], size: int) -> str:
    """A line too long for a reader, made short: the longest strings first, then all the event's fields."""
    for keep in (16 << 10, 1 << 10):
        line = _join(head, encode.members({**encode.shorten(encode.tame(own), keep), "cut_bytes": size}))
        if len(line.encode("utf-8", "replace")) <= encode.MAX_LINE:
            return line
    return _join(head, encode.members({"cut_bytes": size}))
