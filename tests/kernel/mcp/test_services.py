"""Questions, resources, prompts, completions and credentials, against real servers of both families."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from agentd.mcp.connections import Connections
from agentd.mcp.records import Connected, Failed, ServerSpec
from agentd.testing.mcp_server import McpServer

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("family", ["session", "stateless"])]


class Colour(BaseModel):
    colour: str


def asking(server: Any) -> None:
    """A tool that asks a person, a prompt, and completions for it."""
    from mcp.server.mcpserver.resolve import Elicit, Resolve

    def ask() -> Any:
        return Elicit("Which colour?", Colour)

    ask.__annotations__["return"] = Elicit[Colour]

    def paint(colour: Any) -> str:
        return f"painted {colour.colour}"

    paint.__annotations__ |= {"colour": Annotated[Colour, Resolve(ask)], "return": str}
    server.add_tool(paint, name="paint")

    @server.prompt()
    def greet(name: str) -> str:
        return f"Greet {name}"

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any) -> Any:
        from mcp_types import Completion

        return Completion(values=[f"{argument.value}!"])


async def test_a_person_is_asked_when_somebody_is_there(family, connections):
    asked = []

    async def elicit(server: str, params: dict) -> dict:
        asked.append((server, params["message"], sorted(params["requestedSchema"]["properties"])))
        return {"action": "accept", "content": {"colour": "red"}}

    with McpServer(family=family, setup=asking) as server:
        result = await connections(s=server.url, elicit=elicit).call("s", "paint", {}, meta={"agent/run_id": "r"})
        assert (result.text, result.is_error) == ("painted red", False)
        assert asked == [("s", "Which colour?", ["colour"])]
        assert all(call["_meta"]["agent/run_id"] == "r" for call in server.calls)


async def test_nobody_is_asked_when_nobody_is_there(family, connections):
    with McpServer(family=family, setup=asking) as server:
        found = connections(s=server.url)
        await found.connect()
        try:
            refused = (await found.call("s", "paint", {})).is_error
        except Exception as e:
            refused = "elicitation" in str(e).lower()
        assert refused


async def test_resources_prompts_and_completions(family, connections):
    with McpServer(resources={"res://n": lambda: "hi"}, family=family, setup=asking) as server:
        found = connections(s=server.url)
        offer = (await found.connect())["s"]
        assert (offer.resources, offer.prompts, offer.completions) == (True, True, True)
        assert [r["uri"] for r in await found.list_resources("s")] == ["res://n"]
        assert await found.list_templates("s") == []
        assert (await found.read_resource("s", "res://n"))[0]["text"] == "hi"
        assert [p["name"] for p in await found.list_prompts("s")] == ["greet"]
        assert (await found.get_prompt("s", "greet", {"name": "Ann"}))["messages"][0]["content"]["text"] == "Greet Ann"
        ref = {"type": "ref/prompt", "name": "greet"}
        assert await found.complete("s", ref, {"name": "name", "value": "A"}) == ["A!"]


class Token:
    """A scheme whose first token is stale."""

    def __init__(self, mends: bool) -> None:
        self.mends, self.token, self.challenges = mends, "stale", []

    async def headers(self, request: Any) -> dict[str, str]:
        assert request.url.endswith("/mcp")
        return {"authorization": f"Bearer {self.token}"}

    async def on_unauthorized(self, request: Any, challenge: str) -> bool:
        self.challenges.append(challenge)
        self.token = "fresh" if self.mends else self.token
        return self.mends


@pytest.mark.parametrize("mends", [True, False])
async def test_a_credential_may_be_mended_once(family, mends, log):
    token = Token(mends)
    with McpServer(family=family, bearer="fresh") as server:
        found = Connections([ServerSpec(name="s", endpoint=server.url, auth=token, headers={"x-a": "1"})], log=log)
        outcome = (await found.connect())["s"]
        await found.close()
        assert isinstance(outcome, Connected if mends else Failed)
        assert token.challenges[0] == "Bearer"
        assert all(r.headers["x-a"] == "1" for r in server.requests)
        if not mends:
            assert "401" in outcome.err and "stale" not in outcome.err
