"""One life after another: what a restore tells, what never happens twice, and instants that stay where they are."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentd.testing.mcp_server import McpServer
from tests.daemon.lives import Lives

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Callable[[Mapping[str, Any]], Lives]]:
    made: list[Lives] = []

    def make(document: Mapping[str, Any]) -> Lives:
        made.append(Lives(tmp_path, document))
        return made[-1]

    yield make
    for lives in made:
        lives.close()


def workflow(name: str, steps: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "steps": dict(steps), **more}


def test_once_is_once_and_instants_stay_where_they_are(begin: Callable[..., Lives]) -> None:
    manual, nap = {"kind": "manual"}, {"kind": "sleep", "depends_on": ["s"], "duration": "4s"}
    long = {**nap, "duration": "60s"}
    lives = begin({"workflows": [
        workflow("boot", {"s": {"kind": "once"}, "a": {"kind": "proof.effect", "depends_on": ["s"]},
                          "f": {"kind": "finish", "depends_on": ["a"]}}),
        workflow("naps", {"s": manual, "nap": nap, "a": {"kind": "proof.effect", "depends_on": ["nap"]},
                          "f": {"kind": "finish", "depends_on": ["a"]}}),
        workflow("late", {"s": manual, "nap": long, "f": {"kind": "finish", "depends_on": ["nap"]}},
                 limits={"deadline": "3s"}),
    ]})  # fmt: skip
    lives.begin().wait_for("run.done", workflow="boot")
    assert lives.submit("naps", "n") and lives.submit("late", "l")
    lives.lives[0].wait_for("step.start", run="n", step="nap")
    lives.lives[0].wait_for("step.start", run="l", step="nap")
    first = {run: lives.ask("status", run=run) for run in "nl"}
    assert first["l"]["deadline"] < time.time() + 3
    lives.kill()
    life = lives.begin()
    waits = lives.ask("status", run="n").get("waits")
    assert not waits or waits == first["n"]["waits"]  # the nap may be over by now
    assert life.wait_for("run.done", run="n")["status"] == "completed"
    assert life.wait_for("run.done", run="l")["err"]["type"] == "deadline"
    again = {run: lives.ask("status", run=run) for run in "nl"}
    assert again["n"]["ended"] >= first["n"]["waits"][0]["until"]
    assert again["l"]["ended"] >= again["l"]["deadline"] == first["l"]["deadline"]
    lives.kill()
    lives.begin()
    assert lives.end().code == 0
    lives.begin()
    assert lives.ask("status")["finished"] == {"completed": 2, "failed": 1}
    assert [e.run for e in lives.effects() if e.step == "a" and e.run != "n"] == [lives.effects()[0].run] * 2
    told = [e for life in lives.lives for e in life.events if e["event"].startswith("restore.")]
    assert [(e["event"], e["generation"]) for e in told] == [
        ("restore.fresh", 1), ("restore.done", 2), ("restore.done", 3), ("restore.done", 4),
    ]  # fmt: skip
    assert [e["runs_resumed"] for e in told[1:]] == [2, 0, 0]
    lives.check_effects()


V1 = {
    "s": {"kind": "manual"},
    "a": {"kind": "mcp.tool", "depends_on": ["s"], "server": "fs", "tool": "put", "args": {"path": "a", "text": "1"}},
    "p": {"kind": "sleep", "depends_on": ["a"], "duration": "500ms"},
    "b": {"kind": "mcp.tool", "depends_on": ["p"], "server": "fs", "tool": "put", "args": {"path": "b", "text": "old"}},
    "f": {"kind": "finish", "depends_on": ["b"]},
}
V2 = {
    "s": {"kind": "manual"},
    "p": {"kind": "sleep", "depends_on": ["s"], "duration": "500ms"},
    "c": {"kind": "mcp.tool", "depends_on": ["p"], "server": "fs", "tool": "put", "args": {"path": "c", "text": "new"}},
    "f": {"kind": "finish", "depends_on": ["c"]},
}


class Files:
    """An MCP server whose `put` may be held; its log is what its callers did."""

    def __init__(self) -> None:
        self.hold, self.answer = threading.Event(), threading.Event()
        self.server = McpServer({"put": self._put})

    def _put(self, path: str, text: str) -> str:
        if self.hold.is_set():
            self.answer.wait(10)
        return f"{path}/{text}"

    def puts(self, run: str) -> list[tuple[str, str]]:
        """What one run put, and under which key."""
        return [(f"{c['arguments']['path']}/{c['arguments']['text']}", c["_meta"]["agent/idempotency_key"])
                for c in self.server.calls if c["_meta"]["agent/run_id"] == run]  # fmt: skip

    def came(self, run: str) -> None:
        """Return when the first call of that run is there."""
        until = time.monotonic() + 20
        while not self.puts(run):
            assert time.monotonic() < until, f"{run} never called"
            time.sleep(0.002)


@pytest.fixture
def files() -> Iterator[Files]:
    found = Files()
    with found.server:
        yield found
        found.answer.set()


def serving(files: Files, *workflows: Any) -> dict[str, Any]:
    return {"mcp": {"servers": [{"name": "fs", "endpoint": files.server.url}]}, "workflows": list(workflows)}


def test_a_live_run_finishes_on_the_definition_it_began_with(begin: Callable[..., Lives], files: Files) -> None:
    lives = begin(serving(files, workflow("w", V1)))
    lives.begin()
    assert lives.submit("w", "changed") and lives.submit("w", "gone")
    for run in ("changed", "gone"):
        lives.lives[0].wait_for("step.done", run=run, step="a")
    lives.kill()

    lives.configure(serving(files, workflow("w", V2)))
    life = lives.begin()
    assert life.wait_for("store.config_changed")["sections"] == ["workflows"]
    assert lives.submit("w", "new")
    life.wait_for("run.start", run="new")
    lives.kill()

    lives.configure(serving(files, workflow("other", V2)))
    lives.begin()
    assert lives.finish() == {"completed": 3}
    for run in ("changed", "gone"):
        assert dict.fromkeys(what for what, _ in files.puts(run)) == dict.fromkeys(["a/1", "b/old"])
        assert len(set(files.puts(run))) == 2
    assert {what for what, _ in files.puts("new")} == {"c/new"}
    lives.check_effects()


def test_a_definition_that_cannot_be_read_now_is_told_and_its_run_waits(begin: Callable[..., Lives]) -> None:
    steps = {"s": {"kind": "manual"}, "nap": {"kind": "sleep", "depends_on": ["s"], "duration": "500ms"},
             "a": {"kind": "proof.effect", "depends_on": ["nap"]},
             "f": {"kind": "finish", "depends_on": ["a"]}}  # fmt: skip
    plain = {"workflows": [workflow("plain", {"s": {"kind": "manual"}, "f": {"kind": "finish", "depends_on": ["s"]}})]}
    lives = begin({"workflows": [workflow("w", steps)]})
    lives.begin()
    assert lives.submit("w", "r")
    lives.lives[0].wait_for("run.start", run="r")
    lives.ask("pause")
    assert lives.submit("w", "queued")
    lives.kill()
    lives.configure({**plain, "plugins": {"disabled": ["proof"]}})
    life = lives.begin()
    told = life.wait_for("restore.lost", run="r")
    assert "proof.effect" in str(told["err"])
    assert life.wait_for("restore.lost", run="queued")["workflow"] == "w"
    assert life.wait_for("restore.done")["lost"] == 2
    assert lives.submit("plain", "p")
    assert life.wait_for("run.done", run="p")["status"] == "completed"
    lives.kill()
    lives.configure({"workflows": [*plain["workflows"], workflow("w", steps)]})
    lives.begin()
    assert lives.finish() == {"completed": 3}
    assert {e.run for e in lives.effects()} == {"r", "queued"}


def kill_at(lives: Lives, files: Files, point: str, run: str) -> None:
    """One life that ends at that point of the call of step a."""
    life = lives.begin()
    if point == "unanswered":
        files.hold.set()
    assert lives.submit("w", run)
    if point == "announced":
        life.wait_for("step.start", run=run, step="a")
    elif point == "asleep":
        life.wait_for("step.start", run=run, step="p")
    else:
        files.came(run)
    if point == "answered":
        time.sleep(random.uniform(0, 0.03))
    lives.kill()
    files.hold.clear()


def check_calls(files: Files, runs: Iterable[str]) -> None:
    """One key for each call of each run, however often it was made."""
    for run in runs:
        assert sorted(what for what, _ in set(files.puts(run))) == ["a/1", "b/old"]


def test_a_call_that_was_interrupted_has_the_same_key(begin: Callable[..., Lives], files: Files) -> None:
    lives = begin(serving(files, workflow("w", V1)))
    points = ("unanswered", "asleep")
    for point in points:
        kill_at(lives, files, point, point)
    lives.begin()
    assert lives.finish() == {"completed": 2}
    check_calls(files, points)
    assert [what for what, _ in files.puts("asleep")].count("a/1") == 1
    assert [what for what, _ in files.puts("unanswered")].count("a/1") >= 2
    lives.check_effects()
    lives.check_restores()
