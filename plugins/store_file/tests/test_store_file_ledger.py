"""Group commit, damage, full and read-only disks, snapshots."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agentd_store_file import FileOptions, open_file, view_file
from agentd_store_file.store import FileStore

from agentd.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull
from agentd.ports.store import Delete, Put
from agentd.testing.store_contract import PlainHost, envelope

Body = Callable[[FileStore], Awaitable[Any]]


def with_store(root: Path, body: Body) -> Any:
    async def main() -> Any:
        async with open_file(FileOptions(path=str(root)), PlainHost({})) as store:
            return await body(store)

    return asyncio.run(main())


def with_view(root: Path, body: Body) -> Any:
    async def main() -> Any:
        async with view_file(FileOptions(path=str(root)), PlainHost({})) as store:
            return await body(store)

    return asyncio.run(main())


async def fill(store: FileStore, count: int = 200) -> None:
    await asyncio.gather(*(store.put(f"k/{n:04d}", 1, envelope(n=n, text="x" * 500)) for n in range(count)))


async def count(store: FileStore) -> int:
    return len(await store.list("k/", limit=10000))


def killed(root: Path, body: Body) -> None:
    """Run `body` in a process that is killed without closing the store."""
    child = os.fork()
    if child == 0:

        async def main() -> None:
            async with open_file(FileOptions(path=str(root)), PlainHost({})) as store:
                await body(store)
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            asyncio.run(main())
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL


def digests(root: Path) -> dict[str, str]:
    """What must not change: every file but the lock."""
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in root.iterdir() if f.name != ".lock"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "state"


def test_one_flush_for_all_of_a_turn(root: Path) -> None:
    async def body(store: FileStore) -> None:
        before = store.flushes
        await asyncio.gather(*(store.commit([Put(f"a/{n}", 1, envelope())]) for n in range(1000)))
        assert store.flushes == before + 1
        for n in range(50):
            await store.commit([Put(f"a/{n}", 2, envelope(2)), Put(f"b/{n}", 1, envelope())])
        assert store.flushes == before + 51

    with_store(root, body)


def test_reads_see_writes_that_were_just_handed_in(root: Path) -> None:
    async def body(store: FileStore) -> None:
        wait = store.commit([Put("k", 1, envelope(x=1))])
        assert await store.get("k") == envelope(x=1)
        assert wait.done()

    with_store(root, body)


def test_close_commits_what_was_taken(root: Path) -> None:
    async def body(store: FileStore) -> None:
        store.commit([Put("k/1", 1, envelope())])

    with_store(root, body)
    assert with_store(root, count) == 1


def test_a_cancelled_waiter_harms_nobody(root: Path) -> None:
    async def body(store: FileStore) -> None:
        waits = [asyncio.ensure_future(store.put(f"k/{n}", 1, envelope())) for n in range(3)]
        await asyncio.sleep(0)
        waits[1].cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        assert await count(store) == 3

    with_store(root, body)


def test_the_trouble_of_one_callback_is_not_the_others(root: Path) -> None:
    async def body(store: FileStore) -> None:
        troubles: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: troubles.append(context["exception"]))
        store.commit([Put("k/1", 1, envelope())]).add_done_callback(lambda receipt: 1 / 0)  # type: ignore[arg-type]
        told: list[Any] = []
        second = store.commit([Put("k/2", 1, envelope())])
        second.add_done_callback(told.append)
        await second
        second.add_done_callback(told.append)
        await asyncio.sleep(0)
        assert told == [second, second] and [type(t) for t in troubles] == [ZeroDivisionError]

    with_store(root, body)


def test_the_log_stays_bounded(root: Path) -> None:
    async def body(store: FileStore) -> None:
        for n in range(40):
            await store.put("k", n + 1, envelope(n + 1, text="x" * (1 << 20)))
        await asyncio.gather(*(store.put(f"big/{n}", 1, envelope(text="x" * (1 << 20))) for n in range(40)))
        await store.put("k", 1000, envelope())
        assert (root / "data.db-wal").stat().st_size < 64 << 20

    with_store(root, body)


def test_no_foreign_reader_gets_in_to_hold_the_log(root: Path) -> None:
    async def body(store: FileStore) -> None:
        await fill(store, 10)
        code = "import sqlite3,sys; sqlite3.connect(sys.argv[1], timeout=0).execute('select * from ledger')"
        done = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(root / "data.db"), stderr=subprocess.PIPE
        )
        _, err = await done.communicate()
        assert b"database is locked" in err

    with_store(root, body)


def test_an_unclean_end_loses_nothing(root: Path) -> None:
    killed(root, fill)
    assert (root / ".open").exists() and (root / "data.db-wal").exists()
    assert with_store(root, count) == 200
    assert not (root / ".open").exists() and not (root / "data.db-wal").exists()


# Damage is found at the start, told with the path, and left as it is.


def cut_page(root: Path) -> None:
    os.truncate(root / "data.db", (root / "data.db").stat().st_size - 4096)


def zero(root: Path) -> None:
    (root / "data.db").write_bytes(bytes(4096))


def empty(root: Path) -> None:
    (root / "data.db").write_bytes(b"")


def scribble(root: Path) -> None:
    with (root / "data.db").open("r+b") as file:
        for page in range(1, (root / "data.db").stat().st_size // 4096):
            file.seek(page * 4096)
            file.write(b"scribble" * 8)


def foreign(root: Path) -> None:
    (root / "data.db").unlink()
    with sqlite3.connect(root / "data.db") as db:
        db.execute("CREATE TABLE ledger (key)")


def no_log(root: Path) -> None:
    (root / "data.db-wal").unlink()


def empty_log(root: Path) -> None:
    (root / "data.db-wal").write_bytes(b"")


def no_data(root: Path) -> None:
    (root / "data.db").unlink()


def scribble_log(root: Path) -> None:
    with (root / "data.db-wal").open("r+b") as file:
        file.seek(32 + 24 + 100)
        file.write(b"scribble")


def zero_log(root: Path) -> None:
    (root / "data.db-wal").write_bytes(bytes((root / "data.db-wal").stat().st_size))


@pytest.mark.parametrize("harm", [cut_page, zero, empty, scribble, foreign])
def test_damage_after_a_clean_end(root: Path, harm: Callable[[Path], None]) -> None:
    with_store(root, fill)
    harm(root)
    before = digests(root)
    with pytest.raises(StoreCorrupt, match=str(root / "data.db")):
        with_store(root, count)
    assert digests(root) == before


@pytest.mark.parametrize("harm", [cut_page, zero, empty, scribble, no_log, empty_log, scribble_log, zero_log, no_data])
def test_damage_after_a_kill(root: Path, harm: Callable[[Path], None]) -> None:
    async def more(store: FileStore) -> None:
        for n in range(3):
            await store.put(f"k/more{n}", 1, envelope())

    with_store(root, fill)

    killed(root, more)
    harm(root)
    before = digests(root)
    with pytest.raises(StoreCorrupt, match=str(root / "data.db")):
        with_store(root, count)
    assert digests(root) == before


def test_a_torn_last_transaction_is_dropped(root: Path) -> None:
    async def more(store: FileStore) -> None:
        for n in range(3):
            await store.put(f"k/more{n}", 1, envelope())

    with_store(root, fill)
    killed(root, more)
    log = root / "data.db-wal"
    os.truncate(log, log.stat().st_size - 100)
    assert with_store(root, count) == 202


def test_another_program_has_it_open(root: Path) -> None:
    with_store(root, fill)
    db = sqlite3.connect(root / "data.db", isolation_level=None)
    db.execute("BEGIN")
    db.execute("SELECT count(*) FROM ledger").fetchone()
    with pytest.raises(StoreBusy, match="open in another program"):
        with_store(root, count)
    db.close()
    assert with_store(root, count) == 200


def test_a_flipped_bit_in_a_record_is_found_when_it_is_read(root: Path) -> None:
    with_store(root, lambda store: store.put("k/1", 1, envelope(text="a secret word")))
    data = (root / "data.db").read_bytes()
    (root / "data.db").write_bytes(data.replace(b"a secret word", b"a sacret word"))
    with pytest.raises(StoreCorrupt, match="checksum"):
        with_store(root, lambda store: store.get("k/1"))


def test_another_format_is_refused(root: Path) -> None:
    with_store(root, fill)
    with sqlite3.connect(root / "data.db") as db:
        db.execute("PRAGMA user_version = 9")
    db.close()
    with pytest.raises(StoreError, match="format 9"):
        with_store(root, count)


def test_a_half_made_ledger_of_a_first_start_is_made_anew(root: Path) -> None:
    root.mkdir()
    (root / "data.db-new").write_bytes(b"half")
    assert with_store(root, count) == 0


# Snapshots.


def test_a_reader_beside_the_writer(root: Path) -> None:
    async def body(store: FileStore) -> None:
        await fill(store, 50)
        files = digests(root).keys()
        writing = asyncio.ensure_future(fill_more(store))
        for _ in range(5):
            async with view_file(FileOptions(path=str(root)), PlainHost({})) as view:
                assert await count(view) >= 50
                with pytest.raises(StoreError, match="reading only"):
                    await view.put("k", 1, envelope())
        await writing
        assert digests(root).keys() == files

    async def fill_more(store: FileStore) -> None:
        for n in range(300):
            await store.commit([Put(f"k/a{n}", 1, envelope(text="y" * 300)), Delete(f"k/a{n - 5}")])

    with_store(root, body)


def test_a_file_copy_of_a_live_store_opens(root: Path, tmp_path: Path) -> None:
    async def body(store: FileStore) -> None:
        await fill(store, 50)
        shutil.copytree(root, tmp_path / "copy")

    with_store(root, body)
    assert with_store(tmp_path / "copy", count) == 50


def test_a_view_of_a_killed_store_changes_nothing(root: Path) -> None:
    killed(root, fill)
    before = digests(root)
    assert with_view(root, count) == 200
    assert digests(root) == before


def test_a_view_refuses_damage_and_absence(root: Path) -> None:
    with pytest.raises(StoreError, match="no store in"):
        with_view(root, count)
    with_store(root, fill)
    cut_page(root)
    with pytest.raises(StoreCorrupt):
        with_view(root, count)


# Disks.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """4 MiB that can be filled and remounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("mounting needs root")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_full_disk(small_disk: Path) -> None:
    root = small_disk / "state"

    async def body(store: FileStore) -> int:
        kept = 0
        ballast = small_disk / "ballast"
        ballast.write_bytes(bytes(3 << 20))
        with pytest.raises(StoreFull, match="full"):
            for n in range(200):
                await store.put(f"k/{n}", 1, envelope(text="x" * 20000))
                kept += 1
        with pytest.raises(StoreFull):
            await store.put("k/again", 1, envelope(text="x" * 20000))
        assert await count(store) == kept
        ballast.unlink()
        await store.put("k/after", 1, envelope(text="x" * 20000))
        return kept + 1

    async def and_die(store: FileStore) -> None:
        kept = await body(store)
        (small_disk / "kept").write_text(str(kept))

    killed(root, and_die)
    assert with_store(root, count) == int((small_disk / "kept").read_text())


def test_a_read_only_disk(small_disk: Path) -> None:
    root = small_disk / "state"
    with_store(root, fill)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StoreError, match="read-only file system"):
        with_store(root, count)
    assert with_view(root, count) == 200
    with pytest.raises(StoreError, match="read-only file system"):
        with_store(small_disk / "other", count)
