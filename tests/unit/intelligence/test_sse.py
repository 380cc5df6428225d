"""Event streams, read whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.intelligence.sse import Event, events, is_stream

lines = st.text(st.characters(blacklist_characters="\r\n", blacklist_categories=["Cs"]), max_size=12)


@given(st.lists(st.lists(lines, min_size=1, max_size=3), max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_what_was_sent_arrives(sent: list[list[str]], newline: str) -> None:
    text = "".join("".join(f"data: {line}{newline}" for line in data) + newline for data in sent)
    assert [e.data for e in events(text)] == ["\n".join(data) for data in sent]


@given(st.text())
def test_anything_can_be_read(text: str) -> None:
    events(text)


def test_names_comments_and_a_last_event_that_nothing_ended() -> None:
    text = "\ufeff: hello\nretry: 3\n\nevent: error\ndata:{}\n\nid: 1\n\ndata: a"
    assert events(text) == [Event("error", "{}"), Event("message", "a")]


@pytest.mark.parametrize(
    ("text", "stream"),
    [
        ("data: x", True),
        (": x", True),
        ("\n\nevent: x", True),
        ("{}", False),
        ("", False),
        ("<html>", False),
    ],
)
def test_a_stream_is_known_by_its_look(text: str, stream: bool) -> None:
    assert is_stream(text) is stream
