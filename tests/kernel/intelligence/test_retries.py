"""When a call is repeated, where, and after how long."""

import asyncio
import json
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest

from agentd.errors import IntelligenceUnavailable

DATA = Path(__file__).parent / "data"
ROWS = json.loads((DATA / "C08/retry_after.json").read_text(encoding="utf-8"))["rows"]
OWN = (0.25, 0.75)
WAITS: dict[str, tuple[float, float]] = {  # seconds before the second request: at least, at most
    "2": (2, 3),
    "0": (0, 0),
    "-5": OWN,
    "1.5": (1.5, 2),
    "": OWN,
    "soon": OWN,
    "@+3s": (2, 4),
    "@-3600s": (0, 0),
    "@+3s:rfc850": (2, 4),
    "@+3s:asctime": (2, 4),
    "2, 5": (5, 6),
    "１２": OWN,
}
OK = {"json": {"choices": [{"message": {"content": "DONE"}, "finish_reason": "stop"}]}}


def served(value: str, now: float) -> str:
    """`value` as a header: "@+3s" becomes an HTTP date so many seconds ahead."""
    if not value.startswith("@"):
        return value
    offset, _, form = value[1:].partition(":")
    when = datetime.fromtimestamp(now + int(offset.removesuffix("s")), UTC)
    forms = {"rfc850": "%A, %d-%b-%y %H:%M:%S GMT", "asctime": "%a %b %e %H:%M:%S %Y"}
    return when.strftime(forms[form]) if form else format_datetime(when, usegmt=True)


@pytest.mark.parametrize("row", ROWS, ids=[r["value"] or "empty" for r in ROWS])
def test_retry_after(row: Any, bench: Any, play: Any) -> None:
    value = served(row["value"], bench.clock.now())
    server = play({"status": row["status"], "headers": {"Retry-After": value}, "json": {"error": {}}}, OK)
    backup = play("C04/backup_ok.json")
    reply = bench.ask(server.url, backup.url)
    if row["value"] == "99999999":
        assert (reply.message.text, bench.clock.slept) == ("FROM-BACKUP", [])
        return
    assert (reply.message.text, len(server.requests), len(backup.requests)) == ("DONE", 2, 0)
    least, most = WAITS[row["value"]]
    assert least <= bench.clock.slept[0] <= most


@pytest.mark.parametrize("value", [r["value"] for r in ROWS if r["value"].startswith("@+")])
def test_a_date_is_never_early(value: str, bench: Any, play: Any) -> None:
    begun = bench.clock.now()
    server = play({"status": 503, "headers": {"Retry-After": served(value, begun)}}, OK)
    bench.ask(server.url)
    assert bench.clock.now() - begun >= 3


def test_milliseconds_are_more_exact(bench: Any, play: Any) -> None:
    server = play({"status": 429, "headers": {"retry-after": "2", "retry-after-ms": "1500"}}, OK)
    bench.ask(server.url)
    assert 1.5 <= bench.clock.slept[0] < 2


def test_a_limit_that_stays_fails_over(bench: Any, play: Any) -> None:
    server, backup = play("C08/two_endpoints_primary_429.json"), play("C04/backup_ok.json")
    assert bench.ask(server.url, backup.url).message.text == "FROM-BACKUP"
    assert len(server.requests) == 3 and all(wait >= 2 for wait in bench.clock.slept)


def test_an_empty_account_is_left_at_once(bench: Any, play: Any) -> None:
    server, backup = play("C08/insufficient_quota_429.json"), play("C04/backup_ok.json")
    assert bench.ask(server.url, backup.url).message.text == "FROM-BACKUP"
    assert (len(server.requests), bench.clock.slept) == (1, [])


def test_waits_stay_within_the_deadline(bench: Any, play: Any) -> None:
    server = play({"status": 429, "headers": {"Retry-After": "20"}})
    with pytest.raises(IntelligenceUnavailable):
        bench.ask(server.url, deadline=bench.clock.monotonic() + 10)
    assert (len(server.requests), bench.clock.slept) == (1, [])


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_is_final(status: int, bench: Any, play: Any) -> None:
    server, backup = play({"status": status, "json": {"error": {"message": "no"}}}), play("C04/backup_ok.json")
    with pytest.raises(IntelligenceUnavailable) as e:
        bench.ask(server.url, backup.url)
    assert (len(server.requests), len(backup.requests)) == (1, 0)
    assert (e.value.fields["status"], e.value.fields["retryable"]) == (status, False)


@pytest.mark.parametrize("status", [500, 502, 503, 504, 529, 408])
def test_a_stumble_is_retried_with_growing_waits(status: int, bench: Any, play: Any) -> None:
    server = play({"status": status, "text": "oops"})
    with pytest.raises(IntelligenceUnavailable) as e:
        bench.ask(server.url)
    first, second = bench.clock.slept
    assert len(server.requests) == 3 and second > first * 1.2
    assert e.value.fields["retryable"]


