"""The proofs of tests/daemon/test_durability_*, for as long as it takes: run with -m soak."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentd.testing.mcp_server import McpServer
from agentd.testing.mock_model import start_mock
from tests.daemon.lives import Lives, Submitter, check_all_done, kill_rounds
from tests.daemon.test_durability_disk import WORK as PLAIN
from tests.daemon.test_durability_disk import Disk, ask_until_refused, disk, log_size
from tests.daemon.test_durability_kill import WORK
from tests.daemon.test_durability_restart import V1, Files, check_calls, files, kill_at, serving, workflow

__all__ = ["disk", "files"]
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Lives]:
    lives = Lives(tmp_path, WORK)
    yield lives
    lives.close()


def test_two_hundred_kills_of_effects(home: Lives) -> None:
    kill_rounds(home, "asked", 200, runs=20, within=0.4)
    home.begin()
    check_all_done(home)
    again = {(e.run, e.step) for e in home.effects()}
    assert len(again) < len(home.effects())
    assert home.named("restore.step.replay")


POINTS = ("announced", "unanswered", "answered", "asleep")


def test_two_hundred_kills_of_calls(home: Lives, files: Files) -> None:
    home.configure(serving(files, workflow("w", V1, concurrency={"max_runs": 32})))
    for n in range(200):
        kill_at(home, files, random.choice(POINTS), f"r{n}")
        home.check_effects()
    files.answer.set()
    home.begin()
    check_all_done(home)
    check_calls(files, home.acknowledged())


def test_a_definition_that_changes_during_a_long_sleep(home: Lives, files: Files) -> None:
    old = {**V1, "p": {"kind": "sleep", "depends_on": ["a"], "duration": "8s"}}
    new = {"s": V1["s"], "c": {**V1["a"], "args": {"path": "c", "text": "new"}},
           "f": {"kind": "finish", "depends_on": ["c"]}}  # fmt: skip
    home.configure(serving(files, workflow("w", old)))
    home.begin()
    assert home.submit("w", "r")
    home.lives[-1].wait_for("step.done", run="r", step="a")
    home.configure(serving(files, workflow("w", new)))
    until = time.monotonic() + 8
    while time.monotonic() < until:
        home.kill()
        home.begin()
        time.sleep(random.uniform(0, 0.5))
    check_all_done(home)
    check_calls(files, ["r"])
    assert [what for what, _ in files.puts("r")].count("a/1") == 1


def test_kills_in_the_middle_of_turns(home: Lives) -> None:
    rounds: list[dict[str, Any]] = [
        {"calls": [{"name": "t.put", "arguments": {"path": str(n)}}], "delay": "20ms"} for n in range(5)
    ]
    with McpServer({"put": lambda path: f"kept {path}"}) as server, start_mock(
        {"rounds": [*rounds, {"text": "done"}]}
    ) as model:  # fmt: skip
        home.configure({
            "agent": {"name": "proof", "instruction": "work"},
            "intelligence": {"endpoints": [model.url], "model": "m"},
            "mcp": {"servers": [{"name": "t", "endpoint": server.url}]},
            "workflows": [workflow("w", {
                "s": {"kind": "manual"}, "a": {"kind": "agent", "depends_on": ["s"]},
                "f": {"kind": "finish", "depends_on": ["a"]},
            }, concurrency={"max_runs": 4})],
        })  # fmt: skip
        for n in range(30):
            home.begin()
            submitter = Submitter(home, "w", f"r{n}", 1)
            time.sleep(random.uniform(0, 3))
            home.kill()
            submitter.join()
        home.begin()
        assert set(home.finish(600)) == {"completed"}
        home.check_effects()
        home.check_restores()
        keys: dict[tuple[str, str], set[str]] = {}
        for call in server.calls:
            meta = call["_meta"]
            keys.setdefault((meta["agent/run_id"], call["arguments"]["path"]), set()).add(meta["agent/idempotency_key"])
        assert all(len(found) == 1 for found in keys.values())
        assert {(run, str(n)) for run in home.acknowledged() for n in range(5)} <= keys.keys()


def test_a_disk_that_is_full_again_and_again(tmp_path: Path, disk: Disk) -> None:
    lives = Lives(tmp_path, PLAIN, path=disk.root / "state")
    try:
        life = lives.begin()
        for n in range(12):
            for i in range(5):
                assert lives.submit("w", f"r{n}-{i}", text="x" * 5_000)
            disk.fill()
            ask_until_refused(lives, f"full{n}-", 1)
            if n % 3 == 2:
                lives.kill()
                disk.free()
                life = lives.begin()
                continue
            disk.free()
            life.wait_for("store.recovered", count=n % 3 + 1)
            lives.finish()
        check_all_done(lives)
    finally:
        lives.close()


def test_the_log_of_the_ledger_is_bounded_however_much_is_written(tmp_path: Path) -> None:
    assert 0 < log_size(Lives(tmp_path, PLAIN), 60) < 64 << 20
