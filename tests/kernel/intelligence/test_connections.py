"""Connections that die, bodies that are cut, and bodies that never end."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from agentd.errors import IntelligenceUnavailable
from agentd.ports.model import Message, ModelRequest

DATA = Path(__file__).parent / "data"
OK = {"json": {"choices": [{"message": {"content": "DONE"}, "finish_reason": "stop"}]}}
ASK = ModelRequest(model="", messages=[Message(role="user", text="x")])
CUT = [p.name for p in sorted((DATA / "C10").glob("*.json")) if p.name.startswith(("cut", "rst", "gzip_tr"))]


@pytest.mark.parametrize("name", CUT)
def test_a_body_that_is_cut_is_a_failed_call(name: str, bench: Any, play: Any) -> None:
    server = play(f"C10/{name}")
    assert bench.ask(server.url).message.text == "DONE"
    assert len(server.requests) == 2


def test_a_compressed_body(bench: Any, play: Any) -> None:
    server = play("C10/gzip_ok.json")
    assert bench.ask(server.url).message.text.startswith("DONE")
    assert len(server.requests) == 1


def test_a_compressed_body_may_not_swell(bench: Any, play: Any) -> None:
    import base64
    import gzip

    bomb = base64.b64encode(gzip.compress(b" " * (8 << 20))).decode()
    server = play({"b64": bomb, "headers": {"Content-Encoding": "gzip"}}, OK)
    assert bench.ask(server.url, max_body=1 << 20).message.text == "DONE"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_huge_body_is_refused_without_reading_it(chunked: bool, bench: Any, play: Any) -> None:
    size = json.loads((DATA / "C10/huge_body.json").read_text(encoding="utf-8"))
    assert "256 MiB" in size["note"]
    server = play({"endless": 256 << 20, "chunked": chunked, **OK}, OK)
    assert bench.ask(server.url, max_body=1 << 20).message.text == "DONE"
    assert len(server.requests) == 2
    assert server.sent < 32 << 20, "what the sockets hold, and no more"


def test_a_connection_closed_while_idle_is_replaced_silently(bench: Any, play: Any) -> None:
    server = play("C10/stale_keepalive.json")

    async def rounds() -> str:
        async with bench.client(server.url) as client:
            await client.call(ASK)
            return (await client.call(ASK)).message.text

    assert asyncio.run(rounds()) == "DONE"
    first, second = server.requests
    assert first.connection != second.connection
    assert bench.events("intel.failover") == [] and len(bench.events("intel.call")) == 2


def test_a_connection_that_dies_under_the_second_request_is_replaced_once(bench: Any) -> None:
    """The race the pool cannot see: the server closes when the request is already on its way."""
    answer = json.dumps(OK["json"]).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(answer)
    served: list[int] = []
    serving: list[Any] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(0)
        serving.append(asyncio.current_task())
        while b"x" in await reader.read(65536):
            served[-1] += 1
            if len(served) == 1 and served[0] == 2:
                break
            writer.write(head + answer)
        writer.close()
        await writer.wait_closed()

    async def rounds() -> str:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            async with bench.client(url) as client:
                await client.call(ASK)
                said = (await client.call(ASK)).message.text
            await asyncio.gather(*serving)
        return said

    assert asyncio.run(rounds()) == "DONE"
    assert served == [2, 1]
    assert [f["status"] for f in bench.events("intel.result")] == ["ok", "ok"]


def test_connections_are_kept_over_the_rounds(bench: Any, play: Any) -> None:
    server = play(OK)

    async def rounds() -> None:
        async with bench.client(server.url) as client:
            for _ in range(5):
                await client.call(ASK)

    asyncio.run(rounds())
    assert {r.connection for r in server.requests} == {1}


def closed_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def test_a_refused_connection_fails_over_at_once(bench: Any, play: Any) -> None:
    backup = play("C04/backup_ok.json")
    assert bench.ask(f"http://127.0.0.1:{closed_port()}", backup.url).message.text == "FROM-BACKUP"
    assert bench.clock.slept == []
    assert bench.events("intel.failover")[0]["reason"] == "unreachable"


def test_nobody_at_the_only_endpoint(bench: Any) -> None:
    with pytest.raises(IntelligenceUnavailable, match="endpoint 0"):
        bench.ask(f"http://127.0.0.1:{closed_port()}")
    assert len(bench.events("intel.call")) == 3, "without another endpoint it is worth a retry"


def test_an_endpoint_that_says_nothing_times_out_and_fails_over(bench: Any, play: Any) -> None:
    backup = play("C04/backup_ok.json")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert bench.ask(url, backup.url, timeout=0.2).message.text == "FROM-BACKUP"


def test_an_address_that_is_none(bench: Any) -> None:
    with pytest.raises(IntelligenceUnavailable):
        bench.ask("https://[::1")


def test_a_body_of_surrogates_is_sent_as_sound_text(bench: Any, play: Any) -> None:
    server = play(OK)
    bench.ask(server.url, messages=[Message(role="user", text="a\ud83d\ude00b\ud800c é")])
    body = server.requests[0].body
    assert json.loads(body)["messages"][0]["content"] == "a😀b\ufffdc é"
    assert "é".encode() in body and b"\\u" not in body
