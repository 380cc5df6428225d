"""What the documentation shows, runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/*.md"), *ROOT.glob("plugins/*/README.md")]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def snippets(language: str) -> list[object]:
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
