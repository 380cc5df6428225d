"""The proxy variables, row by row: nothing crashes, loopback is dialled directly, passwords are told to nobody."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from agentd import net
from agentd.errors import IntelligenceUnavailable

ROWS = json.loads((Path(__file__).parent / "data/C59/env.json").read_text(encoding="utf-8"))["rows"]
LOOPBACK = [row for row in ROWS if "endpoint" not in row]
OK = {"json": {"choices": [{"message": {"content": "DONE"}, "finish_reason": "stop"}]}}


def environ(row: dict[str, str], port: int) -> dict[str, str]:
    told = {k: v for k, v in row.items() if k not in ("expect", "endpoint")}
    return {k: v.replace("$DEAD", str(port)).replace("$PROXY", str(port)) for k, v in told.items()}


@pytest.mark.parametrize(
    "row", LOOPBACK, ids=[" ".join(f"{k}={v}" for k, v in environ(r, 9).items()) for r in LOOPBACK]
)
def test_a_loopback_model_is_reached_whatever_the_variables_say(row: dict[str, str], bench: Any, play: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as proxy:
        variables = environ(row, proxy.getsockname()[1])
        server = play(OK)
        reply = bench.ask(server.url, net=lambda: net.client(environ=variables))
        assert reply.message.text == "DONE"
        proxy.setblocking(False)
        with pytest.raises(BlockingIOError):
            proxy.accept()
    findings = net.proxy_findings(variables)
    wrong = {"not a url", "socks5://127.0.0.1:1"} & set(row.values())
    assert bool(findings) is bool(wrong)
    assert all(name in row and row[name] not in problem for name, problem in findings)


def test_https_goes_through_the_proxy_in_a_tunnel(bench: Any) -> None:
    (row,) = [r for r in ROWS if "endpoint" in r]
    heads: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    async def call() -> None:
        from agentd.ports.model import Message, ModelRequest

        proxy = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = proxy.sockets[0].getsockname()[1]
        variables = {"HTTPS_PROXY": f"http://user:p%40ss@127.0.0.1:{port}"}
        async with (
            proxy,
            bench.client(
                row["endpoint"], endpoint={"token": "sek"}, net=lambda: net.client(environ=variables)
            ) as client,
        ):
            await client.call(ModelRequest(model="", messages=[Message(role="user", text="x")]))

    with pytest.raises(IntelligenceUnavailable) as e:
        asyncio.run(call())
    assert heads[0].startswith(b"CONNECT gw.example:443 ") and b"sek" not in heads[0]
    said = f"{e.value} {bench.log}"
    assert "p%40ss" not in said and "p@ss" not in said and "sek" not in said


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"ALL_PROXY": "socks5://u:pw@127.0.0.1:1"}, "ALL_PROXY"),
        ({"HTTPS_PROXY": "not a url pw"}, "HTTPS_PROXY"),
        ({"SSL_CERT_FILE": "/nonexistent"}, "SSL_CERT_FILE"),
    ],
)
def test_a_variable_that_is_needed_and_wrong_is_named(variables: dict[str, str], named: str, bench: Any) -> None:
    with pytest.raises(IntelligenceUnavailable, match=named) as e:
        bench.ask("https://gw.example/v1", net=lambda: net.client(environ=variables))
    assert "pw" not in str(e.value)
    assert len(bench.events("intel.call")) == 1
