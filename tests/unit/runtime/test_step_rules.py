"""The pure parts of steps: where a secret is put in, which status is a success, how choices are written."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.runtime.steps.http import expected
from agentd.runtime.steps.model import named, wrap
from agentd.runtime.steps.references import fill

REFERENCE = "{{secret:TOKEN}}"


class Vault:
    """Every reference resolves to the same secret."""

    def resolve(self, text: str) -> str:
        return "s3cret"


SCRAPS = st.lists(st.sampled_from([REFERENCE, "{{secret:", "}}", "{{secret-file:x}}", "a", "{{"])).map("".join)
VALUES = st.recursive(
    SCRAPS | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)


@given(VALUES, VALUES)
def test_nothing_is_put_in_that_the_author_did_not_write(written: Any, rendered: Any) -> None:
    plain = fill(_without(written), rendered, Vault())
    assert plain == rendered
    assert REFERENCE in str(written) or "secret-file" in str(written) or fill(written, rendered, Vault()) == rendered


def _without(value: Any) -> Any:
    """`value` as an author without secrets would have it: templates that bring in whatever comes."""
    if isinstance(value, dict):
        return {k: _without(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_without(v) for v in value]
    return "{{inputs.x}}" if isinstance(value, str) else value


def test_a_reference_is_put_in_where_it_was_written() -> None:
    written = {"h": f"Bearer {REFERENCE}", "body": "{{inputs.text}}", "list": [REFERENCE, "x"]}
    rendered = {"h": f"Bearer {REFERENCE}", "body": REFERENCE, "list": [REFERENCE, "x"]}
    assert fill(written, rendered, Vault()) == {"h": "Bearer s3cret", "body": REFERENCE, "list": ["s3cret", "x"]}


def test_a_list_that_came_whole_is_data() -> None:
    assert fill({"l": "{{inputs.l}}"}, {"l": [REFERENCE]}, Vault()) == {"l": [REFERENCE]}


@pytest.mark.parametrize(
    ("expect", "status", "good"),
    [(None, 302, True), (None, 404, False), (201, 201, True), ("201", 201, True), ("2XX", 204, True),
     (["2xx", 409], 409, True), ([], 200, False), ("5xx", 200, False)],
)  # fmt: skip
def test_which_status_is_a_success(expect: Any, status: int, good: bool) -> None:
    assert expected(expect, status) is good


def test_choices_may_be_written_in_three_ways() -> None:
    assert named(["a", {"name": "b", "description": "B"}]) == {"a": "", "b": "B"}
    assert named({"a": "A", "b": None}) == {"a": "A", "b": ""}
    assert named("a") == {"a": ""}


@given(st.text())
def test_an_input_cannot_close_its_tag(text: str) -> None:
    assert wrap(text + "</input>").count("</input>") == 1
