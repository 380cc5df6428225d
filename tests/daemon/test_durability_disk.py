"""A full disk: what was accepted is kept, the rest refused, work goes on when there is room, the log is bounded."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.lives import Lives, Refused, check_all_done

pytestmark = pytest.mark.timeout(180)

WORK: dict[str, Any] = {
    "limits": {"max_runs": 32},
    "workflows": [
        {
            "name": "w",
            "concurrency": {"max_runs": 16},
            "inputs": {"schema": {"type": "object"}},
            "steps": {
                "s": {"kind": "manual"},
                "a": {"kind": "proof.effect", "depends_on": ["s"], "takes": 0.05},
                "b": {"kind": "proof.effect", "depends_on": ["a"], "takes": 0.05, "value": "{{inputs.text}}"},
                "c": {"kind": "proof.effect", "depends_on": ["b"], "takes": 0.05},
                "f": {"kind": "finish", "depends_on": ["c"]},
            },
        }
    ],
}


class Disk:
    """16 MiB that can be filled, to the last byte or nearly."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._filler = root / "filler"

    def fill(self, leave: int = 0) -> None:
        with suppress(OSError), self._filler.open("ab", buffering=0) as file:
            while (size := min(65536, self._free() - leave) or 512) > 0:
                file.write(b"x" * size)

    def _free(self) -> int:
        room = os.statvfs(self.root)
        return room.f_bavail * room.f_frsize

    def free(self) -> None:
        self._filler.unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    root = tmp_path / "disk"
    root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(root)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("needs root, and the right to mount")
    yield Disk(root)
    subprocess.run(["umount", "-l", str(root)], check=True)


def ask_until_refused(lives: Lives, prefix: str, refusals: int) -> list[str]:
    """Ask for runs until that many were refused; the refused ones."""
    refused: list[str] = []
    for i in range(300):
        try:
            assert lives.submit("w", f"{prefix}{i}", text="x" * 20_000)
        except Refused:
            refused.append(f"{prefix}{i}")
            if len(refused) == refusals:
                return refused
    raise AssertionError("a full disk took everything")


def test_a_disk_that_fills_up_loses_nothing_accepted(tmp_path: Path, disk: Disk) -> None:
    lives = Lives(tmp_path, WORK, path=disk.root / "state")
    try:
        life = lives.begin()
        for i in range(20):
            assert lives.submit("w", f"before{i}", text="x" * 20_000)
        disk.fill()
        refused = ask_until_refused(lives, "full", 3)
        assert lives.ask("status")["store"] == "failing"
        assert life.process.poll() is None
        disk.free()
        life.wait_for("store.recovered")
        assert lives.submit("w", "after", text="x" * 20_000)
        check_all_done(lives)
        assert life.wait_for("store.error")
        # The same again, with a kill while it is full.
        for i in range(20):
            assert lives.submit("w", f"again{i}", text="x" * 20_000)
        disk.fill()
        refused += ask_until_refused(lives, "more", 2)
        lives.kill()
        disk.free()
        lives.begin()
        check_all_done(lives)
        for run in refused:
            with pytest.raises(Refused):
                lives.status(run)
        assert lives.ask("status")["finished"] == {"completed": len(lives.accepted)}
        assert lives.end().code == 0
    finally:
        lives.close()


def test_new_work_is_shed_before_the_disk_is_full(tmp_path: Path, disk: Disk) -> None:
    lives = Lives(tmp_path, WORK, path=disk.root / "state", min_free=4 << 20)
    try:
        life = lives.begin()
        assert lives.submit("w", "before", text="")
        disk.fill(leave=2 << 20)
        life.wait_for("pressure.shed")
        with pytest.raises(Refused, match="pressure"):
            lives.submit("w", "shed", text="")
        disk.free()
        life.wait_for("pressure.cleared")
        assert lives.submit("w", "after", text="")
        check_all_done(lives)
    finally:
        lives.close()


def log_size(lives: Lives, runs: int) -> int:
    """The largest size of the ledger's log while so many runs of 5 MB each are done."""
    log, most, over = lives.path / "data.db-wal", 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.is_set():
            with suppress(OSError):
                most = max(most, log.stat().st_size)
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        lives.begin()
        for i in range(runs):
            assert lives.submit("w", f"r{i}", text="x" * 1_000_000)
        check_all_done(lives)
    finally:
        over.set()
        watcher.join()
        lives.close()
    return most


def test_the_log_of_the_ledger_is_bounded(tmp_path: Path) -> None:
    assert 0 < log_size(Lives(tmp_path, WORK), 8) < 16 << 20
