"""The ledger: a table of ``(key, seq, crc, envelope)`` in SQLite; synchronous, for one thread.

The write-ahead log is in exclusive locking mode. So there is no shared-memory file, no other process can hold a read
transaction that keeps the log from being reset, which is how logs grow to gigabytes. Who wants to look inside takes a
snapshot (:mod:`~agentd_store_file.snapshot`).
"""

from __future__ import annotations

import os
import sqlite3
import weakref
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from agentd.errors import Conflict, StoreBusy, StoreCorrupt, StoreError, StoreFull
from agentd_store_file.log import is_damaged
from agentd_store_file.place import DATA, NEW, OPEN, WAL

FORMAT = 1
_APPLICATION = 0x61677464
_CHUNK = 64  # rows of one statement: each statement lets go of the GIL once, which a busy loop is slow to give back
_MAX = "\U0010ffff"
_U32 = 0xFFFFFFFF

PutRow = tuple[str, int, str]
"""``(key, seq, envelope as JSON)``."""
Row = PutRow | str
"""A put, or the key of a delete."""

_SCHEMA = f"""
CREATE TABLE ledger (key TEXT PRIMARY KEY, seq INTEGER NOT NULL, crc INTEGER NOT NULL, envelope TEXT NOT NULL)
    WITHOUT ROWID;
CREATE TABLE life (opened INTEGER NOT NULL);
INSERT INTO life VALUES (0);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {FORMAT};
"""


def _upsert(rows: int) -> str:
    """Compare and set: a row whose sequence does not exceed the stored one changes nothing."""
    return (
        f"INSERT INTO ledger VALUES {','.join(['(?,?,?,?)'] * rows)} ON CONFLICT (key) DO UPDATE "
        "SET seq = excluded.seq, crc = excluded.crc, envelope = excluded.envelope WHERE excluded.seq > seq"
    )


_UPSERTS = {rows: _upsert(rows) for rows in (1, 2, 3, 4, 8, 16, 32, _CHUNK)}
_SIZES = sorted(_UPSERTS, reverse=True)


