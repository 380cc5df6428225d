"""Turns in children: killed in the middle, drained by the dozen; and what children hold of the store."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentd.testing.mcp_server import McpServer
from agentd.testing.mock_model import MockModel, start_mock
from tests.daemon.lives import Lives

pytestmark = pytest.mark.timeout(180)


class Tools:
    """An MCP server with `put`, which answers at once, and `slow`, which may be held."""

    def __init__(self) -> None:
        self.hold, self.answer = threading.Event(), threading.Event()
        self.server = McpServer({"put": lambda path: f"kept {path}", "slow": self._slow})

    def _slow(self, path: str) -> str:
        if self.hold.is_set():
            self.answer.wait(20)
        return f"slowly {path}"

    def calls(self, tool: str) -> list[tuple[str, str]]:
        """Path and key of each call."""
        return [(c["arguments"]["path"], c["_meta"]["agent/idempotency_key"])
                for c in self.server.calls if c["name"] == tool]  # fmt: skip


@pytest.fixture
def tools() -> Iterator[Tools]:
    found = Tools()
    with found.server:
        yield found
        found.answer.set()


def document(model: MockModel, tools: Tools | None = None, **more: Any) -> dict[str, Any]:
    servers = [{"name": "t", "endpoint": tools.server.url}] if tools is not None else []
    return {
        "agent": {"name": "proof", "instruction": "work", "max_parallel_turns": 4},
        "intelligence": {"endpoints": [model.url], "model": "m"},
        "mcp": {"servers": servers},
        "limits": {"max_runs": 80},
        "workflows": [
            {"name": "w", "concurrency": {"max_runs": 80}, "steps": {
                "s": {"kind": "manual"}, "a": {"kind": "agent", "depends_on": ["s"]},
                "f": {"kind": "finish", "depends_on": ["a"], "output": "{{steps.a.output}}"},
            }},
            {"name": "slow", "concurrency": {"max_runs": 80}, "steps": {
                "s": {"kind": "manual"}, "a": {"kind": "proof.effect", "depends_on": ["s"], "takes": 0.5},
                "b": {"kind": "proof.effect", "depends_on": ["a"], "first": 60},
                "f": {"kind": "finish", "depends_on": ["b"]},
            }},
        ],
        **more,
    }  # fmt: skip


def wait(condition: Any, timeout: float = 20) -> None:
    until = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, "it never came to that"
        time.sleep(0.01)


def family(pid: int) -> list[int]:
    """The descendants of `pid`."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    found, more = [], [pid]
    while more:
        more = [child for child, parent in parents.items() if parent in more]
        found += more
    return found


def open_files(pid: int) -> list[str]:
    return [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]


CALLS: Mapping[str, Any] = {"rounds": [
    {"calls": [{"name": "t.put", "arguments": {"path": "one"}}]},
    {"calls": [{"name": "t.put", "arguments": {"path": "two"}}, {"name": "t.slow", "arguments": {"path": "three"}}]},
    {"text": "done: {{last}}"},
]}  # fmt: skip


def test_killed_in_the_middle_of_a_turn_it_goes_on_from_the_last_answer(tmp_path: Path, tools: Tools) -> None:
    with start_mock(CALLS) as model:
        lives = Lives(tmp_path, document(model, tools))
        try:
            life = lives.begin()
            tools.hold.set()
            assert lives.submit("w", "r")
            wait(lambda: tools.calls("slow"))
            time.sleep(0.2)  # the answer of the call before it is on its way to the disk
            children = family(life.process.pid)
            held = [open_files(pid) for pid in children]
            assert len(children) >= 2 and not any(str(lives.path) in name for names in held for name in names)
            assert any(str(lives.path) in name for name in open_files(life.process.pid))
            asked = len(model.requests)
            lives.kill()
            wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
            tools.hold.clear()
            tools.answer.set()
            lives.begin().wait_for("run.done", run="r")
            assert lives.ask("status", run="r")["output"].startswith("done: ")
            # Neither an answered tool nor an answered model is asked again; what had no answer has the same key.
            assert [path for path, _ in tools.calls("put")] == ["one", "two"]
            assert len(tools.calls("slow")) == 2 and len(set(tools.calls("slow"))) == 1
            assert len(model.requests) == asked + 1
            assert lives.end().code == 0
        finally:
            lives.close()


