"""Steps that reach outside, with real servers: `mcp.tool`, `mcp.resource`, `tool`, `http`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from agentd.runtime.instance import Instance
from agentd.testing.http_site import Site
from agentd.testing.instance import Lived, live
from agentd.testing.mcp_server import McpServer

Document = dict[str, Any]


def chain(steps: Document, output: Any = "{{steps.s.output}}", **more: Any) -> Document:
    """A job that takes `steps` one after the other."""
    graph: Document = {"once": {"kind": "once"}}
    before = "once"
    for name, step in steps.items():
        graph[name] = {"depends_on": [before], **step}
        before = name
    graph["finish"] = {"kind": "finish", "depends_on": [before], "output": output}
    return {"workflows": [{"name": "w", "steps": graph}], **more}


def servers(server: McpServer, **more: Any) -> Document:
    return {"servers": [{"name": "box", "endpoint": server.url, **more}]}


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as server:
        yield server


def failed(lived: Lived, step: str = "s") -> dict[str, Any]:
    assert lived.code != 0
    error: dict[str, Any] = lived.ended(step)["err"]
    return error


class TestMcp:
    def test_a_tool_is_called_and_gives_its_value(self, tmp_path: Path) -> None:
        with McpServer({"add": lambda a, b: {"sum": int(a) + int(b)}}) as server:
            step = {"kind": "mcp.tool", "server": "box", "tool": "add", "args": {"a": 2, "b": 3}}
            lived = live(chain({"s": step}, mcp=servers(server)), tmp_path)
        assert (lived.code, lived.output) == (0, {"sum": 5})
        meta = server.calls[0]["_meta"]
        assert meta["agent/attempt"] == 1 and len(meta["agent/idempotency_key"]) == 32
        assert meta["agent/run_id"] == lived.named("run.start")[0]["run"]
        assert [e["server"] for e in lived.named("mcp.connect")] == ["box"]
        assert lived.named("tool.result")[0]["is_error"] is False

    def test_every_attempt_has_the_same_key(self, tmp_path: Path) -> None:
        def flaky() -> str:
            if len(server.calls) < 2:
                raise ToolError("not yet")
            return "now"

        with McpServer({"flaky": flaky}) as server:
            step = {"kind": "mcp.tool", "server": "box", "tool": "flaky", "retry": {"max": 2, "backoff": "1ms"}}
            lived = live(chain({"s": step}, mcp=servers(server)), tmp_path)
        assert (lived.code, lived.output) == (0, {"result": "now"})
        first, second = (call["_meta"] for call in server.calls)
        assert first["agent/idempotency_key"] == second["agent/idempotency_key"]
        assert (first["agent/attempt"], second["agent/attempt"]) == (1, 2)

    def test_a_tools_own_error_fails_the_step_in_its_words(self, tmp_path: Path) -> None:
        def broken() -> str:
            raise ToolError("no paper")

        with McpServer({"broken": broken}) as server:
            step = {"kind": "mcp.tool", "server": "box", "tool": "broken"}
            error = failed(live(chain({"s": step}, mcp=servers(server)), tmp_path))
        assert error["type"] == "tool" and "no paper" in error["message"]

    def test_a_full_name_finds_its_server_and_a_disabled_one_is_refused(self, tmp_path: Path) -> None:
        with McpServer({"echo": lambda text: {"text": text}}) as server:
            step = {"kind": "tool", "name": "x.echo", "args": {"text": "hi"}}
            document = chain({"s": step}, mcp=servers(server, ns="x"))
            assert live(document, tmp_path).output == {"text": "hi"}
            error = failed(live({**document, "tools": {"disabled": ["x.*"]}}, tmp_path))
        assert "disabled" in error["message"] and len(server.calls) == 1

    def test_resources_are_listed_and_read(self, tmp_path: Path) -> None:
        with McpServer(resources={"notes://one": lambda: json.dumps({"n": 1})}) as server:
            steps = {
                "l": {"kind": "mcp.resource", "server": "box", "op": "list"},
                "s": {"kind": "mcp.resource", "server": "box", "uri": "notes://one"},
            }
            output = {"listed": "{{steps.l.output}}", "read": "{{steps.s.output.content}}"}
            lived = live(chain(steps, output, mcp=servers(server)), tmp_path)
        assert lived.output["read"] == {"n": 1}
        assert [r["uri"] for r in lived.output["listed"]] == ["notes://one"]

    def test_a_job_whose_servers_are_all_dead_exits_6(self, tmp_path: Path) -> None:
        dead = {"servers": [{"name": "box", "endpoint": "http://127.0.0.1:9/mcp"}]}
        step = {"kind": "mcp.tool", "server": "box", "tool": "add"}
        lived = live(chain({"s": step}, mcp=dead), tmp_path)
        assert lived.code == 6 and lived.named("mcp.connect.fail")

    def test_a_dead_server_costs_its_own_steps(self, tmp_path: Path) -> None:
        with McpServer({"echo": lambda text: {"text": text}}) as server:
            document = chain(
                {
                    "lost": {"kind": "mcp.tool", "server": "gone", "tool": "t", "on_error": "continue"},
                    "s": {"kind": "mcp.tool", "server": "box", "tool": "echo", "args": {"text": "still"}},
                },
                mcp=servers(server),
            )
            document["mcp"]["servers"].append({"name": "gone", "endpoint": "http://127.0.0.1:9/mcp"})
            lived = live(document, tmp_path)
        assert (lived.code, lived.output) == (0, {"text": "still"})
        assert lived.ended("lost")["err"]["type"] == "mcp"


class TestHttp:
    def test_what_is_sent_and_what_comes_back(self, tmp_path: Path, site: Site) -> None:
        site.answers["/things"] = [(201, {"X-Made": "yes", "content-type": "application/json"}, b'{"id": 7}')]
        step = {
            "kind": "http", "method": "POST", "url": f"{site.url}/things?a=1", "query": {"b": [2, 3], "c": None},
            "json": {"name": "Grüße"}, "headers": {"Authorization": "Bearer {{secret:TOKEN}}"},
            "allow_private": True, "idempotency": True,
        }  # fmt: skip
        lived = live(chain({"s": step}), tmp_path, environ={"TOKEN": "s3cret-token"})
        assert lived.code == 0
        assert lived.output["status"] == 201 and lived.output["ok"] and lived.output["json"] == {"id": 7}
        assert lived.output["headers"]["x-made"] == "yes" and lived.output["body"] == '{"id": 7}'
        method, path, headers, body = site.requests[0]
        assert (method, path) == ("POST", "/things?a=1&b=2&b=3")
        assert headers["authorization"] == "Bearer s3cret-token" and len(headers["idempotency-key"]) == 32
        assert body.decode() == '{"name":"Grüße"}' and headers["content-type"] == "application/json"
        assert "s3cret-token" not in json.dumps(lived.events)

    def test_a_reference_that_came_as_data_stays_text(self, tmp_path: Path, site: Site) -> None:
        steps = {
            "evil": {"kind": "http", "url": f"{site.url}/evil", "allow_private": True},
            "s": {"kind": "http", "url": site.url, "method": "POST", "body": "{{steps.evil.output.body}}",
                  "headers": {"X-Token": "{{secret:TOKEN}}"}, "allow_private": True},
        }  # fmt: skip
        site.answers["/evil"] = [(200, {}, b"give me {{secret:TOKEN}}")]
        live(chain(steps), tmp_path, environ={"TOKEN": "s3cret-token"})
        assert site.requests[1][3] == b"give me {{secret:TOKEN}}"
        assert site.requests[1][2]["x-token"] == "s3cret-token"

    def test_a_private_address_is_refused_without_leave(self, tmp_path: Path, site: Site) -> None:
        error = failed(live(chain({"s": {"kind": "http", "url": site.url, "retry": {"max": 3}}}), tmp_path))
        assert error["type"] == "egress" and not site.requests

    def test_a_transient_status_is_tried_again_and_others_are_not(self, tmp_path: Path, site: Site) -> None:
        site.answers["/"] = [(503, {}, b""), (200, {}, b"ok")]
        site.answers["/no"] = [(404, {}, b"")]
        step = {"kind": "http", "url": f"{site.url}/", "allow_private": True, "retry": {"max": 2, "backoff": "1ms"}}
        assert live(chain({"s": step}, "{{steps.s.output.body}}"), tmp_path).output == "ok"
        error = failed(live(chain({"s": {**step, "url": f"{site.url}/no"}}), tmp_path))
        assert "404" in error["message"] and len(site.requests) == 3

    @pytest.mark.parametrize(("expect", "fails"), [(404, False), (["2xx", "4xx"], False), ("2xx", True), ([200], True)])
    def test_what_is_expected_decides(self, tmp_path: Path, site: Site, expect: Any, fails: bool) -> None:
        site.answers["/"] = [(404, {}, b"")]
        step = {"kind": "http", "url": f"{site.url}/", "allow_private": True, "expect": expect}
        assert (live(chain({"s": step}), tmp_path).code != 0) is fails

    def test_neither_redirects_nor_cookies_are_followed(self, tmp_path: Path, site: Site) -> None:
        site.answers["/"] = [(302, {"Location": "/else", "Set-Cookie": "a=b"}, b"")]
        step = {"kind": "http", "url": f"{site.url}/", "allow_private": True}
        lived = live(chain({"first": step, "s": step}), tmp_path)
        assert lived.output["status"] == 302 and not lived.output["ok"]
        assert all("cookie" not in headers for _, _, headers, _ in site.requests) and len(site.requests) == 2


def daemon(server: Document, **more: Any) -> Document:
    steps = {
        "go": {"kind": "manual"},
        "s": {"kind": "mcp.tool", "server": "box", "tool": "echo", "args": {"text": "x"}, "depends_on": ["go"], **more},
        "finish": {"kind": "finish", "depends_on": ["s"], "output": "{{steps.s.output}}"},
    }
    return {
        "workflows": [{"name": "w", "steps": steps}],
        "mcp": {"servers": [{"name": "box", **server}]},
        "lifecycle": {"run_until": "drained"},
        "store": {"kind": "file"},
    }


def echo(text: str) -> dict[str, str]:
    return {"text": text}


class TestDaemon:
    def test_a_server_that_comes_later_is_found(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("agentd.runtime.connections._RETRY_FIRST", 0.02)

        async def during(instance: Instance, lived: Lived) -> None:
            async with asyncio.timeout(20):
                while not lived.named("mcp.connect.fail"):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                await asyncio.to_thread(server.start)
                while not lived.named("mcp.connect"):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                run = await instance.operations.operate("run", {"workflow": "w", "wait": True})
                assert run["output"] == {"text": "x"}

        with McpServer({"echo": echo}) as server:
            server.stop()
            lived = live(daemon({"endpoint": server.url}), tmp_path, during=during)
        assert lived.code == 0 and len(lived.named("mcp.connect.fail")) == 1

    def test_a_required_server_that_is_dead_ends_it(self, tmp_path: Path) -> None:
        lived = live(daemon({"endpoint": "http://127.0.0.1:9/mcp", "required": True}), tmp_path)
        assert lived.code == 6 and not lived.named("proc.ready")
