"""A daemon is killed in the middle of a call: the call is made again, under the same key."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

from agentd.testing.mcp_server import McpServer
from tests.daemon.command import Running, run


def test_a_call_that_a_kill_cut_off_is_made_again_under_its_key(tmp_path: Path) -> None:
    go_on = threading.Event()

    def work() -> dict[str, str]:
        if len(server.calls) == 1:
            go_on.wait(30)
        return {"done": "yes"}

    with McpServer({"work": work}) as server:
        steps: dict[str, Any] = {
            "go": {"kind": "manual"},
            "keep": {"kind": "memory.set", "key": "seen", "value": 1, "depends_on": ["go"]},
            "call": {"kind": "mcp.tool", "server": "box", "tool": "work", "depends_on": ["keep"]},
            "finish": {"kind": "finish", "depends_on": ["call"], "output": ["{{steps.call.output}}", 1]},
        }
        document = {
            "agent": {"name": "t"}, "lifecycle": {"run_until": "drained"},
            "store": {"kind": "file", "file": {"path": str(tmp_path / "kept")}},
            "workflows": [{"name": "w", "steps": steps}], "mcp": {"servers": [{"name": "box", "endpoint": server.url}]},
        }  # fmt: skip
        (tmp_path / "c.yaml").write_text(json.dumps(document))
        first = Running(tmp_path, "-c", "c.yaml")
        first.wait_for("proc.ready")
        assert run(tmp_path, "run", "w", "--id", "r1", "--state-dir", "kept").out == "r1\n"
        _until(lambda: len(server.calls) == 1)
        first.kill()
        second = Running(tmp_path, "-c", "c.yaml")
        second.wait_for("run.done", run="r1")
        go_on.set()
        ended = run(tmp_path, "run", "w", "--id", "r1", "--wait", "--state-dir", "kept")
        assert json.loads(ended.out) == [{"done": "yes"}, 1]
        assert second.end().code == 0
        keys = {call["_meta"]["agent/idempotency_key"] for call in server.calls}
        attempts = [call["_meta"]["agent/attempt"] for call in server.calls]
    assert len(keys) == 1 and attempts == [1, 2]


def _until(what: Any) -> None:
    end = time.monotonic() + 12
    while not what():
        assert time.monotonic() < end
        time.sleep(0.01)
