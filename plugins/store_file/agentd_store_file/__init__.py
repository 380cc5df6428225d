"""The `file` store: one directory, a SQLite ledger in WAL mode, group commit, an exclusive lock.

The word in the configuration is ``store.kind: file``. What a directory holds: ``data.db`` (the ledger), ``data.db-wal``
(its write-ahead log, while open), ``.lock`` (held by the process that writes, with its pid), ``.open`` (there while
the ledger is open: a missing log then means lost writes).
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from agentd.errors import StoreError
from agentd.hookspecs import hookimpl
from agentd.ports.fields import Size
from agentd.ports.host import Host
from agentd.ports.store import Pressure, StoreSpec
from agentd_store_file import place

if TYPE_CHECKING:
    from agentd_store_file.store import FileStore


class FileOptions(BaseModel):
    """`store.file`."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)
    path: str | None = Field(
        None,
        description="the directory; else $AGENTD_STATE_DIR, $XDG_STATE_HOME/agentd/state, ~/.local/state/agentd/state",
        json_schema_extra={"reload": "restart"},
    )
    min_free: Size = Field(
        256 << 20,
        description="free bytes of the disk under which no new work is taken",
        json_schema_extra={"reload": "restart"},
    )


@hookimpl
def agentd_stores() -> Iterable[StoreSpec]:
    return [
        StoreSpec(
            kind="file", options=FileOptions, open=open_file, view=view_file, pressure=read_pressure, describe=describe
        )
    ]


def describe(options: FileOptions) -> dict[str, Any]:
    """Where the state is, and whether that was a default."""
    found = place.locate(options.path, os.environ)
    return {"path": str(found.root), "defaulted": found.defaulted}


def read_pressure(options: FileOptions) -> Pressure | None:
    """Free bytes of the disk that holds the state."""
    try:
        disk = os.statvfs(place.locate(options.path, os.environ).root)
    except OSError:
        return None
    return Pressure(disk.f_bavail * disk.f_frsize, options.min_free)


@asynccontextmanager
async def open_file(options: FileOptions, host: Host) -> AsyncIterator[FileStore]:
    """The store for its one writer. Raises StoreBusy, StoreCorrupt or StoreError, each naming the directory."""
    from agentd_store_file.store import FileStore

    found = place.locate(options.path, host.environ)
    for warning in place.prepare(found):
        host.log("store.warning", level="warn", path=str(found.root), msg=warning)
    lock = place.lock(found.root)
    try:
        store = await FileStore.open(found.root)
        try:
            yield store
        finally:
            await store.close()
    finally:
        os.close(lock)


@asynccontextmanager
async def view_file(options: FileOptions, host: Host) -> AsyncIterator[FileStore]:
    """A snapshot for reading, taken beside a live writer; nothing in the directory is opened for writing."""
    from agentd_store_file.snapshot import snapshot
    from agentd_store_file.store import FileStore

    root = place.locate(options.path, host.environ).root
    if not (root / place.DATA).exists():
        raise StoreError(f"there is no store in {root}: give its directory as store.file.path", path=str(root))
    with snapshot(root) as copy:
        store = await FileStore.open(copy, readonly=True)
        try:
            yield store
        finally:
            await store.close()