def test_a_complaint_about_a_tool_names_it_and_nothing_else(bench: Any, play: Any) -> None:
    message = "Invalid schema for function 'fs_no_properties': secret words"
    server = play({"status": 400, "json": {"error": {"message": message, "param": "tools[1].function.parameters"}}})
    with pytest.raises(IntelligenceUnavailable) as e:
        bench.ask(server.url, tools=("fs", "fs_no_properties", "fs_good"))
    assert "fs_no_properties" in str(e.value) and "fs_no_properties" in str(bench.events("intel.result"))
    assert "secret words" not in f"{e.value} {bench.log}"


def test_a_redirect_is_not_followed(bench: Any, play: Any) -> None:
    elsewhere, backup = play(OK), play("C04/backup_ok.json")
    server = play({"status": 307, "headers": {"Location": elsewhere.url}})
    assert bench.ask(server.url, backup.url, endpoint={"token": "sek"}).message.text == "FROM-BACKUP"
    assert not elsewhere.requests


def test_a_failing_endpoint_rests_is_probed_and_preferred_again(bench: Any, play: Any) -> None:
    server, backup = play(*[{"status": 500}] * 4, OK), play("C04/backup_ok.json")

    async def calls() -> list[str]:
        from agentd.ports.model import Message, ModelRequest

        ask = ModelRequest(model="", messages=[Message(role="user", text="x")])
        said = []
        async with bench.client(server.url, backup.url) as client:
            for rest in (0.0, 0.0, 5.0, 5.0, 5.0):
                bench.clock.time += rest
                said.append((await client.call(ask)).message.text)
                said.append(str(len(server.requests)))
        return said

    back = "FROM-BACKUP"
    #                                    3 failures, resting, a failed probe, resting 10 s, a good probe
    assert asyncio.run(calls()) == [back, "3", back, "3", back, "4", back, "4", "DONE", "5"]
    assert [(f["index"], f["reason"]) for f in bench.events("intel.swap")] == [(0, "recovered")]


def test_logs_and_errors_hold_no_token_and_no_url(bench: Any, play: Any) -> None:
    server = play({"status": 401, "json": {"error": "no"}})
    with pytest.raises(IntelligenceUnavailable) as e:
        bench.ask(server.url + "?key=hidden", endpoint={"token": "sek-123"}, content=True)
    assert server.requests[0].headers["authorization"] == "Bearer sek-123"
    assert server.requests[0].target == "/v1/chat/completions?key=hidden"
    said = f"{e.value} {e.value.to_data()} {bench.log}"
    assert "sek-123" not in said and "hidden" not in said and "/v1" not in said
    assert "intelligence.token" in str(e.value)


def test_a_token_file_is_read_at_each_dial(bench: Any, play: Any, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("one\n")

    async def calls() -> None:
        from agentd.ports.model import Message, ModelRequest

        ask = ModelRequest(model="", messages=[Message(role="user", text="x")])
        async with bench.client(server.url, dialect="anthropic", endpoint={"token_file": str(token)}) as client:
            await client.call(ask)
            token.write_text("two\n")
            await client.call(ask)

    server = play({"json": {"content": [{"type": "text", "text": "hi"}]}})
    asyncio.run(calls())
    assert [r.headers["x-api-key"] for r in server.requests] == ["one", "two"]
    assert server.requests[0].headers["anthropic-version"] == "2023-06-01"


def test_an_auth_scheme_may_mend_a_401_once(bench: Any, play: Any) -> None:
    class Mending:
        key = "old"

        async def headers(self, request: Any) -> dict[str, str]:
            return {"Authorization": self.key}

        async def on_unauthorized(self, request: Any, challenge: str) -> bool:
            self.key = challenge
            return True

    server = play({"status": 401, "headers": {"WWW-Authenticate": "fresh"}}, OK)
    assert bench.ask(server.url, endpoint={"auth": Mending()}).message.text == "DONE"
    assert [r.headers["authorization"] for r in server.requests] == ["old", "fresh"]
    assert len(bench.events("intel.call")) == 1


@pytest.mark.parametrize("token", ["sek-1\n23", "sek-\u00e9", "sek\x00"])
def test_a_credential_that_no_header_may_hold_is_not_repeated(token: str, bench: Any, play: Any) -> None:
    with pytest.raises(IntelligenceUnavailable, match="character") as e:
        bench.ask(play(OK).url, endpoint={"token": token})
    assert "sek" not in f"{e.value} {bench.log} {e.value.__cause__!r}"


def test_a_server_without_schemas_is_asked_without(bench: Any, play: Any) -> None:
    from agentd.ports.model import Message, ModelRequest

    refusal = {"status": 400, "json": {"error": {"message": "'response_format.type' must be 'text'"}}}
    server = play(refusal, OK)
    ask = ModelRequest(model="", messages=[Message(role="user", text="x")], schema={"type": "object"})

    async def calls() -> None:
        async with bench.client(server.url) as client:
            await client.call(ask)
            await client.call(ask)

    asyncio.run(calls())
    assert ["response_format" in r.json for r in server.requests] == [True, False, False]
