"""A consistent copy of a ledger beside its live writer, without a lock and without touching anything.

The writer only appends to the log; it changes ``data.db`` in a checkpoint alone, and every page of a checkpoint stays
in the log until the log starts anew with another salt. So a copy of ``data.db`` and then of the log is consistent if
the log's header was the same before and after. A torn last transaction is cut off by the log's own checksums.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentd.errors import StoreError
from agentd_store_file.place import DATA, OPEN, WAL

_TRIES = 50
_PAUSE = 0.02


@contextmanager
def snapshot(root: Path) -> Iterator[Path]:
    """A private directory with the copy, removed at the end. Raises StoreError."""
    with tempfile.TemporaryDirectory(prefix="agentd-store-") as folder:
        copy = Path(folder)
        try:
            for _ in range(_TRIES):
                before = _state(root)
                _copy(root, copy)
                if before == _state(root):
                    break
                time.sleep(_PAUSE)
            else:
                raise StoreError(f"{root} changes too fast to be copied: try again when it is less busy")
        except OSError as error:
            raise StoreError(f"{root} cannot be read: {error.strerror}", path=str(root)) from error
        yield copy


def _state(root: Path) -> tuple[bool, bytes]:
    """Whether the ledger is open, and the header of its log (with the salts that name its present life)."""
    try:
        with (root / WAL).open("rb") as log:
            header = log.read(32)
    except FileNotFoundError:
        header = b""
    return (root / OPEN).exists(), header


def _copy(root: Path, copy: Path) -> None:
    shutil.copyfile(root / DATA, copy / DATA)
    for name in (WAL, OPEN):
        try:
            shutil.copyfile(root / name, copy / name)
        except FileNotFoundError:
            (copy / name).unlink(missing_ok=True)
