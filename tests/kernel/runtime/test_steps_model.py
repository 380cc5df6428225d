"""Steps that ask a model: the kinds without tools, internal tools of a turn, credentials of its targets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import BaseModel

from agentd.runtime.instance import Instance
from agentd.testing.http_site import Site
from agentd.testing.instance import Lived, live
from agentd.testing.mcp_server import McpServer

Document = dict[str, Any]


def ask(tmp_path: Path, step: Document, rounds: list[Document], *, during: Any = None, **more: Any) -> Lived:
    """A job of one step, with a model that says `rounds`."""
    script = tmp_path / "mock.yaml"
    script.write_text(yaml.safe_dump({"rounds": rounds}))
    steps = {
        "once": {"kind": "once", "policy": "always" if during is None else "ensure"},
        "s": {"depends_on": ["once"], **step},
        "finish": {"kind": "finish", "depends_on": ["s"], "output": "{{steps.s.output}}"},
    }
    others = more.pop("workflows", [])
    document = {
        "workflows": [{"name": "w", "steps": steps}, *others],
        "intelligence": {"endpoints": [f"mock:{script}"], **more.pop("intelligence", {})},
        **more,
    }
    return live(document, tmp_path, children=True, during=during)


def says(value: Any, **more: Any) -> Document:
    return {"text": value if isinstance(value, str) else json.dumps(value), "contains": "", **more}


class TestKinds:
    def test_classify_gives_one_of_the_classes(self, tmp_path: Path) -> None:
        answer = {"class": "spam", "confidence": 0.9, "reason": "loud"}
        wrong = says({"class": "else", "confidence": 1, "reason": ""}, contains="BUY")
        step = {"kind": "classify", "input": "BUY NOW", "classes": ["spam", {"name": "ham", "description": "good"}]}
        lived = ask(tmp_path, step, [wrong, says(answer)])
        assert lived.output == answer
        assert lived.named("loop.start")[0]["tools"] == 0

    def test_route_extract_and_summarize(self, tmp_path: Path) -> None:
        route = {"route": "a", "confidence": 1, "reason": "r"}
        assert ask(tmp_path, {"kind": "route", "input": "x", "routes": {"a": "for a"}}, [says(route)]).output == route
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        extract = {"kind": "extract", "input": {"text": "n is 3"}, "schema": schema}
        assert ask(tmp_path, extract, [says({"n": 3})]).output == {"n": 3}
        assert ask(tmp_path, {"kind": "summarize", "input": "long", "max_words": 3}, [says("short")]).output == "short"

    def test_the_threshold_decides_a_verdict(self, tmp_path: Path) -> None:
        step = {"kind": "judge", "input": "x", "criteria": ["clear", "short"], "threshold": 0.8}
        lived = ask(tmp_path, step, [says({"score": 0.7, "reason": "long"})])
        assert lived.output == {"score": 0.7, "reason": "long", "passed": False}

    def test_an_answer_is_asked_for_again_until_the_check_passes(self, tmp_path: Path) -> None:
        rounds = [
            says("four", contains="not good enough"),
            says({"ok": True, "reason": "fine"}, contains="<input>\nfour"),
            says({"ok": False, "reason": "use words"}, contains="<input>\n4"),
            says("4"),
        ]
        lived = ask(tmp_path, {"kind": "think", "prompt": "2+2", "check": "it is a word"}, rounds)
        assert lived.output == "four" and len(lived.named("turn.done")) == 4
        assert lived.ended("s")["tokens"] == 4 * 15

    def test_an_answer_that_never_passes_fails_the_step(self, tmp_path: Path) -> None:
        rounds = [says({"ok": False, "reason": "no"}, contains="The answer:"), says("4")]
        lived = ask(tmp_path, {"kind": "think", "prompt": "2+2", "check": "x", "retries": 0}, rounds)
        assert lived.code == 1 and lived.ended("s")["err"]["type"] == "check"


class TestInternalTools:
    def test_a_turn_keeps_something_in_the_memory(self, tmp_path: Path) -> None:
        rounds = [
            {"calls": [{"name": "memory.set", "arguments": {"key": "k", "value": {"n": 1}}}]},
            {"calls": [{"name": "memory.get", "arguments": {"key": "k"}}]},
            {"text": "{{last}}"},
        ]
        lived = ask(tmp_path, {"kind": "agent", "instruction": "go"}, rounds, store={"kind": "file"})
        assert lived.code == 0
        reader = {"kind": "memory.get", "key": "k"}
        assert ask(tmp_path, reader, rounds, store={"kind": "file"}).output["value"] == {"n": 1}

    def test_a_sensitive_value_is_not_given_to_a_model(self, tmp_path: Path) -> None:
        store = {"store": {"kind": "file"}}
        ask(tmp_path, {"kind": "memory.set", "key": "k", "value": "s3cr3t", "sensitive": True}, [says("x")], **store)
        rounds = [{"calls": [{"name": "memory.get", "arguments": {"key": "k"}}]}, {"text": "{{last}}"}]
        lived = ask(tmp_path, {"kind": "agent", "instruction": "go"}, rounds, **store)
        assert "is sensitive" in lived.printed and "s3cr3t" not in lived.printed

    def test_a_turn_starts_a_workflow_and_has_its_output(self, tmp_path: Path) -> None:
        steps = {
            "m": {"kind": "manual"},
            "finish": {"kind": "finish", "depends_on": ["m"], "output": "{{inputs.x}}"},
        }
        rounds: list[Document] = [
            {"calls": [{"name": "workflow.run", "arguments": {"name": "sub", "inputs": {"x": 42}, "wait": True}}]},
            says("yes", contains='"output": 42'),
        ]
        step = {"kind": "agent", "instruction": "go"}
        lived = ask(tmp_path, step, rounds, workflows=[{"name": "sub", "steps": steps}])
        assert lived.output == "yes" and len(lived.named("run.done")) == 2

    def test_what_is_not_granted_is_not_shown(self, tmp_path: Path) -> None:
        rounds = [{"calls": [{"name": "memory.set", "arguments": {"key": "k", "value": 1}}]}, {"text": "{{last}}"}]
        lived = ask(tmp_path, {"kind": "agent", "instruction": "go"}, rounds, store={"kind": "file"},
                    agent={"tools": {"internal": ["finish"]}})  # fmt: skip
        assert lived.named("loop.start")[0]["tools"] == 1
        assert not ask(tmp_path, {"kind": "memory.get", "key": "k"}, rounds, store={"kind": "file"}).output["found"]

    def test_a_tool_step_uses_them_too(self, tmp_path: Path) -> None:
        step = {"kind": "tool", "name": "memory.set", "args": {"key": "k", "value": 1}}
        assert ask(tmp_path, step, [says("x")]).output == {"key": "k"}


class TestCredentials:
    def test_a_rotated_secret_file_is_used_by_steps_and_turns(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("first\n")

        def rotate() -> dict[str, str]:
            (tmp_path / "token").write_text("second\n")
            return {"rotated": "yes"}

        with McpServer({"rotate": rotate, "look": lambda: {"ok": "yes"}}) as server:
            auth = {"kind": "static", "token": "{{secret-file:token}}"}
            mcp = {"servers": [{"name": "box", "endpoint": server.url, "auth": auth}]}
            step: Document = {"kind": "mcp.tool", "server": "box", "tool": "rotate"}
            agent = {"kind": "agent", "depends_on": ["s"], "instruction": "go"}
            steps = {
                "once": {"kind": "once"}, "s": {"depends_on": ["once"], **step}, "a": agent,
                "finish": {"kind": "finish", "depends_on": ["a"], "output": "{{steps.a.output}}"},
            }  # fmt: skip
            script = tmp_path / "mock.yaml"
            script.write_text(yaml.safe_dump({"rounds": [{"calls": [{"name": "box.look"}]}, {"text": "done"}]}))
            document = {"workflows": [{"name": "w", "steps": steps}], "mcp": mcp,
                        "intelligence": {"endpoints": [f"mock:{script}"]}}  # fmt: skip
            lived = live(document, tmp_path, children=True)
        assert (lived.code, lived.output) == (0, "done")
        sent = {r.params["name"]: r.headers["authorization"] for r in server.requests if r.method == "tools/call"}
        assert sent == {"rotate": "Bearer first", "look": "Bearer second"}
        assert "second" not in json.dumps(lived.events)

    def test_a_header_with_a_reference_follows_its_file(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("first\n")

        def rotate() -> dict[str, str]:
            (tmp_path / "token").write_text("second\n")
            return {"rotated": "yes"}

        with McpServer({"rotate": rotate, "look": lambda: {"ok": "yes"}}) as server:
            headers = {"x-api-key": "key {{secret-file:token}}", "x-team": "ops"}
            tool = {"kind": "mcp.tool", "server": "box"}
            steps = {
                "once": {"kind": "once"}, "a": {**tool, "depends_on": ["once"], "tool": "rotate"},
                "b": {**tool, "depends_on": ["a"], "tool": "look"}, "finish": {"kind": "finish", "depends_on": ["b"]},
            }  # fmt: skip
            mcp = {"servers": [{"name": "box", "endpoint": server.url, "headers": headers}]}
            lived = live({"workflows": [{"name": "w", "steps": steps}], "mcp": mcp}, tmp_path)
        assert lived.code == 0
        calls = [r.headers for r in server.requests if r.method == "tools/call"]
        assert [(c["x-api-key"], c["x-team"]) for c in calls] == [("key first", "ops"), ("key second", "ops")]

    def test_the_model_is_called_with_the_credential_of_its_scheme(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text("m0del-token")
        reply = {"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}
        with Site() as site:
            site.answers["/v1/chat/completions"] = [(200, {}, json.dumps(reply).encode())]
            model = {"endpoints": [f"{site.url}/v1"], "auth": {"kind": "static", "token": "{{secret-file:token}}"}}
            lived = ask(tmp_path, {"kind": "think", "prompt": "x"}, [says("unused")], intelligence=model)
        assert lived.output == "hi" and site.requests[0][2]["authorization"] == "Bearer m0del-token"


DAEMON: Document = {"store": {"kind": "file"}, "lifecycle": {"run_until": "drained"}}


def answering(value: Any, seen: list[Any]) -> Callable[[Instance, Lived], Awaitable[None]]:
    """Answer the first question with `value`, and wait for the end of its run."""

    async def answer(instance: Instance, lived: Lived) -> None:
        async with asyncio.timeout(10):
            while not (gates := instance.waits.gates.asked()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            seen.extend(gates)
            await instance.operations.operate("answer", {"task": gates[0]["task"], "value": value})
            await instance.operations.end(gates[0]["run"])

    return answer


class _Size(BaseModel):
    size: int


def _asking(server: Any) -> None:
    """A tool whose server asks a person for what it needs."""
    from mcp.server.mcpserver.resolve import Elicit, Resolve

    def ask() -> Any:
        return Elicit("which size?", _Size)

    ask.__annotations__["return"] = Elicit[_Size]

    def order(size: Any) -> str:
        return f"ordered {size.size}"

    order.__annotations__ |= {"size": Annotated[_Size, Resolve(ask)], "return": str}
    server.add_tool(order, name="order")


class TestPeople:
    def test_a_turn_asks_a_person(self, tmp_path: Path) -> None:
        rounds: list[Document] = [
            {"calls": [{"name": "ask_human", "arguments": {"question": "sure?", "schema": {"type": "boolean"}}}]},
            says("went on", contains="\ntrue\n"),
        ]
        seen: list[Any] = []
        lived = ask(tmp_path, {"kind": "agent", "instruction": "go"}, rounds, during=answering(True, seen), **DAEMON)
        assert seen[0]["question"] == "sure?" and lived.named("human.answered")
        assert lived.named("run.done")[0]["status"] == "completed" and lived.ended("s")["status"] == "done"

    def test_an_answer_outlives_the_process_that_asked(self, tmp_path: Path) -> None:
        rounds: list[Document] = [
            {"calls": [{"name": "ask_human", "arguments": {"question": "sure?"}}]},
            says("went on", contains="yes"),
        ]
        step = {"kind": "agent", "instruction": "go"}

        async def leave(instance: Instance, lived: Lived) -> None:
            async with asyncio.timeout(10):
                while not instance.waits.gates.asked():  # noqa: ASYNC110
                    await asyncio.sleep(0.01)

        hasty = {**DAEMON, "lifecycle": {**DAEMON["lifecycle"], "drain_timeout": 3}}
        ask(tmp_path, step, rounds, during=leave, **hasty)
        seen: list[Any] = []
        lived = ask(tmp_path, step, rounds, during=answering("yes", seen), **DAEMON)
        assert len(seen) == 1 and lived.named("run.done")[0]["status"] == "completed"
        assert not lived.named("human.ask")

    @pytest.mark.parametrize("family", ["session", "stateless"])
    def test_a_server_asks_a_person(self, tmp_path: Path, family: Any) -> None:
        seen: list[Any] = []
        with McpServer(family=family, setup=_asking) as server:
            rounds: list[Document] = [{"calls": [{"name": "box.order"}]}, says("ordered", contains="42")]
            lived = ask(
                tmp_path, {"kind": "agent", "instruction": "go"}, rounds, during=answering({"size": 42}, seen),
                mcp={"servers": [{"name": "box", "endpoint": server.url}]}, **DAEMON,
            )  # fmt: skip
        assert "which size?" in seen[0]["question"]
        assert lived.named("run.done")[0]["status"] == "completed"

    def test_where_nobody_can_be_asked_the_tool_is_not_there(self, tmp_path: Path) -> None:
        rounds: list[Document] = [{"calls": [{"name": "ask_human", "arguments": {"question": "?"}}]}, says("{{last}}")]
        lived = ask(tmp_path, {"kind": "agent", "instruction": "go"}, rounds)
        assert "there is no tool ask_human" in lived.printed
