"""The asynchronous side: one writer thread, group commit.

Commits of one turn of the loop, and whatever queued while a commit ran, are one transaction and one flush. A waiter
is resolved only when its transaction is on disk. Reads go through the same thread, so they see every earlier write.

On a file system in memory no commit waits for a device, so there the loop does the work itself: handing it to a thread
and back would cost several times what it takes.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from agentd.errors import StoreError
from agentd.ports.store import Delete, Envelope, Page, Put, Write
from agentd_store_file.ledger import Ledger, Row
from agentd_store_file.place import IN_MEMORY, file_system

T = TypeVar("T")
_PAGE = 1000
_BATCH_BYTES = 16 << 20  # of one transaction: the log must hold it whole

Unit = tuple[list[Row], "Receipt"]
Units = list[Unit]
Question = tuple[Callable[[], Any], asyncio.Future[Any]]
Job = Units | Question | None
"""Units to commit, something to read, or None to end."""


class Receipt:
    """What :meth:`FileStore.commit` gives: awaitable, and with the callbacks of a future.

    Unlike a future's, the callbacks are called at once and not in the next turn of the loop: a chain of steps, each
    waiting for the commit of the last, saves that turn.
    """

    __slots__ = ("_callbacks", "_done", "_error", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._done = False
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Receipt], None]] = []

    def done(self) -> bool:
        return self._done

    def exception(self) -> BaseException | None:
        """Why the unit is not durable, None if it is. Once :meth:`done`."""
        return self._error

    def add_done_callback(self, callback: Callable[[Receipt], None]) -> None:
        """Call `callback` with the receipt, on the loop."""
        if self._done:
            self._loop.call_soon(callback, self)
        else:
            self._callbacks.append(callback)

    def settle(self, error: BaseException | None) -> None:
        """The unit is on disk, or failed. On the loop."""
        self._done, self._error = True, error
        for callback in self._callbacks:
            try:
                callback(self)
            except Exception as trouble:  # one waiter's trouble is not the others'
                context = {"message": "a callback of the store failed", "exception": trouble}
                self._loop.call_exception_handler(context)
        self._callbacks.clear()

    def __await__(self) -> Generator[Any, None, None]:
        if not self._done:
            future = self._loop.create_future()
            self.add_done_callback(lambda receipt: None if future.done() else future.set_result(None))
            yield from future.__await__()
        if self._error is not None:
            raise self._error


class FileStore:
    """:class:`agentd.ports.store.Store` over a :class:`~agentd_store_file.ledger.Ledger` in a thread of its own."""

    def __init__(self, *, readonly: bool) -> None:
        self._loop = asyncio.get_running_loop()
        self._readonly = readonly
        self._thread: threading.Thread | None = None
        self._turn: Units = []  # commits of this turn of the loop
        self._queue: SimpleQueue[Job] = SimpleQueue()
        self._ledger: Ledger
        self._ended = self._loop.create_future()

    @classmethod
    async def open(cls, root: Path, *, readonly: bool = False) -> FileStore:
        """Start the writer and open the ledger there. Raises StoreError, StoreCorrupt."""
        store = cls(readonly=readonly)
        if file_system(root) in IN_MEMORY:
            store._ledger = Ledger.open(root, readonly=readonly)
            return store
        opened: asyncio.Future[None] = store._loop.create_future()
        store._thread = threading.Thread(target=store._work, args=(root, opened), name="agentd-store", daemon=True)
        store._thread.start()
        await opened
        return store

    @property
    def flushes(self) -> int:
        """Transactions committed, each one flush."""
        return self._ledger.flushes

    async def put(self, key: str, seq: int, envelope: Envelope) -> None:
        await self.commit([Put(key, seq, envelope)])

    async def delete(self, key: str) -> None:
        await self.commit([Delete(key)])

    def commit(self, writes: Sequence[Write]) -> Receipt:
        receipt = Receipt(self._loop)
        if self._readonly:
            receipt.settle(StoreError("this view of the store is for reading only"))
            return receipt
        turn = self._turn
        turn.append(([_row(write) for write in writes], receipt))
        if len(turn) == 1:
            self._loop.call_soon(self._hand_over)
        return receipt

    def _hand_over(self) -> None:
        if self._turn:
            turn, self._turn = self._turn, []
            if self._thread is None:
                self._apply(turn, _settle)
            else:
                self._queue.put(turn)

    async def get(self, key: str) -> Envelope | None:
        text = await self._ask(lambda: self._ledger.get(key))
        return None if text is None else json.loads(text)

    async def list(self, prefix: str, after: str | None = None, limit: int = 1000) -> list[str]:
        return await self._ask(lambda: self._ledger.keys(prefix, after, limit))

    async def scan(self, prefix: str) -> AsyncIterator[Page]:
        after: str | None = None
        while page := await self._ask(lambda: self._ledger.page(prefix, after, _PAGE)):  # noqa: B023 asked at once
            # One call for the page costs a third of one for each record: a restart reads many thousands.
            envelopes = json.loads(f"[{','.join([text for _, text in page])}]")
            yield [(key, envelope) for (key, _), envelope in zip(page, envelopes, strict=True)]
            after = page[-1][0]

    def _ask(self, question: Callable[[], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()
        self._hand_over()
        if self._thread is None:
            _resolve(future, *_answer(question))
        else:
            self._queue.put((question, future))
        return future

    async def close(self) -> None:
        """Commit what was taken, close the ledger, end the thread."""
        if self._thread is None:
            self._hand_over()
            self._ledger.close()
            return
        if not self._thread.is_alive():
            return  # in a forked child, where the thread was left behind and the ledger is not ours
        self._hand_over()
        self._queue.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    # -- the thread --

    def _work(self, root: Path, opened: asyncio.Future[None]) -> None:
        try:
            self._ledger = Ledger.open(root, readonly=self._readonly)
        except BaseException as error:
            self._call(_resolve, opened, None, error)
            return
        self._call(_resolve, opened, None, None)
        try:
            job = self._queue.get()
            while job is not None:
                if isinstance(job, list):
                    job = self._commit(job)
                else:
                    question, future = job
                    self._call(_resolve, future, *_answer(question))
                    job = self._queue.get()
        finally:
            self._ledger.close()
            self._call(_resolve, self._ended, None, None)

    def _commit(self, units: Units) -> Job:
        """Commit `units` and all that queued behind them, up to the next other job, which is returned."""
        behind: Job = units
        while isinstance(behind, list) and not self._queue.empty():
            behind = self._queue.get()
            if isinstance(behind, list):
                units += behind
        self._apply(units, partial(self._call, _settle))
        return self._queue.get() if isinstance(behind, list) else behind

    def _apply(self, units: Units, tell: Callable[[Sequence[Receipt], Sequence[BaseException | None]], None]) -> None:
        for batch in _batches(units):
            tell([receipt for _, receipt in batch], self._ledger.apply([rows for rows, _ in batch]))

    def _call(self, function: Callable[..., None], *args: Any) -> None:
        with suppress(RuntimeError):  # the loop is gone, and with it whoever waited
            self._loop.call_soon_threadsafe(function, *args)


def _answer(question: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    try:
        return question(), None
    except BaseException as raised:
        return None, raised


def _row(write: Write) -> Row:
    if isinstance(write, Delete):
        return write.key
    return write.key, write.seq, write.text or json.dumps(write.envelope, separators=(",", ":"))


def _batches(units: Units) -> Iterator[Units]:
    if len(units) == 1:
        yield units
        return
    batch: Units = []
    size = 0
    for unit in units:
        batch.append(unit)
        size += sum(len(row[2]) if isinstance(row, tuple) else 0 for row in unit[0])
        if size >= _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _settle(receipts: Sequence[Receipt], results: Sequence[BaseException | None]) -> None:
    """Tell a whole batch with one call into the loop."""
    for receipt, error in zip(receipts, results, strict=True):
        receipt.settle(error)


def _resolve(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
