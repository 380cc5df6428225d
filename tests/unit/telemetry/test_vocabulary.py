"""The vocabulary is closed, documented, and what the sources really say."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentd.telemetry.vocabulary import CANONICAL, EVENTS, LEVELS, Event, UnknownEvent, markdown, require
from agentd.testing.events import Events

ROOT = Path(__file__).parents[3]
NOT_FIELDS = {"level", "msg", "err", "dur_ms"}
_LOGGERS = {"log", "_log", "telemetry", "_telemetry"}


@pytest.mark.parametrize("event", EVENTS.values(), ids=lambda e: e.name)
def test_an_event_is_well_formed(event: Event) -> None:
    assert re.fullmatch(r"[a-z0-9]+([._][a-z0-9]+)*", event.name)
    assert event.level in LEVELS
    assert not set(event.fields) & set(CANONICAL)
    assert not set(event.fields) & set(event.content)
    assert event.help


def test_an_unknown_event_or_field_raises() -> None:
    with pytest.raises(UnknownEvent):
        require("run.begun")
    with pytest.raises(UnknownEvent):
        require("run.start", ["runn"])


def test_the_documentation_shows_this_table() -> None:
    text = (ROOT / "docs" / "telemetry.md").read_text()
    shown = text.partition("<!-- events -->\n")[2].partition("<!-- /events -->")[0]
    assert shown.strip() == markdown().strip(), "run `python -m agentd.telemetry.vocabulary docs/telemetry.md`"


def _calls(tree: ast.AST) -> Iterator[tuple[int, str, list[str]]]:
    """Calls of something called log with a literal event: line, event, field names."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        event = node.args[0]
        if name in _LOGGERS and isinstance(event, ast.Constant) and isinstance(event.value, str):
            yield node.lineno, event.value, [k.arg for k in node.keywords if k.arg and k.arg not in NOT_FIELDS]


def test_every_literal_event_of_the_sources_is_in_the_vocabulary() -> None:
    wrong = []
    for path in [*(ROOT / "agentd").rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]:
        for line, event, fields in _calls(ast.parse(path.read_text())):
            try:
                require(event, fields)
            except UnknownEvent as e:
                wrong.append(f"{path.relative_to(ROOT)}:{line}: {e}")
    assert not wrong, "\n".join(wrong)


def test_what_a_probe_imports_of_telemetry_stays_small() -> None:
    modules = ["emitter", "writer", "pretty", "trace", "descriptors", "vocabulary"]
    code = "import sys\n" + "\n".join(f"import agentd.telemetry.{m}" for m in modules)
    code += "\nimport agentd.security.redaction; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"asyncio", "httpx", "rich", "pydantic", "ssl"} & set(loaded)


def test_the_recorded_log_is_strict() -> None:
    log = Events()
    log("mcp.connect.fail", server="s", err="refused")
    assert log.named("mcp.connect.fail") == [{"level": "warn", "err": "refused", "server": "s"}]
    with pytest.raises(UnknownEvent):
        log("mcp.connected")