def test_killed_while_the_model_thinks_no_tool_is_called_again(tmp_path: Path, tools: Tools) -> None:
    rounds = [CALLS["rounds"][0], {"text": "done", "delay": "1s"}]
    with start_mock({"rounds": rounds}) as model:
        lives = Lives(tmp_path, document(model, tools))
        try:
            lives.begin()
            assert lives.submit("w", "r")
            wait(lambda: len(model.requests) == 2)
            time.sleep(0.2)
            lives.kill()
            lives.begin().wait_for("run.done", run="r")
            assert len(tools.calls("put")) == 1
            roles = [[m["role"] for m in request["messages"]] for request in model.requests]
            assert roles[1] == roles[2]
        finally:
            lives.close()


def test_a_conversation_goes_on_in_the_next_life(tmp_path: Path) -> None:
    with start_mock({"rounds": [{"text": "heard"}]}) as model:
        told = document(model)
        told["workflows"][0]["steps"]["a"].update(conversation="talk", prompt="{{inputs.say}}")
        lives = Lives(tmp_path, told)
        try:
            for say in ("one", "two", "three"):
                life = lives.begin()
                assert lives.submit("w", say, say=say)
                life.wait_for("run.done", run=say)
                lives.kill()
            spoken = [[m["content"] for m in request["messages"][1:]] for request in model.requests]
            assert spoken == [["one"], ["one", "heard", "two"], ["one", "heard", "two", "heard", "three"]]
        finally:
            lives.close()


QUICK: Mapping[str, Any] = {"rounds": [{"text": "done"}]}
SLOW: Mapping[str, Any] = {"rounds": [{"text": "done", "delay": "30s"}]}


def begin(lives: Lives, model: MockModel, *, turns: int, others: int) -> None:
    """Runs under way: four in a child, the other turns waiting for one, and `others` in a step that takes its time."""
    lives.begin()
    for i in range(turns):
        assert lives.submit("w", f"w{i}")
    for i in range(others):
        assert lives.submit("slow", f"s{i}")
    wait(lambda: len(model.requests) == 4)
    wait(lambda: sum(e.step == "b" for e in lives.effects()) >= others / 4)


def finish(lives: Lives, quick: MockModel) -> None:
    lives.configure(document(quick))
    lives.begin()
    assert lives.finish() == {"completed": len(lives.accepted)}
    lives.check_effects()
    lives.check_restores()
    assert lives.end().code == 0


def test_a_drain_of_fifty_runs_is_in_time_and_all_go_on(tmp_path: Path) -> None:
    with start_mock(SLOW) as slow, start_mock(QUICK) as quick:
        lifecycle = {"run_until": "drained", "drain_timeout": "9s"}
        lives = Lives(tmp_path, document(slow, lifecycle=lifecycle))
        try:
            begin(lives, slow, turns=12, others=38)
            ended = lives.end(signal.SIGTERM)
            assert (ended.code, ended.odd) == (0, [])
            assert ended.one("drain.done")["drain_ms"] <= 9_000
            assert not ended.all("drain.abandon")
            assert len(ended.all("turn.spawn")) == len(slow.requests) == 4  # nothing new was begun
            finish(lives, quick)
        finally:
            lives.close()


def test_a_second_signal_ends_it_at_once_and_all_go_on(tmp_path: Path) -> None:
    with start_mock(SLOW) as slow, start_mock(QUICK) as quick:
        lives = Lives(tmp_path, document(slow))
        try:
            begin(lives, slow, turns=6, others=6)
            life = lives.lives[0]
            children = family(life.process.pid)
            life.send(signal.SIGTERM)
            life.wait_for("drain.start")
            began = time.monotonic()
            assert lives.end(signal.SIGTERM).code == 1
            assert time.monotonic() - began < 5
            wait(lambda: not any(Path(f"/proc/{pid}").exists() for pid in children))
            finish(lives, quick)
        finally:
            lives.close()
