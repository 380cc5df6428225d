"""A turn over a real socket pair, with a scripted model and fake servers."""

from __future__ import annotations

from typing import Any


def test_a_call_and_an_answer(turn: Any, reply: Any) -> None:
    done = turn([reply("", ("fs_put", {"path": "a"})), reply("DONE")])
    assert done.result == {
        "t": "result",
        "status": "completed",
        "output": "DONE",
        "rounds": 2,
        "tool_calls": 1,
        "tokens_in": 20,
        "tokens_out": 10,
        "err": None,
    }
    assert done.servers.calls[0][:2] == ("put", {"path": "a"})
    assert [m["role"] for m in done.supervisor.messages()] == ["user", "assistant", "tool", "assistant"]
    assert done.answers()["c1_0"]["text"] == '<tool_result source="fs.put">\nok\n</tool_result>'
    assert done.model.closed and done.servers.closed
