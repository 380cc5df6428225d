"""How a request is written: the parts that no answer shows."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.builtin.anthropic import Anthropic
from agentd.builtin.openai import OpenAI
from agentd.ports.model import Message, ModelFault, ModelReply, ModelRequest, ToolCall, ToolSchema

CALL = ToolCall(id="c1", name="fs_put", arguments={"é": 1})
TALK = [
    Message(role="system", text="be good"),
    Message(role="user", text="go"),
    Message(role="assistant", calls=(CALL,)),
    Message(role="tool", call_id="c1", text="no such file", is_error=True),
    Message(role="assistant"),
    Message(role="user", text="and?"),
]
TOOL = ToolSchema(name="fs_put", description="put", parameters={"type": "object", "$defs": {"x": {}}})


def written(dialect: Any, endpoint: str = "https://x.example/v1", **options: Any) -> tuple[str, Any]:
    wire = dialect.write(endpoint, ModelRequest(**{"model": "m", "messages": TALK, **options}))
    return wire.url, json.loads(wire.body)


def test_openai() -> None:
    url, body = written(OpenAI(), tools=[TOOL], schema={"type": "object"}, max_tokens=7)
    assert url == "https://x.example/v1/chat/completions"
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "tool", "user"]
    assert body["messages"][2]["tool_calls"][0]["function"] == {"name": "fs_put", "arguments": '{"é": 1}'}
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "c1", "content": "ERROR: no such file"}
    assert body["tools"] == [
        {"type": "function", "function": {"name": "fs_put", "description": "put", "parameters": TOOL.parameters}}
    ]
    assert (body["tool_choice"], body["max_tokens"]) == ("auto", 7)
    assert body["response_format"]["json_schema"]["schema"] == {"type": "object"}


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("gpt-4o", "max_tokens"),
        ("o3-mini", "max_completion_tokens"),
        ("openai/gpt-5.2", "max_completion_tokens"),
        ("foo-o1", "max_tokens"),
        ("llama3", "max_tokens"),
    ],
)
def test_models_that_want_the_other_name(model: str, field: str) -> None:
    assert written(OpenAI(), model=model, max_tokens=7)[1][field] == 7


@pytest.mark.parametrize(
    ("endpoint", "url"),
    [
        ("https://x/v1/", "https://x/v1/chat/completions"),
        ("https://x/v1/chat/completions", "https://x/v1/chat/completions"),
        ("https://x/d/chat/completions?api-version=2", "https://x/d/chat/completions?api-version=2"),
        ("https://x/d?api-version=2", "https://x/d/chat/completions?api-version=2"),
        ("http://[::1]:8080", "http://[::1]:8080/chat/completions"),
    ],
)
def test_the_path_is_added_once(endpoint: str, url: str) -> None:
    assert written(OpenAI(), endpoint)[0] == url


def test_anthropic() -> None:
    url, body = written(Anthropic(), tools=[TOOL], schema={"type": "object"})
    assert url == "https://x.example/v1/messages"
    assert (body["system"], body["max_tokens"]) == ("be good", 8192)
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "go"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "fs_put", "input": {"é": 1}}]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "no such file", "is_error": True},
                {"type": "text", "text": "and?"},
            ],
        },
    ]
    assert body["tools"] == [{"name": "fs_put", "description": "put", "input_schema": TOOL.parameters}]
    assert body["output_config"]["format"] == {"type": "json_schema", "schema": {"type": "object"}}


def test_what_a_provider_signs_goes_back_to_it_only() -> None:
    call = {"id": "c", "function": {"name": "t", "arguments": "{}"}, "extra_content": {"sig": "x"}}
    answer = {"choices": [{"message": {"tool_calls": [call], "reasoning_details": [1], "unknown": 1}}]}
    reply = OpenAI().read(200, {}, json.dumps(answer).encode())
    talk = [TALK[1], reply.message, Message(role="tool", call_id="c", text="")]
    sent = written(OpenAI(), messages=talk)[1]["messages"][1]
    assert (sent["tool_calls"][0]["extra_content"], sent["reasoning_details"]) == ({"sig": "x"}, [1])
    assert "unknown" not in sent
    assert "sig" not in str(written(Anthropic(), messages=talk))


WORDS = [
    "choices",
    "message",
    "content",
    "tool_calls",
    "function",
    "arguments",
    "name",
    "id",
    "finish_reason",
    "usage",
    "prompt_tokens",
    "error",
    "code",
    "type",
    "text",
    "tool_use",
    "input",
    "stop_reason",
    "delta",
    "index",
    "detail",
    "message_start",
    "content_block",
    "content_block_start",
    "content_block_delta",
    "partial_json",
    "status",
]
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)
shaped = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(
            st.fixed_dictionaries(
                {
                    "message": values | st.dictionaries(st.sampled_from(WORDS), values),
                    "finish_reason": values,
                    "delta": values,
                    "index": values,
                }
            ),
            max_size=2,
        ),
        "content": st.lists(st.dictionaries(st.sampled_from(WORDS), values), max_size=3),
        "usage": values,
        "error": values,
        "model": values,
        "stop_reason": values,
        "type": values,
    },
)
bodies = st.one_of(
    st.binary(max_size=40),
    (values | shaped).map(lambda v: json.dumps(v).encode()),
    st.lists(values | shaped, max_size=4).map(lambda vs: "".join(f"data: {json.dumps(v)}\n\n" for v in vs).encode()),
)


@given(bodies, st.sampled_from([200, 201, 204, 302, 400, 429, 500, 529]), st.sampled_from([OpenAI, Anthropic]))
def test_any_answer_is_read_or_is_a_fault(body: bytes, status: int, dialect: Any) -> None:
    speaker = dialect()
    try:
        reply = speaker.read(status, {}, body)
    except ModelFault as fault:
        assert fault.message and (status < 400 or fault.status == status)
        return
    assert isinstance(reply, ModelReply) and status < 300
    assert (reply.finish == "calls") <= bool(reply.message.calls)
    assert reply.usage.tokens_in >= 0 and reply.usage.tokens_out >= 0
    answers = [Message(role="tool", call_id=c.id, text="x") for c in reply.message.calls]
    speaker.write("https://x", ModelRequest(model="m", messages=[TALK[1], reply.message, *answers]))
