"""Which tools a turn has."""

from __future__ import annotations

from agentd.ports.model import ToolSchema
from agentd.turn.answer import Answer
from agentd.turn.offers import Offer
from agentd.turn.tools import routes
from agentd.turn.work import Grants


def offer(full: str, safe: str) -> Offer:
    server, _, tool = full.partition(".")
    return Offer(server=server, tool=tool, full=full, schema=ToolSchema(name=safe, description="", parameters={}))


def test_an_internal_tool_keeps_its_name() -> None:
    internal = [ToolSchema(name="memory.get", description="", parameters={})]
    found = routes(Grants(), Answer(None), [offer("memory.get", "memory_get")], internal)
    assert found["memory_get"].by == "supervisor" and found["memory_get"].full == "memory.get"
    assert found["memory_get_mcp1"].by == "mcp" and found["memory_get_mcp1"].schema.name == "memory_get_mcp1"


def test_an_override_to_nothing_known_takes_the_tool_away() -> None:
    found = routes(Grants(overrides={"fs.put": "fs.gone"}), Answer(None), [offer("fs.put", "fs_put")])
    assert "fs_put" not in found


def test_globs_select() -> None:
    offers = [offer("fs.put", "fs_put"), offer("db.put", "db_put")]
    found = routes(Grants(internal=(), mcp=("fs.*",)), Answer(None), offers)
    assert list(found) == ["fs_put"]
