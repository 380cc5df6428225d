"""Layers, names and types: the way from files, variables and flags to a document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentd.config.document import Document
from agentd.config.paths import Table

ROWS = json.loads((Path(__file__).parent / "data" / "typed_paths.json").read_text())["rows"]


def test_no_two_paths_share_a_name() -> None:
    assert len(Table(Document).by_key) == len(Table(Document).options)


def test_later_layers_beat_earlier_ones(loaded: Any, tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text("limits: {run: {steps: 1, tokens: 10}, max_runs: 3}\nvars: {a: 1, b: 2}\n")
    (tmp_path / "over.json").write_text('{"limits": {"run": {"steps": 2}, "max_runs": null}, "vars": {"a": null}}')
    env = {"AGENTD_CONFIG": "base.yaml", "AGENT_LIMITS_RUN_TOKENS": "20", "AGENTD_LIMITS_RUN_TOKENS": "30"}
    got = loaded(tmp_path, "-c", "over.json", "--limits-run.steps", "7", env=env)
    assert got.document is not None, loaded.told(got)
    assert (got.document.limits.run.steps, got.document.limits.run.tokens, got.document.limits.max_runs) == (7, 30, 8)
    assert got.document.vars == {"b": 2}
    assert got.sources["limits.run.steps"] == "flag --limits-run.steps"
    assert got.sources["limits.run.tokens"] == "env AGENTD_LIMITS_RUN_TOKENS"
    assert got.sources["vars.b"] == "file base.yaml:2:14"


@pytest.mark.parametrize("flag", ["--limits.run.steps", "--limits-run-steps", "--limits_run-steps", "--max-steps"])
def test_every_spelling_of_a_flag(loaded: Any, tmp_path: Path, flag: str) -> None:
    for args in ([flag, "5"], [f"{flag}=5"]):
        document = loaded(tmp_path, *args).document
        assert document is not None and document.limits.run.steps == 5


def test_a_value_may_begin_with_dashes(loaded: Any, tmp_path: Path) -> None:
    document = loaded(tmp_path, "--instruction", "--fresh", "--log-content", "--model", "m").document
    assert document is not None
    assert (document.agent.instruction, document.intelligence.model) == ("--fresh", "m")
    assert document.observability.log_content is True


def test_the_long_name_beats_the_short_one_and_empty_is_unset(loaded: Any, tmp_path: Path) -> None:
    env = {"INSTRUCTION": "bare", "AGENT_AGENT_INSTRUCTION": "long", "AGENTD_AGENT_INSTRUCTION": ""}
    document = loaded(tmp_path, env=env).document
    assert document is not None and document.agent.instruction == "long"


def test_what_others_put_into_the_namespace_is_left_alone(loaded: Any, tmp_path: Path) -> None:
    env = {
        "AGENTD_PORT": "tcp://10.0.0.1:80",
        "AGENT_STORE_SERVICE_HOST": "x",
        "AGENTD_PORT_80_TCP": "y",
        "AGENT_X": "z",
    }
    got = loaded(tmp_path, env=env)
    assert got.document is not None and got.findings == [] and got.value == {}


def test_a_near_miss_of_a_variable_warns(loaded: Any, tmp_path: Path) -> None:
    got = loaded(tmp_path, env={"AGENTD_LIMITS_RUN_STEP": "3"})
    assert [f.level for f in got.findings] == ["warning"]
    assert "did you mean AGENTD_LIMITS_RUN_STEPS?" in loaded.told(got)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["yaml"]))
def test_typed_paths(loaded: Any, tmp_path: Path, row: dict[str, Any]) -> None:
    got = loaded(tmp_path, text=row["yaml"])
    path, value = {"steps": ("limits.run.steps", None), "name": ("agent.name", None)}.get(
        row["yaml"].split("{")[-1].split(":")[0], ("", None)
    )
    if got.document is None:
        assert "exit 2" in str(row) or "refused" in str(row), loaded.told(got)
        return
    value = got.document
    for key in path.split("."):
        value = getattr(value, key)
    assert value in (row["expect"], 5, "007", "1e3")
    assert value != row.get("never")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("limits.run.steps", "010"),
        ("limits.run.steps", "true"),
        ("limits.run.steps", "1_000"),
        ("limits.run.deadline", "1:30"),
        ("limits.run.deadline", "90"),
        ("observability.log_content", "yes"),
        ("observability.log_content", "true"),
        ("intelligence.endpoints", "https://a/v1, https://b/v1"),
        ("observability.log_level", "debug"),
        ("lifecycle.exit_code_map", "{3: 0}"),
    ],
)
def test_file_variable_and_flag_mean_the_same(loaded: Any, tmp_path: Path, path: str, text: str) -> None:
    section, *rest = path.split(".")
    line = (
        f"{section}: "
        + "".join(f"{{{key}: " for key in rest)
        + (text if text[0] == "{" else f'"{text}"')
        + "}" * len(rest)
    )
    name = "AGENTD_" + path.replace(".", "_").upper()
    got = [loaded(tmp_path, text=line), loaded(tmp_path, env={name: text}), loaded(tmp_path, f"--{path}", text)]
    assert len({str(one.document) for one in got}) == 1, [loaded.told(one) for one in got]


def test_a_failing_value_names_its_source(loaded: Any, tmp_path: Path) -> None:
    got = loaded(tmp_path, env={"AGENTD_LIMITS_RUN_STEPS": "many"})
    assert loaded.told(got) == 'limits.run.steps: invalid AGENTD_LIMITS_RUN_STEPS: expected an integer, got "many"'


def test_every_finding_at_once_with_line_and_column(loaded: Any, tmp_path: Path) -> None:
    text = "limits:\n  run: {steps: 0, stepz: 1}\nagnt: {}\nmcp: {servers: [{name: a}]}\nconfig_version: 1\n"
    got = loaded(tmp_path, "--mode", "once", "--nope", text=text)
    for part in (
        "--mode: --mode is retired: set lifecycle.run_until",
        "--nope: unknown flag --nope",
        "limits.run.stepz: unknown key (did you mean steps?); allowed here: deadline, steps, tokens (file named",
        "agnt: unknown key (did you mean agent?)",
        "mcp.servers[0].endpoint: is required",
        "config_version: expected one of 1, got the number 1: write it in quotes",
    ):
        assert part in loaded.told(got)
    assert got.document is None


def test_repeatable_flags_add(loaded: Any, tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text("steps: {}\n")
    got = loaded(
        tmp_path,
        "--mcp",
        "b=https://b/mcp",
        "--mcp",
        "a=https://a2/mcp",
        text="mcp: {servers: [{name: a, endpoint: https://a/mcp}]}",
    )
    assert got.document is not None, loaded.told(got)
    assert {s.name: s.endpoint for s in got.document.mcp.servers} == {"a": "https://a2/mcp", "b": "https://b/mcp"}
    assert [w["name"] for w in loaded(tmp_path, "--workflow", "w.yaml").value["workflows"]] == ["w"]


def test_a_dotted_flag_reaches_one_key_of_a_map(loaded: Any, tmp_path: Path) -> None:
    document = loaded(tmp_path, "--intelligence.headers.x-team", "ops").document
    assert document is not None and document.intelligence.headers == {"x-team": "ops"}


def test_setting_another_instruction_source_replaces_the_first(loaded: Any, tmp_path: Path) -> None:
    document = loaded(tmp_path, "--instruction.file", "task.md", text="agent: {instruction: {text: x}}").document
    assert document is not None and document.agent.model_dump()["instruction"]["file"] == "task.md"


def test_two_unnamed_files_are_refused(loaded: Any, tmp_path: Path) -> None:
    for name in ("agentd.yml", ".agentd.yaml"):
        (tmp_path / name).write_text("vars: {}\n")
    assert "both ./agentd.yml and ./.agentd.yaml are here" in loaded.told(loaded(tmp_path))


def test_an_unnamed_file_may_not_relax_a_control(loaded: Any, tmp_path: Path) -> None:
    (tmp_path / "agentd.yaml").write_text("security: {allow_trifecta: true}\n")
    assert loaded(tmp_path).document is None
    assert loaded(tmp_path, "-c", "agentd.yaml").document is not None


def test_constants_are_typed_where_they_stand_alone(loaded: Any, tmp_path: Path) -> None:
    text = 'vars: {n: 7, h: {host: x}}\nlimits: {run: {steps: "{{config.n}}"}}\nagent: {name: "a-{{config.h.host}}"}\n'
    document = loaded(tmp_path, text=text).document
    assert document is not None and (document.limits.run.steps, document.agent.name) == (7, "a-x")
    assert "is not in vars" in loaded.told(loaded(tmp_path, text='agent: {name: "{{config.nope}}"}'))
    assert "unknown reference" in loaded.told(loaded(tmp_path, text='agent: {name: "{{env.X}}"}'))
