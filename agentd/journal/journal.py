"""The journal: records of one instance, written in order and restored after a crash.

A record is ``(kind, id, state)``; `state` is a JSON object, or None to remove it. Records of one :meth:`Journal.write`
are durable together or not at all; writes of one turn of the loop share a flush where the store can. Write before
acknowledging: whoever needs a write to be durable waits for its callback or future.

Kinds are those of :data:`agentd.journal.restored.WORK` and ``manifest memory stream budget cache pairing audit``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar, overload

from agentd.errors import AgentdError
from agentd.journal.delivery import Delivery, Done, Health, unanswered
from agentd.journal.envelope import State, TooLarge, seal, unseal
from agentd.journal.keys import Keys, parse
from agentd.journal.restored import LISTED, READ, WORK, Restored
from agentd.ports.host import Clock, Log
from agentd.ports.store import Delete, Put, Store, Write

HEARTBEAT = 10.0
"""Seconds between two comparisons of the manifest's generation."""
PROBE = 1.0
"""The same while commits fail: the first that succeeds tells that the store works again."""

T = TypeVar("T")

Record = tuple[str, str, State | None]
"""``(kind, id, state)``; a state of None removes the record."""

_PER_RUN = 200  # with more unfinished runs one scan of all steps is cheaper than a scan for each


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The part of the configuration that the journal needs: `store.*` and the instance's name."""

    instance: str
    prefix: str = "agentd"
    timeout: float = 30.0
    max_value_bytes: int = 64 << 20
    on_error: Literal["halt", "degrade"] = "halt"


