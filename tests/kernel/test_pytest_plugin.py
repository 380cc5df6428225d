"""The fixtures that plugin authors and owners of agents get."""

from __future__ import annotations

import json
from typing import Any


def test_an_agent_is_tested_with_a_scripted_model_and_a_real_server(
    agentd_mock_model: Any, agentd_mcp_server: Any, agentd_run: Any
) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    server = agentd_mcp_server({"add": add})
    rounds = [{"calls": [{"name": "calc.add", "arguments": {"a": 2, "b": 3}}]}, {"text": "it is five"}]
    model = agentd_mock_model({"rounds": rounds})
    done = agentd_run("--instruction", "add", "--intelligence", model.url, "--mcp", f"calc={server.url}")
    assert (done.returncode, done.stdout) == (0, "it is five\n")
    assert server.calls[0]["arguments"] == {"a": 2, "b": 3}
    assert all(json.loads(line)["event"] for line in done.stderr.splitlines())


def test_the_log_that_remembers_is_strict(agentd_events: Any) -> None:
    agentd_events("proc.start", version="1", runtime="1", instance="x", config_files=[])
    assert agentd_events.named("proc.start")
