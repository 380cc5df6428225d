"""The inbox: accept means durable.

An event is shown to admission only when it is on disk; it leaves in the commit that writes its run. A run's id is its
event's id, so an event that is offered again (the same key, a replayed delivery) is found in the inbox or as a run.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Mapping
from functools import partial

from agentd.errors import AgentdError
from agentd.journal.delivery import Done
from agentd.journal.envelope import State
from agentd.journal.journal import Journal, Record


def event_id(source: str, key: str) -> str:
    """The id of the event that `source` (a workflow and node, a caller) offers under an idempotency key."""
    return hashlib.sha256(f"{source}\0{key}".encode("utf-8", "surrogatepass")).hexdigest()[:26]


class Inbox:
    """Accepted events that have not become a run."""

    def __init__(self, journal: Journal, restored: Mapping[str, State], seen: Container[str]) -> None:
        """`restored` is :attr:`Restored.inbox`; `seen` holds the ids of known runs."""
        self._journal, self._seen = journal, seen
        self.pending: dict[str, State] = dict(restored)
        self._arriving: dict[str, list[Done]] = {}
        self._next = 1 + max((state.get("n", 0) for state in restored.values()), default=0)

    def __len__(self) -> int:
        return len(self.pending)

    def accept(self, id: str, event: State, done: Done, arrived: Callable[[str], None] | None = None) -> bool:
        """Keep `event` (a JSON object) under `id`. `done` is called once it is durable, or with why it is not.

        False if the same id was accepted before: then `done` is called when that one is durable, and `arrived` (how
        admission hears of a new event) is not.
        """
        if id in self._arriving:
            self._arriving[id].append(done)
            return False
        if id in self.pending or id in self._seen:
            self._journal.write([], done)
            return False
        self._arriving[id] = [done]
        state = {**event, "n": self._next}
        self._next += 1
        self._journal.write([("inbox", id, state)], partial(self._kept, id, state, arrived))
        return True

    def _kept(self, id: str, state: State, arrived: Callable[[str], None] | None, error: AgentdError | None) -> None:
        waiting = self._arriving.pop(id)
        if error is None:
            self.pending[id] = state
        for done in waiting:
            done(error)
        if error is None and arrived:
            arrived(id)

    def take(self, id: str) -> Record:
        """Remove the event from the queue; the record to be written in the commit of its run."""
        del self.pending[id]
        return ("inbox", id, None)
