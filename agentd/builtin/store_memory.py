"""The kernel's own stores: `memory` lives in the process, `none` serves one-shots."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from agentd.errors import Conflict
from agentd.hookspecs import hookimpl
from agentd.ports.host import Host
from agentd.ports.store import Delete, Envelope, Page, Put, StoreSpec, Write

if TYPE_CHECKING:
    import asyncio

_PAGE = 1000


class MemoryOptions(BaseModel):
    """`store.memory` and `store.none` have no options."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


@hookimpl
def agentd_stores() -> Iterable[StoreSpec]:
    return [
        StoreSpec(kind="memory", options=MemoryOptions, open=open_memory, durable=False),
        StoreSpec(kind="none", options=MemoryOptions, open=open_memory, durable=False),
    ]


@asynccontextmanager
async def open_memory(options: MemoryOptions, host: Host) -> AsyncIterator[MemoryStore]:
    """A store that is empty at the start and gone at the end."""
    yield MemoryStore()


class MemoryStore:
    """:class:`agentd.ports.store.Store` in a dictionary of JSON texts, so that nothing is shared with the writer."""

    def __init__(self) -> None:
        self._records: dict[str, tuple[int, str]] = {}

    async def put(self, key: str, seq: int, envelope: Envelope) -> None:
        self._apply([Put(key, seq, envelope)])

    async def get(self, key: str) -> Envelope | None:
        found = self._records.get(key)
        return json.loads(found[1]) if found else None

    async def list(self, prefix: str, after: str | None = None, limit: int = 1000) -> list[str]:
        return sorted(k for k in self._records if k.startswith(prefix) and (after is None or k > after))[:limit]

    async def delete(self, key: str) -> None:
        self._records.pop(key, None)

    def commit(self, writes: Sequence[Write]) -> asyncio.Future[None]:
        import asyncio

        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self._apply(writes)
        except Conflict as error:
            future.set_exception(error)
        else:
            future.set_result(None)
        return future

    def _apply(self, writes: Sequence[Write]) -> None:
        new: dict[str, tuple[int, str] | None] = {}
        for write in writes:
            if isinstance(write, Delete):
                new[write.key] = None
                continue
            stored = new[write.key] if write.key in new else self._records.get(write.key)
            text = write.text or json.dumps(write.envelope)
            if stored and write.seq <= stored[0] and stored != (write.seq, text):
                raise Conflict(key=write.key, latest=stored[0])
            new[write.key] = (write.seq, text)
        for key, record in new.items():
            if record is None:
                self._records.pop(key, None)
            else:
                self._records[key] = record

    async def scan(self, prefix: str) -> AsyncIterator[Page]:
        after: str | None = None
        while keys := await self.list(prefix, after, _PAGE):
            yield [(key, json.loads(self._records[key][1])) for key in keys if key in self._records]
            after = keys[-1]
