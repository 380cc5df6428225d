"""What models answer in shapes they should not, file by file."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from agentd.errors import IntelligenceUnavailable
from agentd.ports.model import Message, ModelReply, ModelRequest

DATA = Path(__file__).parent / "data"
EXPECTED = json.loads((DATA / "C01/expected.json").read_text(encoding="utf-8"))
REACH = EXPECTED["must_reach_tool_with"]
REPORTED = EXPECTED["must_be_reported_to_model_and_tool_not_called"]
EITHER = EXPECTED["either_parsed_or_reported_to_model_never_silent_empty"]


def files(folder: str, prefix: str = "") -> list[str]:
    names = [p.name for p in sorted((DATA / folder).glob(f"{prefix}*.json")) if p.name != "expected.json"]
    assert names
    return names


def converse(bench: Any, server: Any, dialect: str = "openai") -> list[ModelReply]:
    """Ask, answer each call, ask again, until the model says something or stops being asked."""

    async def talk() -> list[ModelReply]:
        messages, replies = [Message(role="user", text="go")], list[ModelReply]()
        async with bench.client(server.url, dialect=dialect) as client:
            for _ in range(2):
                replies.append(await client.call(ModelRequest(model="", messages=messages)))
                messages.append(replies[-1].message)
                for call in replies[-1].message.calls:
                    text, failed = call.problem or "ok", call.arguments is None
                    messages.append(Message(role="tool", call_id=call.id, text=text, is_error=failed))
        return replies

    return asyncio.run(talk())


def one_step(request: Any) -> None:
    """Strict servers: history carries arguments as a string that is an object after one step, ids that are answered."""
    asked = set()
    for message in request.json["messages"]:
        for call in message.get("tool_calls", ()):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
            asked.add(call["id"])
        if message["role"] == "tool":
            asked.discard(message["tool_call_id"])
    assert not asked


@pytest.mark.parametrize("name", files("C01"))
def test_arguments_of_every_shape(name: str, bench: Any, play: Any) -> None:
    server = play(f"C01/{name}")
    first, second = converse(bench, server)
    assert (first.finish, second.message.text) == ("calls", "DONE")
    (call,) = first.message.calls
    shape = name.removesuffix(".json").removeprefix("args_")
    if name.startswith("noargs"):
        assert call.arguments == {}
    elif shape in REACH:
        assert call.arguments == REACH[shape]
    elif shape in REPORTED:
        assert call.arguments is None and call.problem
    elif shape in EITHER:
        assert call.arguments or call.problem
    else:
        assert (shape, call.arguments) == ("dup_keys", {"path": "b", "text": "t"})
    one_step(server.requests[1])
    if call.arguments is None:
        assert server.requests[1].json["messages"][-1]["content"].startswith("ERROR: ")


FINISHES: dict[str, tuple[str, str, int]] = {
    "STOP_upper": ("stop", "hi", 0),
    "content_filter": ("filtered", "", 0),
    "content_parts": ("stop", "DONE", 0),
    "empty_everything": ("empty", "", 0),
    "empty_string": ("empty", "", 0),
    "eos": ("stop", "hi", 0),
    "legacy_function_call": ("calls", "", 1),
    "length_but_valid_args": ("calls", "", 1),
    "length_cut_args": ("calls", "", 1),
    "length_text": ("length", "a cut sent", 0),
    "loop_empty_tool_calls": ("empty", "", 0),
    "missing": ("stop", "hi", 0),
    "null_with_calls": ("calls", "", 1),
    "only_reasoning": ("empty", "", 0),
    "refusal_field": ("refused", "no", 0),
    "role_missing": ("stop", "DONE", 0),
    "stop_with_calls": ("calls", "", 1),
    "tool_calls_but_none": ("stop", "thinking aloud", 0),
    "tool_calls_empty_list": ("empty", "", 0),
    "tool_calls_null": ("stop", "hi", 0),
    "two_choices": ("stop", "first", 0),
}


@pytest.mark.parametrize("name", files("C03"))
def test_a_reason_that_contradicts_the_message(name: str, bench: Any, play: Any) -> None:
    server = play(f"C03/{name}")
    first, _ = converse(bench, server)
    finish, text, calls = FINISHES[name.removesuffix(".json")]
    assert (first.finish, first.message.text, len(first.message.calls)) == (finish, text, calls)
    one_step(server.requests[1])
    if name == "length_cut_args.json":
        assert first.message.calls[0].arguments is None
    if name.startswith(("tool_calls_but_none", "tool_calls_empty_list")):
        assert first.reason == "tool_calls", "the turn asks once more when it sees this reason without calls"
    for message in server.requests[1].json["messages"]:
        assert message["content"] or message.get("tool_calls"), "an empty answer is not replayed"


FATAL_IN_200 = {"400_in_200.json": 400, "401_in_200.json": 401}


@pytest.mark.parametrize("name", [n for n in files("C04") if n != "backup_ok.json"])
def test_an_error_in_a_200(name: str, bench: Any, play: Any) -> None:
    server, backup = play(f"C04/{name}"), play("C04/backup_ok.json")
    if name in FATAL_IN_200:
        with pytest.raises(IntelligenceUnavailable) as e:
            bench.ask(server.url, backup.url)
        assert e.value.fields["status"] == FATAL_IN_200[name]
        assert not e.value.fields["retryable"]
        assert (len(server.requests), len(backup.requests)) == (1, 0)
        return
    assert bench.ask(server.url, backup.url).message.text == "FROM-BACKUP"
    assert len(server.requests) == 3
    (failover,) = bench.events("intel.failover")
    assert (failover["index"], failover["to"], failover["host"]) == (0, 1, "127.0.0.1")


@pytest.mark.parametrize("name", [n for n in files("C04") if n != "backup_ok.json"])
@pytest.mark.parametrize("content", [False, True])
def test_an_error_in_a_200_of_the_only_endpoint(name: str, content: bool, bench: Any, play: Any) -> None:
    server = play(f"C04/{name}")
    with pytest.raises(IntelligenceUnavailable) as e:
        bench.ask(server.url, content=content)
    assert e.value.exit_code == 4
    said = f"{e.value} {bench.log}"
    words = {
        "or_502.json": "temporarily overloaded",
        "400_in_200.json": "context length exceeded",
        "error_string.json": "model is loading",
        "html_200.json": "Sign in",
        "detail.json": "Not Found",
    }
    if name in words:
        assert (words[name] in said) is content, "a provider's words are content"


USAGES: dict[str, tuple[int, int, bool]] = {
    "usage_absent": (0, 0, False),
    "usage_anthropic_names": (120, 30, True),
    "usage_details_null": (120, 30, True),
    "usage_empty": (0, 0, False),
    "usage_floats": (120, 30, True),
    "usage_huge": (9007199254740993, 1, True),
    "usage_list": (0, 0, False),
    "usage_negative": (0, 30, False),
    "usage_null": (0, 0, False),
    "usage_nulls": (0, 0, False),
    "usage_only_total": (150, 0, True),
    "usage_strings": (120, 30, True),
}


@pytest.mark.parametrize("name", files("C05"))
def test_usage_of_every_shape(name: str, bench: Any, play: Any) -> None:
    first, second = converse(bench, play(f"C05/{name}"))
    assert second.message.text == "DONE"
    usage = first.usage
    assert (usage.tokens_in, usage.tokens_out, usage.reported) == USAGES[name.removesuffix(".json")]


@pytest.mark.parametrize("name", files("C06"))
def test_an_event_stream_where_json_was_asked_for(name: str, bench: Any, play: Any) -> None:
    server = play(f"C06/{name}")
    reply = bench.ask(server.url)
    if name in ("cut_before_finish.json", "error_event.json"):
        assert (reply.message.text, len(server.requests)) == ("DONE", 2)
        return
    assert len(server.requests) == 1
    if name == "tool_labelled.json":
        calls = [(c.id, c.name, c.arguments) for c in reply.message.calls]
        assert calls == [("call_a", "fs_put", {"path": "a", "text": "t"}), ("call_b", "fs_health", {})]
        return
    accented = name.startswith("text") or name in ("json_latin1_label.json", "crlf_comments_retry.json")
    assert reply.message.text == ("DONE é" if accented else "DONE")
    if name.startswith("text"):
        assert (reply.usage.tokens_in, reply.usage.tokens_out) == (3, 2)


MESSAGES: dict[str, tuple[str, str]] = {
    "context_exceeded": ("length", "half"),
    "empty_end_turn": ("empty", ""),
    "input_string": ("calls", ""),
    "max_tokens_text": ("length", "half"),
    "max_tokens_tool_cut": ("calls", "I will"),
    "parallel_two": ("calls", ""),
    "pause_turn": ("paused", "part 1"),
    "refusal": ("refused", ""),
    "thinking_then_text": ("stop", "DONE"),
    "tool_use_no_block": ("empty", ""),
    "unknown_block": ("stop", "DONE"),
    "unknown_reason": ("stop", "DONE"),
    "usage_cache": ("stop", "DONE"),
}


@pytest.mark.parametrize("name", files("C07"))
def test_anthropic_answers_that_end_oddly(name: str, bench: Any, play: Any) -> None:
    server = play(f"C07/{name}")
    if name in ("overloaded_529.json", "200_error_body.json"):
        if name == "200_error_body.json":  # its script never gets better
            with pytest.raises(IntelligenceUnavailable):
                bench.ask(server.url, dialect="anthropic")
            assert len(server.requests) == 3
        else:
            assert bench.ask(server.url, dialect="anthropic").message.text == "DONE"
            assert len(server.requests) == 2
        return
    first, _ = converse(bench, server, "anthropic")
    assert (first.finish, first.message.text) == MESSAGES[name.removesuffix(".json")]
    sent, asked = server.requests[1].json["messages"], set[str]()
    for message in sent:
        blocks = message["content"]
        assert blocks, "no message is empty"
        if message["role"] == "user":
            answered = {b["tool_use_id"] for b in blocks if b["type"] == "tool_result"}
            assert answered == asked, "all results of one answer stand in the next user message"
        asked = {b["id"] for b in blocks if b["type"] == "tool_use"}
        assert all(isinstance(b["input"], dict) for b in blocks if b["type"] == "tool_use")
    assert not asked
    original = json.loads((DATA / "C07" / name).read_text(encoding="utf-8"))["steps"][0]["json"]["content"]
    if name in ("unknown_block.json", "thinking_then_text.json", "pause_turn.json"):
        assert sent[1]["content"] == original, "blocks we do not know go back unchanged"
    if name == "max_tokens_tool_cut.json":
        assert first.message.calls[0].arguments is None
    if name == "input_string.json":
        assert first.message.calls[0].arguments == {"path": "a", "text": "t"}
    if name == "usage_cache.json":
        assert (first.usage.tokens_in, first.usage.tokens_out) == (6002, 3)


def test_ids_that_repeat_or_are_missing_become_unique(bench: Any, play: Any) -> None:
    call = {"id": "call_1", "function": {"name": "t", "arguments": "{}"}}
    nameless = {"function": {"name": "t"}}
    body = {"choices": [{"message": {"tool_calls": [call, call, nameless]}}]}
    first, second = converse(bench, play({"json": body}))
    ids = [c.id for c in (*first.message.calls, *second.message.calls)]
    assert ids[0] == "call_1" and len(set(ids)) == 6


def test_an_anthropic_stream_is_folded(bench: Any, play: Any) -> None:
    chunks: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"role": "assistant", "usage": {"input_tokens": 4, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "hé"}},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "t1", "name": "n", "input": {}},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a"'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ": 1}"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]
    text = "".join(f"event: {c['type']}\ndata: {json.dumps(c)}\n\n" for c in chunks)
    cut = text[: text.index("event: message_delta")]
    server = play({"text": cut}, {"text": text})
    reply = bench.ask(server.url, dialect="anthropic")
    assert len(server.requests) == 2
    assert reply.message.text == "hé" and reply.message.calls[0].arguments == {"a": 1}
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (4, 9)
