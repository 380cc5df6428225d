"""The command beside broken distributions: fatal only when the configuration needs them, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = {
    "lunar": "import absent_library",
    "noisy": "print('noise'); raise SystemExit(3)",
    "failing": "from agentd.hookspecs import hookimpl\n@hookimpl\ndef agentd_stores(): 1 / 0\n",
}
PLAIN = {"agent": {"instruction": "hi"}, "intelligence": {"endpoints": ["mock:final"], "model": "m"}}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    for name, code in CODE.items():
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-0.1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: 0.1\n")
        (info / "entry_points.txt").write_text(f"[agentd.plugins]\n{name} = {name}\n")
    return tmp_path


def agentd(site: Path, *arguments: str, config: object = PLAIN) -> subprocess.CompletedProcess[str]:
    (site / "agentd.json").write_text(json.dumps(config))
    environ = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, "-m", "agentd", "--config", str(site / "agentd.json"), *arguments]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, cwd=site)
    assert "Traceback" not in done.stderr
    return done


def test_a_configuration_that_needs_none_of_them_is_valid(site: Path) -> None:
    done = agentd(site, "--validate-config")
    assert done.returncode == 0
    assert [json.loads(line)["event"] for line in done.stderr.splitlines()] == ["config.warning", "config.valid"]


def test_one_that_needs_a_broken_one_is_told_distribution_entry_point_and_reason(site: Path) -> None:
    done = agentd(site, "--validate-config", config={**PLAIN, "store": {"kind": "moon"}})
    assert done.returncode == 2
    told = " ".join(json.loads(line)["msg"] for line in done.stderr.splitlines())
    assert (
        "plugin lunar (lunar 0.1, entry point lunar = lunar) failed to load: No module named 'absent_library'" in told
    )
    assert "plugin failing (failing 0.1, entry point failing = failing) failed to load: ZeroDivisionError" in told


def test_capabilities_stay_pure_json_and_name_what_loaded(site: Path) -> None:
    done = agentd(site, "--capabilities")
    assert done.returncode == 0
    assert set(json.loads(done.stdout)["build_features"]) == {"cron", "store-file"}


def test_version_and_the_list_of_plugins(site: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(site)}
    for arguments in (["--version"], ["plugins"]):
        command = [sys.executable, "-m", "agentd", *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        assert done.returncode == 0
        assert "Traceback" not in done.stderr
    for line in ("lunar 0.1", "No module named 'absent_library'", "SystemExit: 3", "ZeroDivisionError"):
        assert line in done.stdout
