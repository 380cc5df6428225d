"""``agentd workflow``: places of findings, the drawings, rehearsals and their exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentd.cli.workflow import main
from agentd.cli.workflow.story import length
from agentd.errors import ConfigError, UsageError

ROOT = Path(__file__).resolve().parents[3]
TRIAGE = str(ROOT / "examples/workflows/triage.yaml")
ANSWERS = str(ROOT / "examples/workflows/triage.mock.yaml")

Write = Callable[[str, str], str]
Run = Callable[..., tuple[int, str]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*args: str) -> tuple[int, str]:
        code = main(list(args), {})
        return code, capsys.readouterr().out

    return run


def chain(**steps: Any) -> str:
    """A workflow `w` of `steps` in a row, between a manual start and the end; the last one's output is the result."""
    before, written = "go", {"go": {"kind": "manual"}}
    for id, step in steps.items():
        written[id], before = {"depends_on": before, **step}, id
    written["end"] = {"kind": "finish", "depends_on": before, "output": "{{steps.%s.output}}" % before}  # noqa: UP031
    return json.dumps({"name": "w", "steps": written})


# --- check ---


def test_a_finding_has_its_place(write: Write, run: Run) -> None:
    file = write("w.yaml", "name: w\nsteps:\n  a: {kind: manual}\n  b:\n    kind: htp\n    depends_on: c\n")
    code, out = run("check", file)
    assert code == 2
    assert f'{file}:5:5: steps.b.kind: unknown kind "htp"' in out
    assert f"{file}:6:5: steps.b.depends_on: " in out


def test_every_file_is_looked_at(write: Write, run: Run) -> None:
    code, out = run("check", write("a.yaml", "steps: [\n"), "/nowhere.yaml", TRIAGE)
    assert code == 2
    assert "a.yaml:2:1: " in out
    assert "/nowhere.yaml: No such file" in out
    assert f"{TRIAGE}: triage: ok\n" in out


def test_a_configuration_is_searched_for_workflows(write: Write, run: Run) -> None:
    bad = "  - name: bad\n    steps:\n      a: {kind: manual}\n"
    file = write("agentd.yaml", f"limits: {{max_runs: 1}}\nworkflows:\n  - {{name: t, file: {TRIAGE}}}\n{bad}")
    code, out = run("check", file)
    assert code == 2
    assert f"{TRIAGE}: t: ok" in out
    assert f"{file}:5:5: steps: no step of kind finish" in out


def test_findings_for_programs(write: Write, run: Run) -> None:
    code, out = run("check", "--json", write("w.json", chain(x={"kind": "nope"})))
    assert code == 2
    (flaw,) = json.loads(out)
    assert flaw["path"] == "steps.x.kind"
    assert flaw["line"] is None


def test_a_kind_of_a_known_plugin_names_what_to_install(write: Write, run: Run, monkeypatch: Any) -> None:
    from agentd.cli.workflow import sources
    from agentd.engine.kinds import Kinds
    from agentd.plugins import PluginSet, load

    everything = load()
    bare = PluginSet(start_nodes=everything.start_nodes, step_nodes=everything.step_nodes)
    monkeypatch.setattr(sources, "installed", lambda: Kinds.of(bare))
    code, out = run(
        "check", write("w.yaml", "name: w\nsteps:\n  t: {kind: schedule, cron: '* * * * *'}\n  e: {kind: finish}\n")
    )
    assert code == 2
    assert "pip install 'agentd[cron]'" in out


# --- show ---


def test_the_picture(run: Run) -> None:
    code, out = run("show", TRIAGE)
    assert code == 0
    assert out in (ROOT / "docs/workflow-tools.md").read_text()


def test_mermaid_quotes_what_would_break_it(write: Write, run: Run) -> None:
    _, out = run("show", "--mermaid", write("w.json", chain(x={"kind": "assert", "condition": 'inputs.a == "<b>"'})))
    assert 'n1("x<br/>assert inputs.a == #quot;#lt;b#gt;#quot;")' in out
    assert "n0 --> n1" in out


def test_a_wrong_workflow_is_not_drawn(write: Write, run: Run) -> None:
    with pytest.raises(ConfigError) as caught:
        run("show", write("w.json", chain(x={"kind": "nope"})))
    assert "w.json: steps.x.kind" in str(caught.value.findings)


# --- test ---


def test_the_example(run: Run) -> None:
    code, out = run("test", TRIAGE, "--script", ANSWERS, "--input", "limit=5")
    assert code == 0
    for line in ("↻ pull  again in 1.5s", "✓ each[1].file", "10m6.5s  ✓ settle", "completed"):
        assert line in out


