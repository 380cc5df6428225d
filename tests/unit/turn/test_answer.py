"""Final answers and their schema."""

from __future__ import annotations

from typing import Any

import pytest

from agentd.errors import ConfigError
from agentd.turn.answer import Answer
from agentd.turn.internal import finish, schemas

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_any_text_is_an_answer_without_a_schema() -> None:
    assert Answer(None).read("x") == ("x", [])


@pytest.mark.parametrize("text", ['{"n": 1}', ' {"n":1}\n', '```json\n{"n": 1}\n```', '```\n{"n": 1}```'])
def test_json_is_read(text: str) -> None:
    assert Answer(SCHEMA).read(text) == ({"n": 1}, [])


@pytest.mark.parametrize("text", ["", "one", '{"n": NaN}', '{"n": 1} and more', "[" * 100_000])
def test_what_is_no_json_is_said(text: str) -> None:
    value, problems = Answer(SCHEMA).read(text)
    assert value is None and problems[0].startswith("the answer is no JSON")


def test_problems_name_their_place() -> None:
    _, problems = Answer(SCHEMA).read('{"n": "x"}')
    assert problems == ['n: "x" is not of type "integer"']


def test_nothing_is_fetched() -> None:
    with pytest.raises(ConfigError, match="output_schema cannot be used"):
        Answer({"$ref": "http://127.0.0.1:9/schema.json"}).read("1")


def test_a_pattern_cannot_hold_the_turn_up() -> None:
    assert Answer({"type": "string", "pattern": "^(a+)+$"}).problems("a" * 40 + "!")


class TestFinish:
    def test_takes_json_in_a_string(self) -> None:
        outcome, problems = finish({"result": '{"n": 1}'}, Answer(SCHEMA))
        assert outcome is not None and outcome.output == {"n": 1} and not problems

    def test_refuses_an_unknown_status(self) -> None:
        assert finish({"status": "great"}, Answer(None))[0] is None

    def test_carries_the_schema_unless_it_refers_into_itself(self) -> None:
        def result(schema: Any) -> Any:
            return next(iter(schemas(Answer(schema)))).parameters["properties"]["result"]

        assert result(SCHEMA)["required"] == ["n"]
        assert set(result({"$ref": "#/$defs/a", "$defs": {"a": SCHEMA}})) == {"description"}
        assert set(result(None)) == {"description"}
