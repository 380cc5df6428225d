"""Durable event streams: append, read after a position, keep the latest."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from agentd.errors import AgentdError
from agentd.journal.delivery import Done
from agentd.journal.journal import Journal, Record
from agentd.ports.host import Clock


class Keep(NamedTuple):
    """How much of a stream is kept."""

    max_events: int = 10000
    max_age: float | None = None


class Event(NamedTuple):
    """One event; `n` is its position, from 1, without gaps at the end that is kept."""

    n: int
    at: float
    subject: str
    data: Any


class Streams:
    """The declared streams of an instance."""

    def __init__(self, journal: Journal, declared: Mapping[str, Keep], clock: Clock) -> None:
        self._journal, self._clock = journal, clock
        self._streams = {name: _Stream(keep) for name, keep in declared.items()}
        self._telling: set[asyncio.Future[None]] = set()

    async def open(self) -> None:
        """Find where each stream stands. Once, before anything else."""
        for name, stream in self._streams.items():
            for id, state in (await self._journal.read_many("stream", f"{name}/")).items():
                stream.kept.append((_position(id), float(state["at"])))
                if "key" in state:
                    stream.name(state["key"], _position(id))
            stream.last = stream.kept[-1][0] if stream.kept else 0
        # A stream that lost all events to age keeps its position, or old cursors would hide new events.
        for name, state in (await self._journal.read_many("stream", "=")).items():
            if name[1:] in self._streams:
                self._streams[name[1:]].last = max(self._streams[name[1:]].last, int(state["last"]))

    def last(self, name: str) -> int:
        """The position of the newest event, 0 if there never was one. Raises KeyError for an undeclared stream."""
        return self._streams[name].last

    def listen(self, name: str, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Call `listener` with each event from now on, once it is durable; the result ends that."""
        listeners = self._streams[name].listeners
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def __contains__(self, name: object) -> bool:
        return name in self._streams

    def append(self, name: str, subject: str, data: Any, done: Done | None = None, *, key: str | None = None) -> int:
        """Add an event; its position. `done` is called once it is durable, or with why it is not.

        The same `key` twice is one event, as long as the first is kept.
        """
        stream = self._streams[name]
        if key is not None and (known := stream.keys.get(key)) is not None:
            if done is not None:
                telling = asyncio.ensure_future(self._settled(done))
                self._telling.add(telling)
                telling.add_done_callback(self._telling.discard)
            return known
        stream.last += 1
        event = Event(stream.last, self._clock.now(), subject, data)
        stream.kept.append((event.n, event.at))
        state = {"at": event.at, "subject": subject, "data": data}
        if key is not None:
            state["key"] = key
            stream.name(key, event.n)
        records: list[Record] = [("stream", _id(name, event.n), state)]
        records += [("stream", _id(name, n), None) for n in stream.expired(event.at)]
        self._journal.write(records, partial(self._kept, stream, event, done))
        return event.n

    async def _settled(self, done: Done) -> None:
        await self._journal.settled()
        done(None)

    def _kept(self, stream: _Stream, event: Event, done: Done | None, error: AgentdError | None) -> None:
        if done:
            done(error)
        if error is None:
            for listener in list(stream.listeners):
                listener(event)

    def sweep(self) -> None:
        """Drop what is too old, also from streams nothing is added to."""
        for name, stream in self._streams.items():
            records: list[Record] = [("stream", _id(name, n), None) for n in stream.expired(self._clock.now())]
            if records:
                records.append(("stream", f"={name}", {"last": stream.last}))
                self._journal.write(records, lambda error: None)

    async def read(self, name: str, after: int = 0, limit: int = 100) -> list[Event]:
        """Durable events behind position `after`, oldest first. What retention dropped is skipped."""
        events = []
        for n in [n for n, _ in self._streams[name].kept if n > after][:limit]:
            state = await self._journal.read("stream", _id(name, n))
            if state is not None:
                events.append(Event(n, float(state["at"]), str(state["subject"]), state["data"]))
        return events


class _Stream:
    def __init__(self, keep: Keep) -> None:
        self.keep = keep
        self.last = 0
        self.kept: deque[tuple[int, float]] = deque()
        self.keys: dict[str, int] = {}
        self._named: dict[int, str] = {}
        self.listeners: list[Callable[[Event], None]] = []

    def name(self, key: str, n: int) -> None:
        """The event `n` has this key."""
        self.keys[key], self._named[n] = n, key

    def expired(self, now: float) -> list[int]:
        """Positions that are no longer kept, oldest first; they are forgotten here."""
        oldest = now - self.keep.max_age if self.keep.max_age is not None else float("-inf")
        gone = []
        while self.kept and (len(self.kept) > self.keep.max_events or self.kept[0][1] < oldest):
            gone.append(self.kept.popleft()[0])
            self.keys.pop(self._named.pop(gone[-1], ""), None)
        return gone


def _id(name: str, n: int) -> str:
    return f"{name}/{n:016d}"  # so that key order is the order of events


def _position(id: str) -> int:
    return int(id.rpartition("/")[2])
