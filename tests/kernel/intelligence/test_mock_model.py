"""The mock model: its script, and the whole path to it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agentd.errors import ConfigError, IntelligenceUnavailable
from agentd.ports.model import Message, ModelRequest, ToolSchema
from agentd.testing.mock_model import MockModel, start_mock
from agentd.testing.mock_script import load

SCRIPT = """
rounds:
  - {contains: "permission denied", text: "I may not read that."}
  - {turn: 1, calls: [{name: fs.get, arguments: {path: "{{last}}"}}]}
  - {turn: 1, text: "Read: {{last}}", usage: null}
  - {turn: 2, text: "again", delay: 1ms, error: {status: 503, times: 1, retry_after: 2s}}
"""
TOOL = ToolSchema(name="fs_get", description="", parameters={"type": "object"})


def test_a_script_is_played(bench: Any, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(SCRIPT)

    async def talk(url: str) -> None:
        async with bench.client(url, endpoint={"mock": True}) as client:

            async def ask() -> Message:
                nonlocal reply
                reply = await client.call(ModelRequest(model="", messages=messages, tools=[TOOL]))
                messages.append(reply.message)
                return reply.message

            reply: Any = None
            messages = [Message(role="user", text="notes.md")]
            (call,) = (await ask()).calls
            assert (call.name, call.arguments) == ("fs_get", {"path": "notes.md"})
            messages.append(Message(role="tool", call_id=call.id, text="a\nb"))
            assert (await ask()).text == "Read: a\nb"
            assert not reply.usage.reported
            messages.append(Message(role="user", text="more"))
            assert (await ask()).text == "again"
            messages.append(Message(role="user", text="permission denied"))
            assert (await ask()).text == "I may not read that."
            messages[-1:] = [Message(role="user", text="beyond the script")]
            with pytest.raises(IntelligenceUnavailable):
                await ask()

    with start_mock(f"mock:{tmp_path / 's.yaml'}") as model:
        asyncio.run(talk(model.url))
        assert len(model.requests) == 6
    assert 2 <= bench.clock.slept[0] <= 2.2
    assert all(fields["mock"] for _, fields in bench.log)


def test_final_answers_at_once_on_a_loop_of_the_caller(bench: Any) -> None:
    async def talk() -> str:
        model = MockModel(load("mock:final"))
        serving = asyncio.create_task(model.serve())
        async with bench.client(model.url) as client:
            said = (await client.call(ModelRequest(model="", messages=[Message(role="user", text="x")]))).message.text
        model.close()
        await serving
        return str(said)

    assert asyncio.run(talk()) == "final"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("rounds: []", "rounds"),
        ("rounds: [{txt: a}]", "rounds.0.txt"),
        ("[", "no YAML"),
        ("rounds: 3", "rounds"),
    ],
)
def test_a_script_that_is_wrong_is_explained(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        load(f"mock:{tmp_path / 's.yaml'}")
    with pytest.raises(ConfigError, match="cannot be read"):
        load("mock:/nowhere.yaml")


def test_closing_twice_and_without_a_request_is_fine() -> None:
    model = start_mock("mock:final")
    model.close()
    model.close()
