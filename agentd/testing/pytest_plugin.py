"""The pytest plugin that comes with agentd: fixtures for agents and for plugins of agentd.

It is found by its entry point and imports nothing of agentd until a fixture is used, so that it costs a foreign test
run nothing. Fixtures: `agentd_mock_model`, `agentd_mcp_server`, `agentd_events`, `agentd_run`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agentd.testing.events import Events
    from agentd.testing.mcp_server import McpServer
    from agentd.testing.mock_model import MockModel


@pytest.fixture
def agentd_mock_model() -> Iterator[Callable[..., MockModel]]:
    """Starts mock models: ``agentd_mock_model("mock:final")`` or with a script as a mapping; `.url`, `.requests`."""
    from agentd.testing.mock_model import start_mock

    with contextlib.ExitStack() as stack:
        yield lambda spec="mock:final": stack.enter_context(start_mock(spec))


@pytest.fixture
def agentd_mcp_server() -> Iterator[Callable[..., McpServer]]:
    """Starts real MCP servers: ``agentd_mcp_server({"add": add})``; `.url`, `.calls`."""
    from agentd.testing.mcp_server import McpServer

    with contextlib.ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(McpServer(*args, **options))


@pytest.fixture
def agentd_events() -> Events:
    """A log that remembers, strict about the vocabulary; hand it to whatever wants an agentd.ports.host.Log."""
    from agentd.testing.events import Events

    return Events()


@pytest.fixture
def agentd_run(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the real command in `tmp_path`; ``agentd_run("--instruction", "…", env={…})`` is the completed process."""

    def run(*args: str, env: Mapping[str, str] | None = None, timeout: float = 60) -> Any:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("AGENTD_", "AGENT_"))}
        environ = {**kept, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), **(env or {})}
        return subprocess.run(
            [sys.executable, "-m", "agentd", *args], cwd=tmp_path, env=environ, capture_output=True, text=True,
            timeout=timeout, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return run