class Ledger:
    """One open ledger. Errors are :class:`agentd.errors.StoreError` and its kinds."""

    def __init__(self, root: Path, connection: sqlite3.Connection, *, marked: bool) -> None:
        self._root, self._db, self._marked = root, connection, marked
        self._inherited = False
        self.flushes = 0
        _OPENED.add(self)

    @classmethod
    def open(cls, root: Path, *, readonly: bool = False) -> Ledger:
        """Open `root`'s ledger, making it if there is none; damage is found here, and then nothing is changed.

        `readonly` is for a snapshot: it must be there, is always checked and never marked as open.
        """
        try:
            if not readonly and not (root / DATA).exists():
                _refuse_remains(root)
                _create(root)
            if unclean(root) or readonly:
                _check(root)
            connection = _connect(root / DATA)
            try:
                _identify(root, connection)
                if not readonly:
                    # The first write makes the log; from then until a clean close its absence means lost writes.
                    connection.execute("UPDATE life SET opened = opened + 1")
                    _mark(root)
            except BaseException:
                connection.close()
                raise
            return cls(root, connection, marked=not readonly)
        except sqlite3.Error as error:
            raise _translate(error, root) from error
        except OSError as error:
            raise StoreError(f"{root / DATA} cannot be opened: {error.strerror}", path=str(root / DATA)) from error

    def apply(self, units: Sequence[Sequence[Row]]) -> list[StoreError | None]:
        """One transaction, flushed once; for each unit None, or why it is not in it.

        All units go in as one run of statements. When some row meets a conflict the transaction is rolled back and
        done again with a SAVEPOINT for each unit, so that one bad unit fails alone.
        """
        try:
            self._db.execute("BEGIN IMMEDIATE")
            if self._run([row for unit in units for row in unit]):
                results: list[StoreError | None] = [None] * len(units)
            else:
                self._db.execute("ROLLBACK")
                self._db.execute("BEGIN IMMEDIATE")
                results = [self._unit(unit) for unit in units]
            self._db.execute("COMMIT")
            self.flushes += 1
            return results
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            return [_translate(error, self._root)] * len(units)
        except BaseException:
            self._db.execute("ROLLBACK")
            raise

    def _run(self, rows: Sequence[Row]) -> bool:
        """Whether every row took effect."""
        if all(type(row) is tuple for row in rows):
            return self._put_all(rows)  # type: ignore[arg-type]
        for is_put, group in groupby(rows, key=lambda row: type(row) is tuple):
            if not is_put:
                self._db.executemany("DELETE FROM ledger WHERE key = ?", [(key,) for key in group])
            elif not self._put_all(list(group)):  # type: ignore[arg-type]
                return False
        return True

    def _put_all(self, rows: Sequence[PutRow]) -> bool:
        start = 0
        while (left := len(rows) - start) > 0:
            size = left if left in _UPSERTS else next(n for n in _SIZES if n <= left)
            values: list[str | int] = []
            for key, seq, text in rows[start : start + size]:
                values += (key, seq, _crc(key, seq, text), text)
            if self._db.execute(_UPSERTS[size], values).rowcount != size:
                return False
            start += size
        return True

    def _unit(self, rows: Sequence[Row]) -> Conflict | None:
        self._db.execute("SAVEPOINT unit")
        for row in rows:
            conflict = self._row(row)
            if conflict:
                self._db.execute("ROLLBACK TO unit")
                break
        else:
            conflict = None
        self._db.execute("RELEASE unit")
        return conflict

    def _row(self, row: Row) -> Conflict | None:
        if self._run([row]) or isinstance(row, str):
            return None
        key, seq, text = row
        stored, envelope = self._db.execute("SELECT seq, envelope FROM ledger WHERE key = ?", (key,)).fetchone()
        if (stored, envelope) == (seq, text):
            return None  # a retry meets its own write
        return Conflict(key=key, latest=stored)

    def get(self, key: str) -> str | None:
        """The envelope of `key` as JSON."""
        found = self._select("SELECT key, seq, crc, envelope FROM ledger WHERE key = ?", (key,))
        return next(self._sound(found), (key, None))[1]

    def keys(self, prefix: str, after: str | None, limit: int) -> list[str]:
        """Keys that begin with `prefix`, in order."""
        sql = "SELECT key FROM ledger WHERE key >= ? AND key > ? AND key < ? ORDER BY key LIMIT ?"
        return [key for (key,) in self._select(sql, (prefix, after or "", prefix + _MAX, limit))]

    def page(self, prefix: str, after: str | None, limit: int) -> Sequence[tuple[str, str]]:
        """Keys and envelopes as JSON, in order."""
        sql = "SELECT key, seq, crc, envelope FROM ledger WHERE key >= ? AND key > ? AND key < ? ORDER BY key LIMIT ?"
        return list(self._sound(self._select(sql, (prefix, after or "", prefix + _MAX, limit))))

    def _select(self, sql: str, values: tuple[object, ...]) -> Sequence[tuple[Any, ...]]:
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise _translate(error, self._root) from error

    def _sound(self, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, str]]:
        for key, seq, crc, text in rows:
            if crc != _crc(key, seq, text):
                raise _damaged(self._root, f"the record {key} does not match its checksum")
            yield key, text

    def close(self) -> None:
        """Fold the log into the ledger and close. The mark goes first: without it a missing log is normal."""
        if self._inherited:
            return
        if self._marked:
            with suppress(OSError):
                (self._root / OPEN).unlink(missing_ok=True)
                _sync(self._root)
        with suppress(sqlite3.Error):
            self._db.close()


_OPENED: weakref.WeakSet[Ledger] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """In a forked child: SQLite believes that it still holds the locks, so closing there, which is also what freeing
    the connection does, would take the log away under the parent. It is kept alive for ever instead.
    """
    import ctypes

    for ledger in _OPENED:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(ledger._db))
        ledger._inherited = True