class Journal:
    """Durable records over a store. Used from one loop only; nothing here blocks it."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        clock: Clock,
        log: Log,
        notify: Callable[[Health], None] = lambda health: None,
    ) -> None:
        """`notify` is called on the loop at each change of :attr:`health`; readiness and admission follow it."""
        self.store = store
        self.generation = 0
        self._settings, self._clock, self._log, self._notify = settings, clock, log, notify
        self._keys = Keys(settings.prefix, settings.instance)
        self._seq: dict[str, int] = {}
        self._unread: set[str] = set()  # keys of an earlier life whose sequence is not known
        self._manifest: State = {}
        self._beat: asyncio.Task[None] | None = None
        self._delivery = Delivery(
            store,
            clock=clock,
            log=log,
            timeout=settings.timeout,
            degrade=settings.on_error == "degrade",
            notify=self._changed,
        )

    @property
    def health(self) -> Health:
        """Whether what is written becomes durable."""
        return self._delivery.health

    @property
    def outstanding(self) -> int:
        """Writes that are not durable yet."""
        return self._delivery.outstanding

    async def open(self, *, fresh: bool = False, digest: Mapping[str, str] | None = None) -> Restored:
        """Read the manifest and every live record, and begin the next generation, durably.

        `fresh` retires the work of earlier generations, in the commit that begins the new one. `digest` maps the
        names of configuration sections that shape durable state to their hashes; ``store.config_changed`` is logged
        for those that moved. Raises :class:`agentd.errors.StoreError`; :class:`~agentd.errors.Conflict` when another
        process begins a generation at the same moment; :class:`~agentd.journal.envelope.UnknownVersion`.
        """
        last = await self.read("manifest", "instance")
        restored = Restored(generation=1, fresh=fresh or last is None)
        if last is not None:
            restored.generation = int(last.get("generation", 0)) + 1
            restored.superseded = restored.generation - 1 if fresh else None
            self._compare(last.get("digest") or {}, digest or {})
        retire: list[Write] = []
        if fresh:
            retire = [Delete(key) for kind in WORK for key in await self._list(self._keys.under(kind))]
            restored.retired = len(retire)
        await self._read_all(restored, [kind for kind in READ if not (fresh and kind in WORK)])
        self.generation = restored.generation
        self._manifest = {"generation": self.generation, "digest": dict(digest or {}), "since": self._clock.now()}
        self._add(retire, "manifest", "instance", self._manifest, self._clock.now())
        await self._bounded(self.store.commit(retire))
        self._beat = asyncio.ensure_future(self._heartbeat())
        return restored

    def _compare(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        moved = sorted(name for name in before.keys() & now.keys() if before[name] != now[name])
        if moved:
            self._log("store.config_changed", level="warn", sections=moved)

    async def _read_all(self, restored: Restored, kinds: Sequence[str]) -> None:
        for kind in kinds:
            into = restored.of(kind)
            await self._scan(self._keys.under(kind), lambda id, state, into=into: into.__setitem__(id, state))  # type: ignore[misc]
        live = restored.unfinished

        def keep(id: str, state: State) -> None:
            run, _, scoped = id.partition("/")
            if run in live:
                restored.steps.setdefault(run, {})[scoped] = state

        prefixes = [f"{run}/" for run in live] if len(live) <= _PER_RUN else [""]
        for prefix in prefixes:
            await self._scan(self._keys.under("step", prefix), keep)
        for kind in LISTED:
            self._unread.update(await self._list(self._keys.under(kind)))

    async def _scan(self, prefix: str, keep: Callable[[str, State], None]) -> None:
        async for page in self.store.scan(prefix):
            for key, envelope in page:
                id, seq, state = unseal(key, envelope)
                self._seq[key] = max(seq, self._seq.get(key, 0))
                self._unread.discard(key)
                if state is not None:
                    keep(id, state)

    def _changed(self, health: Health) -> None:
        if health is Health.FAILING and self._beat:
            self._beat.cancel()
            self._beat = asyncio.ensure_future(self._heartbeat())
        self._notify(health)

    async def _heartbeat(self) -> None:
        """Per-key conflicts do not fence fresh keys, so the manifest is compared and set now and then."""
        while True:
            await self._clock.sleep(PROBE if self.health is Health.FAILING else HEARTBEAT)
            self.write([("manifest", "instance", self._manifest)], lambda error: None)

    @overload
    def write(self, records: Sequence[Record]) -> asyncio.Future[None]: ...
    @overload
    def write(self, records: Sequence[Record], callback: Done) -> None: ...
    def write(self, records: Sequence[Record], callback: Done | None = None) -> asyncio.Future[None] | None:
        """Make `records` durable, all or none, after every earlier write.

        States are encoded before this returns and may change afterwards. With `callback` (the hot path: no task and
        no future of ours) it is called once, later, with None or the error, and None is returned; without it the
        future of the write. Errors: :class:`~agentd.journal.envelope.TooLarge` (only this write fails),
        :class:`~agentd.errors.Conflict` (fenced: nothing will be written again), other
        :class:`~agentd.errors.StoreError` after the retries. Raises TypeError or ValueError at once for a state that
        is not JSON.
        """
        future: asyncio.Future[None] | None = None
        if callback is None:
            future = asyncio.get_running_loop().create_future()
            callback = _resolver(future)
        writes: list[Write] = []
        now = round(self._clock.now(), 3)
        removes, largest = False, 0
        for kind, id, state in records:
            removes |= self._add(writes, kind, id, state, now)
            last = writes[-1]
            if isinstance(last, Put) and last.text is not None and len(last.text) > largest:
                largest = len(last.text)
        if removes:
            callback = partial(self._removed, writes, dict(self._seq_of(writes)), callback)
        if largest > self._settings.max_value_bytes:
            asyncio.get_running_loop().call_soon(callback, self._too_large(writes, largest))
        else:
            self._delivery.submit(writes, callback)
        return future

    @overload
    def forget(self, kind: str, id: str) -> asyncio.Future[None]: ...
    @overload
    def forget(self, kind: str, id: str, callback: Done) -> None: ...
    def forget(self, kind: str, id: str, callback: Done | None = None) -> asyncio.Future[None] | None:
        """Remove one record; absent is fine. In one commit with others: a record whose state is None."""
        return self.write([(kind, id, None)]) if callback is None else self.write([(kind, id, None)], callback)

    def _add(self, writes: list[Write], kind: str, id: str, state: State | None, now: float) -> bool:
        """Append the write of one record; whether that removes something."""
        key = self._keys.key(kind, id)
        if state is None:
            writes.append(Delete(key))
            return True
        anew = key in self._unread  # its sequence is not known, so it starts anew
        if anew:
            writes.append(Delete(key))
        seq = self._seq.get(key, 0) + 1
        writes.append(seal(key, kind, id, seq, state, now, self._settings.instance))
        self._seq[key] = seq
        return anew

    def _seq_of(self, writes: Sequence[Write]) -> Iterator[tuple[str, int]]:
        """Of each record that `writes` leave removed, the sequence it had."""
        last = {write.key: write for write in writes}
        return ((key, self._seq[key]) for key, w in last.items() if isinstance(w, Delete) and key in self._seq)

    def _removed(self, writes: Sequence[Write], had: dict[str, int], done: Done, error: AgentdError | None) -> None:
        """A sequence is forgotten only when its record is gone: a put behind a removal that failed must exceed it."""
        if error is None:
            self._unread.difference_update(write.key for write in writes)
            for key, seq in had.items():
                if self._seq.get(key) == seq:
                    del self._seq[key]
        done(error)

    def _too_large(self, writes: Sequence[Write], size: int) -> TooLarge:
        key = next(w.key for w in writes if isinstance(w, Put) and w.text is not None and len(w.text) == size)
        return TooLarge(key=key, size=size, limit=self._settings.max_value_bytes)

    async def read(self, kind: str, id: str) -> State | None:
        """The latest durable state of one record, None if there is none. After every write before this call."""
        key = self._keys.key(kind, id)
        envelope = await self._bounded(self.store.get(key))
        if envelope is None:
            return None
        _, seq, state = unseal(key, envelope)
        self._seq[key] = max(seq, self._seq.get(key, 0))
        self._unread.discard(key)
        return state

    async def read_many(self, kind: str, id_prefix: str = "") -> dict[str, State]:
        """The durable records of `kind` whose id begins with `id_prefix`, in key order."""
        found: dict[str, State] = {}
        await self._scan(self._keys.under(kind, id_prefix), found.__setitem__)
        return found

    async def ids(self, kind: str, id_prefix: str = "") -> list[str]:
        """The ids of `kind` that begin with `id_prefix`, in key order, without reading the records."""
        return [parse(key)[3] for key in await self._list(self._keys.under(kind, id_prefix))]

    async def remove_all(self, kind: str, id_prefix: str) -> int:
        """Remove every record of `kind` whose id begins with `id_prefix`; how many there were."""
        ids = await self.ids(kind, id_prefix)
        if ids:
            await self.write([(kind, id, None) for id in ids])
        return len(ids)

    async def remove_run(self, run: str) -> None:
        """Remove a finished run with its steps, timers, artifacts and transcripts (retention)."""
        doomed: list[Record] = [("run", run, None)]
        for kind in ("step", "timer", "artifact", "context"):
            doomed += [(kind, id, None) for id in await self.ids(kind, f"{run}/")]
        await self.write(doomed)

    async def _list(self, prefix: str) -> list[str]:
        keys: list[str] = []
        while page := await self._bounded(self.store.list(prefix, keys[-1] if keys else None)):
            keys += page
        return keys

    async def _bounded(self, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._settings.timeout):
                return await call
        except TimeoutError:
            raise unanswered(self._settings.timeout) from None

    async def settled(self) -> None:
        """Return when every write before this call is durable or has failed."""
        await self._delivery.settled()

    async def close(self) -> None:
        """Settle what is on its way and stop; the store itself is closed by whoever opened it."""
        if self._beat:
            self._beat.cancel()
        await self._delivery.close()


def _resolver(future: asyncio.Future[None]) -> Done:
    def resolve(error: AgentdError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    return resolve
