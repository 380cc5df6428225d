"""Sets of events that belong together, collected within a window; pure.

Time is the events' own (epoch seconds). The pending sets follow from the events in them, so that their positions are
all that has to be durable.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agentd.journal.streams import Event
from agentd.runtime.starts.follow import matches


@dataclass(slots=True)
class Set:
    """The events of one key so far, by pattern; of two events of one pattern the later counts."""

    key: str
    got: dict[str, Event] = field(default_factory=dict)
    reason: str = ""
    """Why it is over without being complete."""

    @property
    def since(self) -> float:
        """When its window began."""
        return min(event.at for event in self.got.values())

    @property
    def positions(self) -> list[int]:
        """Of its events in the stream, ascending."""
        return sorted(event.n for event in self.got.values())


class Sets:
    """The pending sets. `on` are the patterns that make a set complete, `most` is how many may be pending."""

    def __init__(self, on: Sequence[str], window: float, most: int) -> None:
        self._on, self._window, self._most = tuple(on), window, most
        self._pending: dict[str, Set] = {}

    def wants(self, subject: str) -> bool:
        """Whether an event of this subject belongs into a set."""
        return any(matches(pattern, subject) for pattern in self._on)

    def put(self, key: str, event: Event) -> None:
        """Add an event to the set of `key`, which then may be complete."""
        pending = self._pending.setdefault(key, Set(key))
        fitting = [pattern for pattern in self._on if matches(pattern, event.subject)]
        free = [pattern for pattern in fitting if pattern not in pending.got]
        pending.got[(free or fitting)[0]] = event

    def take(self, key: str, event: Event) -> list[Set]:
        """Add an event; the sets that are over by it, the complete one last."""
        over = self.expire(event.at)
        self.put(key, event)
        if len(self._pending[key].got) == len(self._on):
            over.append(self._pending.pop(key))
        elif len(self._pending) > self._most:
            oldest = min(self._pending.values(), key=lambda pending: pending.since)
            over.append(self._end(oldest, f"more than {self._most} incomplete sets"))
        return over

    def expire(self, now: float) -> list[Set]:
        """The sets whose window is over, oldest first."""
        late = [pending for pending in self._pending.values() if pending.since + self._window <= now]
        return [self._end(pending, "the window is over") for pending in sorted(late, key=lambda p: p.since)]

    def _end(self, pending: Set, reason: str) -> Set:
        pending.reason = f"{reason}; it lacks {', '.join(p for p in self._on if p not in pending.got)}"
        return self._pending.pop(pending.key)

    @property
    def next_end(self) -> float | None:
        """When the next window is over."""
        return min((pending.since + self._window for pending in self._pending.values()), default=None)

    def positions(self) -> Iterator[int]:
        """Of every pending event."""
        for pending in self._pending.values():
            yield from pending.positions

    def __len__(self) -> int:
        return len(self._pending)