os.register_at_fork(after_in_child=_leave_to_parent)


def unclean(root: Path) -> bool:
    """Whether the last writer did not close the ledger."""
    return (root / OPEN).exists() or (root / WAL).exists()


def _crc(key: str, seq: int, text: str) -> int:
    return zlib.crc32(
        text.encode("utf-8", "surrogatepass"), zlib.crc32(key.encode("utf-8", "surrogatepass"), seq & _U32)
    )


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, isolation_level=None, check_same_thread=False, timeout=1)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA temp_store = MEMORY")
        db.execute("PRAGMA wal_autocheckpoint = 1000")
        db.execute("PRAGMA journal_size_limit = 16777216")
        db.execute("PRAGMA cell_size_check = ON")
    except BaseException:
        db.close()
        raise
    return db


def _create(root: Path) -> None:
    """Make the ledger beside its place and move it there whole: an empty or half-made one is always damage."""
    new = root / NEW
    for remains in (new, root / f"{NEW}-wal", root / f"{NEW}-journal"):
        remains.unlink(missing_ok=True)
    os.close(os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    db = _connect(new)
    db.executescript(_SCHEMA)
    db.execute("PRAGMA journal_mode = WAL")
    db.close()
    new.replace(root / DATA)
    _sync(root)


def _identify(root: Path, db: sqlite3.Connection) -> None:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (mode,) = db.execute("PRAGMA journal_mode").fetchone()
    if application != _APPLICATION or mode != "wal":
        raise _damaged(root, "it is not a ledger of agentd")
    if version != FORMAT:
        raise StoreError(f"{root / DATA} has format {version}, this agentd reads {FORMAT}: run the one that wrote it")
    db.execute("SELECT count(*) FROM (SELECT 1 FROM ledger LIMIT 1)").fetchone()


def _refuse_remains(root: Path) -> None:
    if unclean(root):
        raise _damaged(root, "it is missing, and the last process did not close it")


def _check(root: Path) -> None:
    """Look for damage without changing a byte.

    Closing the last connection folds the log into the ledger, unless SQLite sees that the file was moved: so the
    check opens hard links, and takes them away before it closes.
    """
    data, wal = root / DATA, root / WAL
    if (root / OPEN).exists() and not (wal.exists() and wal.stat().st_size >= 32):
        raise _damaged(root, "its write-ahead log is missing though the last process did not close it: writes are lost")
    if wal.exists() and wal.stat().st_size and is_damaged(wal.read_bytes()):
        raise _damaged(root, "its write-ahead log has bad frames before good ones")
    names = [root / ".check.db", root / ".check.db-wal"]
    for name in names:
        name.unlink(missing_ok=True)
    try:
        names[0].hardlink_to(data)
        if wal.exists():
            names[1].hardlink_to(wal)
        _examine(root, names)
    finally:
        for name in names:
            name.unlink(missing_ok=True)


def _examine(root: Path, names: Sequence[Path]) -> None:
    db = _connect(names[0])
    try:
        found = db.execute("PRAGMA integrity_check(1)").fetchone()[0]
        _identify(root, db)
    finally:
        for name in names:
            name.unlink(missing_ok=True)
        db.close()
    if found != "ok":
        raise _damaged(root, found)


def _mark(root: Path) -> None:
    os.close(os.open(root / OPEN, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    _sync(root)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _damaged(root: Path, what: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{root / DATA} is damaged: {what}. It was left as it is: restore a backup of the directory, "
        "or move it away to start empty",
        path=str(root / DATA),
    )


def _translate(error: sqlite3.Error, root: Path) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(f"the disk of {root} is full: free some space; nothing that was acknowledged is lost")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{root / DATA} is open in another program: close it there (agentd store looks inside)")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return _damaged(root, str(error))
    return StoreError(f"the store in {root} failed: {error}", path=str(root))
