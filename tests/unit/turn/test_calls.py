"""Keys, digests and counts of calls."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentd.turn.calls import Tally, canonical, digest, key

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ARGS = st.dictionaries(st.text(), JSON, max_size=4)


@given(ARGS)
def test_the_order_of_arguments_does_not_matter(args: dict[str, Any]) -> None:
    turned = dict(reversed(args.items()))
    assert canonical(args) == canonical(turned) and digest(args) == digest(turned)
    assert key(["r", "s"], "t", args, 0) == key(["r", "s"], "t", turned, 0)


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), ARGS), max_size=8), st.randoms(use_true_random=False))
def test_reordered_calls_have_the_same_keys(calls: list[tuple[str, dict[str, Any]]], random: Any) -> None:
    def keys(made: list[tuple[str, dict[str, Any]]]) -> list[str]:
        tally = Tally()
        return [key(["r", "s"], tool, args, tally.add(tool, args)) for tool, args in made]

    turned = calls[:]
    random.shuffle(turned)
    assert sorted(keys(calls)) == sorted(keys(turned))
    assert len(set(keys(calls))) == len(calls)


def test_parts_do_not_run_into_each_other() -> None:
    assert key(["a", "b"], "c", {}, 0) != key(["a"], "bc", {}, 0) != key(["ab"], "c", {}, 0)
    assert key(["r", "s"], "t", {}, 0) != key(["r", "s"], "t", {}, 1)


def test_a_lone_surrogate_has_a_key_too() -> None:
    assert len(key(["r"], "t", {"a": "\ud800"}, 0)) == 64
