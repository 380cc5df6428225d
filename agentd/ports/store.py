"""Durable state behind put, get, list and delete with a sequence compare-and-set.

Keys are made by the journal: ``<prefix>/<instance>/<kind>/<id>``, each segment percent-encoded but for
``[A-Za-z0-9_-]``. An envelope is a JSON object ``{v, kind, id, seq, ts, instance, hash?, state}``; a store keeps
it as it came and never looks inside but for ``seq``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from pydantic import BaseModel

    from agentd.ports.host import Host

Envelope = dict[str, Any]
Page = list[tuple[str, Envelope]]
"""Records of one page of a scan, in key order."""


class Put(NamedTuple):
    """One write: `seq` must exceed the stored sequence of `key`, the first write is 1.

    `text` is the envelope as ASCII JSON where the writer has it at hand, so that it is encoded once. The envelope may
    change as soon as :meth:`Store.commit` has returned; a store that needs it later encodes or copies it there.
    """

    key: str
    seq: int
    envelope: Envelope
    text: str | None = None


class Delete(NamedTuple):
    """One removal inside a :meth:`Store.commit`."""

    key: str


Write = Put | Delete


@runtime_checkable
class Store(Protocol):
    """Where durable state lives. Used by one task of one loop at a time per key; different keys run side by side.

    Errors: :class:`agentd.errors.Conflict` when a sequence is taken, :class:`agentd.errors.StoreError` (or
    :class:`~agentd.errors.StoreFull`) when the write is not known to be durable. A call that returns has been made
    durable. A put of an envelope that is already there under the same sequence (a retry that meets its own write)
    succeeds.
    """

    async def put(self, key: str, seq: int, envelope: Envelope) -> None:
        """Write `envelope` under `key` if `seq` exceeds what is stored."""

    async def get(self, key: str) -> Envelope | None:
        """The latest envelope of `key`, None if it was never written or deleted."""

    async def list(self, prefix: str, after: str | None = None, limit: int = 1000) -> list[str]:
        """At most `limit` keys that begin with `prefix`, in ascending order, those after `after` only."""

    async def delete(self, key: str) -> None:
        """Remove `key`; absent is fine. A later put starts at 1 again."""

    def commit(self, writes: Sequence[Write]) -> Awaitable[None]:
        """Several writes, all or none. Ordered with every earlier call; must not block the loop."""

    def scan(self, prefix: str) -> AsyncIterator[Page]:
        """Pages of ``(key, envelope)`` in key order: how a restore reads thousands of records at once."""


class Pressure(NamedTuple):
    """What a store says of its room, every 2 s at most: bytes free and the bytes it wants to keep free."""

    free_bytes: int
    min_free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSpec:
    """A kind of store, chosen by `store.kind`; its options are mounted at `store.<kind>`.

    `open` is called once per boot, on the loop, after the whole configuration is valid. `durable` tells whether the
    state outlives the process. `pressure`, where the store can tell, is read every 2 s and must be quick.
    `describe` gives the fields of the `store.*` start event and of `--capabilities`. `view` opens the same store for
    reading only, beside a live writer and without touching anything of it (`agentd store ls|cat|export|verify`);
    it raises :class:`agentd.errors.StoreCorrupt` for damage.
    """

    kind: str
    options: type[BaseModel]
    open: Callable[[Any, Host], AbstractAsyncContextManager[Store]]
    durable: bool = True
    pressure: Callable[[Any], Pressure | None] | None = None
    describe: Callable[[Any], dict[str, Any]] | None = None
    view: Callable[[Any, Host], AbstractAsyncContextManager[Store]] | None = None
