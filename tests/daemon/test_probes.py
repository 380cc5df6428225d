"""The real command: probes, exit codes, broken outputs, and what a probe must not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AGENTD = [sys.executable, "-m", "agentd"]


def agentd(cwd: Path, *args: str, env: dict[str, str] | None = None, **kw: Any) -> subprocess.CompletedProcess[str]:
    kw = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **kw}
    base = {"PATH": os.environ["PATH"], "HOME": str(cwd), **(env or {})}
    return subprocess.run([*AGENTD, *args], cwd=cwd, env=base, text=True, timeout=60, check=False, **kw)


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("flag", ["--help", "--version", "--config-schema", "--capabilities", "--effective-config"])
def test_a_probe_needs_nothing_and_tells_it_on_stdout(tmp_path: Path, flag: str) -> None:
    got = agentd(tmp_path, flag)
    assert (got.returncode, got.stderr) == (0, "")
    assert got.stdout
    if flag not in ("--help", "--version"):
        assert isinstance(json.loads(got.stdout), dict)
    assert list(tmp_path.iterdir()) == []


def test_validate_config(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("limits: {max_runs: 3}\n")
    good = agentd(tmp_path, "--config=a.yaml", "--validate-config")
    assert good.returncode == 0
    assert events(good.stderr) == [{"event": "config.valid", "files": ["a.yaml"], "schema": "1"}]
    bad = agentd(tmp_path, "-c", "a.yaml", "--validate-config", "--max-steps", "0", "--interval", "3")
    assert (bad.returncode, bad.stdout) == (2, "")
    assert {(e["event"], e["path"]) for e in events(bad.stderr)} == {
        ("config.invalid", "--interval"),
        ("config.invalid", "limits.run.steps"),
    }


def test_effective_config_works_on_an_invalid_one_and_hides_credentials(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("nope: 1\nintelligence: {token: hunter2-in-file}\n")
    got = agentd(
        tmp_path, "-c", "a.yaml", "--effective-config", env={"AGENTD_INTELLIGENCE_HEADERS": "{x-token: hunter2-env}"}
    )
    assert got.returncode == 0
    assert "hunter2" not in got.stdout + got.stderr
    assert json.loads(got.stdout)["sources"]["nope"] == "file a.yaml:1:1"


@pytest.mark.parametrize(
    ("args", "part"),
    [
        ((), "nothing to do"),
        (("--instruction", "x"), "no model"),
        (("--nope",), "unknown flag --nope"),
        (("frob",), "no command"),
        (("--instruction",), "needs a value"),
        (("--env", "gone.env"), "gone.env"),
        (("--intelligence", "mock:final", "--instruction", "x", "--intelligence.token", "{{secret:GONE}}"), "GONE"),
        (("-c", "gone.yaml"), "gone.yaml: No such file"),
    ],
)
def test_a_users_mistake_is_exit_2_in_one_line(tmp_path: Path, args: tuple[str, ...], part: str) -> None:
    got = agentd(tmp_path, *args)
    assert (got.returncode, got.stdout) == (2, "")
    assert [e["event"] for e in events(got.stderr)] == ["config.invalid"]
    assert part in got.stderr and "Traceback" not in got.stderr


def test_a_closed_or_full_stdout_is_exit_1_without_a_traceback(tmp_path: Path) -> None:
    for command in (
        "--help | head -c 0; exit ${PIPESTATUS[0]}",
        "--config-schema >/dev/full",
        "--version >&-",
        "--help >&-",
        "plugins >&-",
        "plugins >/dev/full",
    ):
        shell = f"set -o pipefail; {' '.join(AGENTD)} {command}"
        got = subprocess.run(
            ["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert got.returncode == 1, (command, got)
        assert "Traceback" not in got.stderr and "Exception ignored" not in got.stderr


def test_a_closed_stderr_is_no_reason_to_fail(tmp_path: Path) -> None:
    shell = f"{' '.join(AGENTD)} --validate-config 2>&-"
    got = subprocess.run(["bash", "-c", shell], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert (got.returncode, got.stdout) == (0, "")


def test_the_version_imports_next_to_nothing(tmp_path: Path) -> None:
    code = (
        "import sys; before = set(sys.modules); from agentd.cli import main; main(['--version']);"
        "print(len(set(sys.modules) - before))"
    )
    got = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    version, count = got.stdout.splitlines()
    assert version == "agentd 1.1.0" and int(count) < 12


def test_a_probe_imports_no_sdk_and_only_the_families_in_use(tmp_path: Path) -> None:
    steps = {"t": {"kind": "schedule", "every": "1h"}, "h": {"kind": "http", "url": "https://x/", "depends_on": "t"},
             "e": {"kind": "finish", "depends_on": "h"}}  # fmt: skip
    (tmp_path / "agentd.yaml").write_text(json.dumps({"workflows": [{"name": "w", "steps": steps}]}))
    heavy = ["asyncio", "httpx", "httpx2", "mcp", "starlette", "uvicorn", "rich", "jsonschema_rs", "sqlite3"]
    heavy += [
        f"agentd.builtin.{name}" for name in ("openai", "anthropic", "fields_model", "fields_body", "fields_kept")
    ]
    code = (
        "import sys; from agentd.cli import main; main(['--validate-config']);"
        f"print([m for m in {heavy} if m in sys.modules])"
    )
    got = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )
    assert got.stdout.strip() == "[]"
