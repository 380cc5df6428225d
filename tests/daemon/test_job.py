"""The one-shot job as a scheduler sees it: the result on stdout, events on stderr, and every exit code for real."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentd.testing.mcp_server import McpServer
from agentd.testing.mock_model import MockModel, start_mock
from agentd.testing.replay import Replay
from tests.daemon.command import AGENTD, Ended, Running, environment, run

DEAD = "http://127.0.0.1:9/mcp"


def script(tmp_path: Path, text: str) -> str:
    (tmp_path / "script.yaml").write_text(text)
    return "mock:script.yaml"


def calm(ended: Ended) -> None:
    """Nothing a person or a parser would stumble over."""
    assert ended.odd == []
    assert not any("Traceback" in str(e) for e in ended.events)


@pytest.fixture
def tools() -> Iterator[McpServer]:
    with McpServer({"add": lambda a, b: a + b, "boom": lambda: 1 / 0}) as server:
        yield server


def test_success_prints_the_answer_and_exits_0(tmp_path: Path, tools: McpServer) -> None:
    model = script(tmp_path, "rounds:\n  - calls: [{name: t.add, arguments: {a: 1, b: 2}}]\n  - text: 'sum {{last}}'\n")
    ended = run(
        tmp_path, "--instruction", "add", "--intelligence", model, "--mcp", f"t={tools.url}", "--run-id", "unit-1"
    )
    calm(ended)
    assert (ended.code, ended.out.startswith("sum "), "3" in ended.out) == (0, True, True)
    start, exit_ = ended.one("proc.start"), ended.one("proc.exit")
    assert (start["version"], start["runtime"], start["config_files"]) == ("1.1.0", "1", [])
    assert list(start)[:8] == ["ts", "level", "event", "run_id", "agent_id", "agent_path", "comp", "pid"]
    assert (exit_["code"], exit_["turns"], exit_["tool_calls"]) == (0, 1, 1)
    meta = tools.calls[0]["_meta"]
    assert meta["agent/run_id"] == "unit-1"
    assert len(meta["agent/idempotency_key"]) >= 32
    assert {"agent/instance", "agent/attempt", "traceparent"} <= meta.keys()


def test_the_same_run_id_makes_the_same_idempotency_key(tmp_path: Path, tools: McpServer) -> None:
    model = script(tmp_path, "rounds:\n  - calls: [{name: t.add, arguments: {a: 1, b: 2}}]\n  - text: done\n")
    args = ["--instruction", "add", "--intelligence", model, "--mcp", f"t={tools.url}", "--run-id"]
    for id in ("one", "one", "two"):
        assert run(tmp_path, *args, id).code == 0
    first, again, other = (c["_meta"]["agent/idempotency_key"] for c in tools.calls)
    assert first == again != other


def test_json_answers_are_pretty_printed(tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text(
        "agent: {instruction: say, output_schema: {type: object, required: [n], properties: {n: {type: integer}}}}\n"
    )
    model = script(tmp_path, "rounds:\n  - text: '{\"n\": 3}'\n")
    ended = run(tmp_path, "-c", "a.yml", "--intelligence", model)
    assert (ended.code, ended.out) == (0, '{\n  "n": 3\n}\n')


def test_the_instruction_may_come_from_a_file_or_a_variable_and_a_prompt_joins_it(tmp_path: Path) -> None:
    (tmp_path / "task.md").write_text("Do the thing.\n")
    with start_mock("mock:final") as model:
        assert run(tmp_path, "--instruction.file", "task.md", "--intelligence", model.url).out == "final\n"
        assert run(tmp_path, "--intelligence", model.url, env={"INSTRUCTION": "From a variable."}).out == "final\n"
        assert run(tmp_path, "--instruction", "policy!", "--prompt", "hello?", "--intelligence", model.url).code == 0
        first, second, third = (r["messages"] for r in _bodies(model))
    assert first[-1]["content"] == "Do the thing.\n"
    assert second[-1]["content"] == "From a variable."
    assert ("policy!" in third[0]["content"], third[-1]["content"]) == (True, "hello?")


def _bodies(model: MockModel) -> list[dict[str, Any]]:
    return list(model.requests)


@pytest.mark.parametrize(
    "args",
    [
        ["--mode", "daemon"],
        ["--instruction", "x", "--intelligence", "http://example.com/v1"],
        ["--instruction", "x", "--intelligence", "mock:final", "--max-steps", "many"],
        ["--instruction", "missing.md", "--intelligence", "mock:final"],
        ["--instruction", "oci://registry/x:1", "--intelligence", "mock:final"],
        ["--instruction", "x", "--intelligence", "mock:final", "--intelligence.dialect", "klingon"],
        ["--instruction", "x", "--intelligence", "mock:absent.yaml"],
    ],
)
def test_a_users_mistake_is_exit_2_with_one_clear_line(tmp_path: Path, args: list[str]) -> None:
    ended = run(tmp_path, *args)
    calm(ended)
    assert (ended.code, ended.out) == (2, "")
    told = [e for e in ended.events if e.get("msg") or e.get("err")]
    assert told


def test_partial_is_3_and_may_be_remapped(tmp_path: Path) -> None:
    text = "rounds:\n  - calls: [{name: finish, arguments: {status: partial, result: half}}]\n"
    model = script(tmp_path, text)
    ended = run(tmp_path, "--instruction", "x", "--intelligence", model)
    calm(ended)
    assert (ended.code, ended.out, ended.one("run.done")["status"]) == (3, "half\n", "partial")
    again = run(tmp_path, "--instruction", "x", "--intelligence", model, "--lifecycle.exit_code_map", '{"3": 0}')
    assert (again.code, again.out) == (0, "half\n")


def test_an_unreachable_model_is_4(tmp_path: Path) -> None:
    ended = run(tmp_path, "--instruction", "x", "--intelligence", "http://127.0.0.1:9/v1")
    calm(ended)
    assert (ended.code, ended.out) == (4, "")
    assert "model" in ended.one("run.done")["err"]["message"] or ended.one("run.done")["err"]["type"] == "intelligence"


def test_a_model_that_refuses_us_is_4_and_not_asked_again(tmp_path: Path) -> None:
    with Replay([{"status": 401, "json": {"error": {"message": "no such key"}}}]) as model:
        ended = run(
            tmp_path, "--instruction", "x", "--intelligence", model.url, "--intelligence-token", "sek-123-secret"
        )
        assert len(model.requests) == 1
    calm(ended)
    assert ended.code == 4
    assert "sek-123" not in ended.out + str(ended.events)


def test_a_refusal_is_5(tmp_path: Path) -> None:
    model = script(
        tmp_path, "rounds:\n  - calls: [{name: finish, arguments: {status: refused, result: 'I may not'}}]\n"
    )
    ended = run(tmp_path, "--instruction", "x", "--intelligence", model)
    calm(ended)
    assert ended.code == 5


def test_a_model_that_repeats_itself_is_5(tmp_path: Path, tools: McpServer) -> None:
    rounds = "".join("  - calls: [{name: t.add, arguments: {a: 1, b: 2}}]\n" for _ in range(9))
    ended = run(tmp_path, "--instruction", "x", "--intelligence", script(tmp_path, "rounds:\n" + rounds),
                "--mcp", f"t={tools.url}")  # fmt: skip
    calm(ended)
    assert ended.code == 5
    assert len(tools.calls) <= 4


def test_every_server_dead_is_6_and_so_is_a_required_one(tmp_path: Path, tools: McpServer) -> None:
    base = ["--instruction", "x", "--intelligence", "mock:final"]
    ended = run(tmp_path, *base, "--mcp", f"a={DEAD}", "--mcp", f"b={DEAD}")
    calm(ended)
    assert (ended.code, ended.out, len(ended.all("mcp.connect.fail"))) == (6, "", 2)
    (tmp_path / "c.yml").write_text(
        f"mcp: {{servers: [{{name: a, endpoint: '{DEAD}', required: true}}, {{name: b, endpoint: '{tools.url}'}}]}}\n"
    )
    ended = run(tmp_path, *base, "-c", "c.yml")
    calm(ended)
    assert (ended.code, ended.out) == (6, "")
    assert "a" in ended.one("run.done")["err"]["message"]


def test_steps_and_tokens_are_7(tmp_path: Path, tools: McpServer) -> None:
    rounds = "".join(f"  - calls: [{{name: t.add, arguments: {{a: {i}, b: 2}}}}]\n" for i in range(9))
    model = script(tmp_path, "rounds:\n" + rounds + "  - text: never\n")
    base = ["--instruction", "x", "--intelligence", model, "--mcp", f"t={tools.url}"]
    for limit in (["--max-steps", "3"], ["--max-tokens", "40"]):
        ended = run(tmp_path, *base, *limit)
        calm(ended)
        assert (ended.code, ended.out) == (7, ""), limit


def test_the_budget_of_a_step_is_7_too(tmp_path: Path, tools: McpServer) -> None:
    rounds = "".join(f"  - calls: [{{name: t.add, arguments: {{a: {i}, b: 2}}}}]\n" for i in range(9))
    model = script(tmp_path, "rounds:\n" + rounds)
    agent = "{kind: agent, depends_on: s, instruction: x, budget: 40}"
    steps = f"{{s: {{kind: once}}, a: {agent}, f: {{kind: finish, depends_on: a}}}}"
    (tmp_path / "w.yml").write_text(f"workflows: [{{name: w, steps: {steps}}}]\n")
    ended = run(tmp_path, "-c", "w.yml", "--intelligence", model, "--mcp", f"t={tools.url}")
    calm(ended)
    assert (ended.code, 0 < len(tools.calls) < 5) == (7, True)


def test_the_deadline_is_124(tmp_path: Path) -> None:
    model = script(tmp_path, "rounds:\n  - {text: late, delay: 60s}\n")
    ended = run(tmp_path, "--instruction", "x", "--intelligence", model, "--deadline", "2s", "--drain-timeout", "5s")
    calm(ended)
    assert (ended.code, ended.out) == (124, "")


def test_a_child_that_is_killed_is_a_failed_attempt_not_a_hang(tmp_path: Path) -> None:
    model = script(tmp_path, "rounds:\n  - {text: late, delay: 60s}\n")
    job = Running(tmp_path, "--instruction", "x", "--intelligence", model)
    child = job.wait_for("intel.call")["pid"]
    os.kill(child, signal.SIGKILL)
    ended = job.end(None)
    calm(ended)
    assert ended.code == 1
    assert "killed by signal 9" in ended.one("run.done")["err"]["message"]


@pytest.mark.parametrize("moment", ["proc.start", "run.start", "turn.spawn", "intel.call"])
def test_sigterm_at_any_moment_is_a_clean_end(tmp_path: Path, moment: str) -> None:
    model = script(tmp_path, "rounds:\n  - {text: late, delay: 60s}\n")
    job = Running(tmp_path, "--instruction", "x", "--intelligence", model, "--drain-timeout", "6s")
    job.wait_for(moment)
    ended = job.end()
    calm(ended)
    assert (ended.code, ended.out) == (0, "")
    assert not [e["pid"] for e in ended.events if Path(f"/proc/{e['pid']}").exists()]


def test_a_second_signal_ends_it_at_once_with_1(tmp_path: Path) -> None:
    model = script(tmp_path, "rounds:\n  - {text: late, delay: 60s}\n")
    job = Running(tmp_path, "--instruction", "x", "--intelligence", model, "--drain-timeout", "25s")
    job.wait_for("intel.call")
    job.send(signal.SIGSTOP)  # both signals are there when it goes on
    job.send(signal.SIGTERM)
    job.send(signal.SIGINT)
    job.send(signal.SIGCONT)
    assert job.end(None).code == 1


def test_three_sick_servers_of_five_cost_only_their_own_tools(tmp_path: Path, tools: McpServer) -> None:
    silent = socket.create_server(("127.0.0.1", 0))
    html = Replay([{"text": "<html>hello</html>", "headers": {"Content-Type": "text/html"}}])
    with McpServer({"mul": lambda a, b: a * b}) as other, html, silent:
        model = script(tmp_path, "rounds:\n  - calls: [{name: t.add, arguments: {a: 1, b: 2}},"
                                 " {name: o.mul, arguments: {a: 3, b: 4}}]\n  - text: 'done {{last}}'\n")  # fmt: skip
        ended = run(
            tmp_path, "--instruction", "x", "--intelligence", model, "--mcp", f"dead={DEAD}", "--mcp", f"t={tools.url}",
            "--mcp", f"silent=http://127.0.0.1:{silent.getsockname()[1]}/mcp", "--mcp", f"o={other.url}",
            "--mcp", f"insane=http://127.0.0.1:{html.port}/mcp",
        )  # fmt: skip
        assert (len(tools.calls), len(other.calls)) == (1, 1)
    calm(ended)
    assert ended.code == 0 and "12" in ended.out
    assert {e["server"] for e in ended.all("mcp.connect.fail")} == {"dead", "silent", "insane"}


def test_a_result_nobody_takes_is_a_failure(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*AGENTD, "--instruction", "x", "--intelligence", "mock:final"], cwd=tmp_path, env=environment(tmp_path),
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=50,
        )  # fmt: skip
    assert done.returncode == 1
    assert "Traceback" not in done.stderr and "stdout" in done.stderr


def test_nothing_is_written_and_no_child_is_left(tmp_path: Path) -> None:
    ended = run(tmp_path, "--instruction", "x", "--intelligence", "mock:final")
    assert ended.code == 0
    assert list(tmp_path.iterdir()) == []