@pytest.mark.parametrize(
    ("step", "script", "status", "exit"),
    [
        ({"kind": "tool", "name": "a.b"}, {"tools": {"a.b": {"output": 1}}}, "completed", 0),
        ({"kind": "tool", "name": "a.b"}, {"tools": {"a.b": {"error": "no"}}}, "failed", 1),
        ({"kind": "tool", "name": "a.b"}, {"tools": {"a.b": {"error": "no", "code": "budget"}}}, "failed", 7),
        ({"kind": "tool", "name": "a.b", "timeout": 1}, {"tools": {"a.b": {"takes": "2s"}}}, "failed", 1),
        ({"kind": "http", "url": "https://x/"}, {"http": {"https://x/": {"output": {"status": 404}}}}, "failed", 1),
        ({"kind": "http", "url": "https://x", "expect": 404},
         {"http": {"GET https://x": {"output": {"status": 404}}}}, "completed", 0),
        ({"kind": "agent", "instruction": "go"}, {"rounds": [{"text": "hi"}]}, "completed", 0),
        ({"kind": "judge", "input": "x", "criteria": "y"}, {"rounds": [{"text": '{"score": 0.2}'}]}, "completed", 0),
        ({"kind": "extract", "input": "x", "schema": {}}, {"rounds": [{"text": "no json"}]}, "failed", 1),
        ({"kind": "human", "question": "?", "timeout": "1h"}, {}, "failed", 1),
        ({"kind": "human", "question": "?"}, {"steps": {"x": {"output": "yes"}}}, "completed", 0),
        ({"kind": "sleep", "duration": "30m"}, {}, "completed", 0),
        ({"kind": "sleep", "duration": "2h"}, {}, "failed", 124),
        ({"kind": "wait", "on": "signal", "name": "s"}, {"signals": {"s": {"output": 1}}}, "completed", 0),
        ({"kind": "wait", "on": "signal", "name": "s", "timeout": 5}, {}, "failed", 1),
        ({"kind": "memory.get", "key": "k"}, {"memory": {"k": 1}}, "completed", 0),
    ],
)  # fmt: skip
def test_how_it_ends(write: Write, run: Run, step: Any, script: Any, status: str, exit: int) -> None:
    code, out = run("test", "--json", write("w.json", chain(x=step)), "--script", write("s.json", json.dumps(script)))
    assert (json.loads(out)["status"], code) == (status, exit)


def test_a_turn_calls_fake_tools(write: Write, run: Run) -> None:
    script = {"rounds": [{"calls": [{"name": "a.b", "arguments": {"n": 1}}]}, {"text": "it said {{last}}"}],
              "tools": {"a.b": {"output": {"v": 2}}}}  # fmt: skip
    file = write("w.json", chain(x={"kind": "agent", "instruction": "go"}))
    code, out = run("test", file, "--script", write("s.json", json.dumps(script)))
    assert code == 0
    assert 'a.b {"n": 1} → {"v": 2}' in out
    assert '"it said {\\"v\\": 2}"' in out


@pytest.mark.parametrize(
    ("step", "told"),
    [
        ({"kind": "tool", "name": "a.b"}, 'add tools: {"a.b": {output: …}}'),
        ({"kind": "agent", "instruction": "x"}, "add rounds:"),
        ({"kind": "workflow", "name": "other"}, 'add steps: {"x": {output: …}}'),
        ({"kind": "wait", "on": "signal", "name": "s"}, "add signals: {s: {output: …}}"),
    ],
)
def test_a_missing_answer_is_named(write: Write, run: Run, step: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run("test", write("w.json", chain(x=step)))
    assert told in str(caught.value.findings)


def test_things_happen_in_the_order_of_their_time(write: Write, run: Run) -> None:
    branches = {name: {name: {"kind": "tool", "name": name, "retry": {"max": 1, "backoff": wait}}}
                for name, wait in (("a", "10s"), ("b", "2s"))}  # fmt: skip
    script = {"tools": {name: [{"error": "no"}, {"output": name, "takes": 1}] for name in branches}}
    file = write("w.json", chain(x={"kind": "parallel", "branches": branches}))
    _, out = run("test", "--json", file, "--script", write("s.json", json.dumps(script)))
    events = json.loads(out)["events"]
    assert [e["at"] for e in events] == sorted(e["at"] for e in events)
    done = [e["step"] for e in events if e["event"] == "step.done"]
    assert done == ["x{b}.b", "x{a}.a", "x", "end"]


def test_a_script_with_mistakes_is_refused_with_the_place(write: Write, run: Run) -> None:
    file = write("w.json", chain(x={"kind": "noop"}))
    with pytest.raises(ConfigError) as caught:
        run("test", file, "--script", write("s.yaml", "memory: {}\ntools: {a: {outptu: 1}}\n"))
    assert "s.yaml:2: " in str(caught.value.findings)


def test_inputs_that_do_not_fit(run: Run) -> None:
    with pytest.raises(ConfigError) as caught:
        run("test", TRIAGE, "--input", "limit=many")
    assert "inputs.schema" in str(caught.value.findings)


@pytest.mark.parametrize(
    "args",
    [
        ["draw", "x"],
        ["check"],
        ["show", "x", "--json"],
        ["test", TRIAGE, "--start", "never"],
        ["test", TRIAGE, TRIAGE],
        ["test", TRIAGE, "--input", "x"],
        ["test", TRIAGE, "--workflow", "other"],
        ["test", TRIAGE, "--payload", "{"],
    ],
)
def test_wrong_words(args: list[str]) -> None:
    with pytest.raises(UsageError):
        main(args, {})


def test_lengths() -> None:
    assert [length(s) for s in (0, 1.5, 60, 5400, 86400 * 2 + 1)] == ["0s", "1.5s", "1m", "1h30m", "2d1s"]
