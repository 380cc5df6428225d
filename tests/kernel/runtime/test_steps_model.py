"""Steps that ask a model: the kinds without tools, internal tools of a turn, credentials of its targets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from agentd.testing.instance import Lived, live
from agentd.testing.mcp_server import McpServer

Document = dict[str, Any]


def ask(tmp_path: Path, step: Document, rounds: list[Document], **more: Any) -> Lived:
    """A job of one step, with a model that says `rounds`."""
    script = tmp_path / "mock.yaml"
    script.write_text(yaml.safe_dump({"rounds": rounds}))
    steps = {
        "once": {"kind": "once", "policy": "always"},
        "s": {"depends_on": ["once"], **step},
        "finish": {"kind": "finish", "depends_on": ["s"], "output": "{{steps.s.output}}"},
    }
    others = more.pop("workflows", [])
    document = {
        "workflows": [{"name": "w", "steps": steps}, *others],
        "intelligence": {"endpoints": [f"mock:{script}"], **more.pop("intelligence", {})},
        **more,
    }
    return live(document, tmp_path, children=True)


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
