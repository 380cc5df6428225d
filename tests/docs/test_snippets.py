"""What the documentation shows, runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentd.cli.dispatch import COMMANDS
from agentd.config.flags import scan
from agentd.config.load import load
from agentd.config.paths import Table
from agentd.testing import mock_script
from tests.docs.shell import FENCE, ROOT, Block, blocks

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md")]


def snippets(language: str) -> list[Any]:
    found = []
    for page in sorted(PAGES):
        blocks = [text for kind, text in FENCE.findall(page.read_text()) if kind == language]
        name = str(page.relative_to(ROOT))
        found += [pytest.param(text, id=f"{name}-{number}") for number, text in enumerate(blocks, 1)]
    return found


CONFIGURATIONS = [p for p in snippets("yaml") if "config_version" in p.values[0]]


@pytest.mark.parametrize("text", CONFIGURATIONS)
def test_every_configuration_is_valid(text: str, tmp_path: Path) -> None:
    file = tmp_path / "agentd.yaml"
    file.write_text(text)
    command = [sys.executable, "-m", "agentd", "--config", str(file), "--validate-config"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


SHELL = [block for page in sorted(PAGES) for block in blocks(page)]


def shell(runs: bool) -> list[Any]:
    return [pytest.param(b, id=f"{b.page}-{n}") for n, b in enumerate(SHELL) if b.commands and b.runs is runs]


@pytest.mark.parametrize("block", shell(runs=True))
def test_what_can_run_runs(block: Block, tmp_path: Path) -> None:
    for name, text in block.files.items():
        if name in block.text:
            (tmp_path / name).write_text(text)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTD_", "AGENT_"))}
    path = f"{Path(sys.executable).parent}:{kept.get('PATH', '')}"
    environ = {**kept, "PATH": path, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state")}
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", block.script], cwd=tmp_path, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.fixture(scope="module")
def table() -> Table:
    return load([], {}, ROOT).table


@pytest.mark.parametrize("block", shell(runs=False))
def test_the_flags_of_the_others_are_known(block: Block, table: Table) -> None:
    for args in block.commands:
        if args and not args[0].startswith("-"):
            assert args[0] in COMMANDS, args
        else:
            assert scan(args, table).faults == [], args


def test_most_shell_blocks_run() -> None:
    assert len(shell(runs=True)) > 10


@pytest.mark.parametrize("text", [p for p in snippets("yaml") if p.values[0].lstrip().startswith(("rounds:", "# "))])
def test_mock_scripts_can_be_read(text: str) -> None:
    document = yaml.safe_load(text)
    if "rounds" in document:
        mock_script.load(document)


@pytest.mark.parametrize("text", [p for p in snippets("yaml") if "apiVersion" in p.values[0]])
def test_containers_are_given_flags_that_exist(text: str, table: Table) -> None:
    found = list(_containers(yaml.safe_load(text)))
    assert found
    for container in found:
        assert scan(container["args"], table).faults == []


def _containers(value: Any) -> Any:
    if isinstance(value, dict):
        yield from value.get("containers", ())
        for below in value.values():
            yield from _containers(below)


def test_the_tests_of_the_guide_pass(tmp_path: Path) -> None:
    guide = [p.values[0] for p in snippets("python") if str(p.id).startswith("docs/testing.md")]
    for number, text in enumerate(guide, 1):
        (tmp_path / f"test_guide_{number}.py").write_text(text)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not soak"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("text", snippets("python"))
def test_python_compiles(text: str) -> None:
    compile(text, "snippet", "exec")


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_plugin_of_the_guide_loads_and_works(tmp_path: Path) -> None:
    blocks = dict(FENCE.findall((ROOT / "docs/plugins.md").read_text()))
    (tmp_path / "agentd_moon.py").write_text(blocks["python"])
    info = tmp_path / "agentd_moon-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: agentd-moon\nVersion: 0.1.0\nRequires-Dist: agentd>=1.1,<2\n"
    )
    (info / "entry_points.txt").write_text("[agentd.plugins]\nmoon = agentd_moon\n")
    code = """if True:
        from datetime import UTC, datetime
        from agentd.plugins import load
        rule = load().schedule_rules["moon"].parse("full", UTC)
        print(rule.next(datetime(2026, 11, 30, tzinfo=UTC)).isoformat())
    """
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True)
    told = datetime.fromisoformat(done.stdout.strip())
    assert abs(told - datetime(2026, 12, 24, 1, 28, tzinfo=UTC)) < timedelta(hours=14)
