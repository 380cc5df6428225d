"""Keys and envelopes."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.errors import StoreError
from agentd.journal.envelope import UnknownVersion, seal, unseal
from agentd.journal.keys import Keys, decode, encode, parse
from agentd.journal.retention import expired

anything = st.text(st.characters(exclude_categories=()))


@given(anything)
def test_a_segment_is_plain_and_comes_back(text: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_%-]*", encode(text))
    assert decode(encode(text)) == text


@given(anything, anything)
def test_different_ids_have_different_keys(a: str, b: str) -> None:
    keys = Keys("p", "i")
    assert (keys.key("run", a) == keys.key("run", b)) == (a == b)
    assert keys.key("step", a + "/" + b).startswith(keys.under("step", a + "/"))


def test_key() -> None:
    key = Keys("agentd", "pod.1").key("step", "../r/é")
    assert key == "agentd/pod%2E1/step/%2E%2E%2Fr%2F%C3%A9"
    assert parse(key) == ("agentd", "pod.1", "step", "../r/é")
    with pytest.raises(ValueError, match="is no key"):
        parse("a/b/c")


def test_seal_and_unseal() -> None:
    put = seal("k", "run", "r", 3, {"x": "\ud800é"}, 1.25, "i")
    assert put.text is not None and put.text.isascii()
    envelope = json.loads(put.text)
    assert envelope == put.envelope
    assert list(envelope) == ["v", "kind", "id", "seq", "ts", "instance", "state"]
    assert unseal("k", envelope) == ("r", 3, {"x": "\ud800é"})


def test_unseal_refuses() -> None:
    with pytest.raises(UnknownVersion, match=r"k has envelope version 2.*run the version that wrote it"):
        unseal("k", {"v": 2})
    with pytest.raises(StoreError, match="no envelope"):
        unseal("k", {"v": 1, "id": "r", "seq": "1", "state": {}})


def test_retention() -> None:
    runs = [("c", 30.0), ("a", 10.0), ("b", 20.0)]
    assert expired(runs, keep_last=None, ttl=None, now=99) == []
    assert expired(runs, keep_last=1, ttl=None, now=99) == ["a", "b"]
    assert expired(runs, keep_last=0, ttl=None, now=99) == ["a", "b", "c"]
    assert expired(runs, keep_last=None, ttl=10, now=30) == ["a", "b"]
    assert expired(runs, keep_last=2, ttl=5, now=26) == ["a", "b"]
