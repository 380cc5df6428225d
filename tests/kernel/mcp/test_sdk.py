"""The lean import of the SDK, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

REHEARSE = """
import sys, threading
from agentd.mcp.sdk import warm
warm()
assert not [m for m in sys.modules if m.startswith("mcp.server")], "the server half was imported"
assert threading.active_count() == 1
from pydantic import BaseModel
assert "defer_build" not in BaseModel.model_config
"""
WHOLE = """
from mcp import Client
from mcp.client import ClientSession
from mcp.server.mcpserver import MCPServer
import mcp
assert mcp.Client is Client and mcp.ClientSession is ClientSession
"""
NOTHING = """
import sys
import agentd.mcp.connections, agentd.mcp.catalogue, agentd.mcp.results
heavy = {"mcp", "mcp_types", "httpx2", "httpx", "pydantic", "jsonschema_rs"} & set(sys.modules)
assert not heavy, heavy
"""


def run(code: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_rehearsal_needs_no_server_half_and_leaves_no_thread():
    run(REHEARSE)


def test_whoever_wants_the_whole_package_gets_it():
    run(REHEARSE + WHOLE)


def test_nothing_heavy_is_imported_before_the_first_dial():
    run(NOTHING)
