"""Templates, conditions, parsing, and the steps that only compute."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentd.engine.compare import compile_condition, same
from agentd.engine.data import reduced
from agentd.engine.parse import parse
from agentd.engine.paths import Missing, parse_path
from agentd.engine.template import Compiler, to_text
from agentd.testing.runs import Driver

SCALARS = st.none() | st.booleans() | st.integers() | st.text()


class Names:
    def __init__(self, **names: Any) -> None:
        self.names = names

    def name(self, root: str) -> Any:
        return self.names[root]

    def step(self, id: str) -> Any:
        return None

    def everything(self, text: str) -> dict[str, Any]:
        return self.names


def render(value: Any, **names: Any) -> Any:
    get = Compiler().value(value)
    return value if get is None else get(Names(**names))


def test_alone_keeps_the_type_and_inside_text_is_text() -> None:
    inputs = {"n": 1, "l": [1, {"a": None}], "t": "ü", "b": True}
    assert render("{{inputs.n}}", inputs=inputs) == 1
    assert render("{{ inputs.l }}", inputs=inputs) == [1, {"a": None}]
    assert render("<{{inputs.t}}|{{inputs.l}}|{{inputs.b}}>", inputs=inputs) == '<ü|[1,{"a":null}]|true>'
    assert render({"a": ["{{inputs.b}}", {"x": "{{inputs.l[1].a}}"}]}, inputs=inputs) == {"a": [True, {"x": None}]}
    assert render("{{inputs.l.0}}{{inputs.l[-1].a}}", inputs=inputs) == "1null"


def test_fallbacks() -> None:
    assert render("{{inputs.x | 5}}", inputs={}) == 5
    assert render("{{inputs.x | none at all}}", inputs={}) == "none at all"
    assert render("{{inputs.x | 'a | b }} c'}}", inputs={}) == "a | b }} c"
    assert render('{{inputs.x | inputs.y | {"a": [1]}}}', inputs={}) == {"a": [1]}
    assert render("{{inputs.x | inputs.y | 1}}", inputs={"y": 2}) == 2
    assert render("{{inputs.x | 1}}", inputs={"x": None}) is None
    with pytest.raises(Missing, match=r"inputs\.x\.y"):
        render("{{inputs.x.y}}", inputs={"x": "text"})


def test_braces_around_a_hole_are_text() -> None:
    assert render('{"x": {{inputs.a}}}', inputs={"a": {"b": 1}}) == '{"x": {"b":1}}'
    assert render("it's {{inputs.a}} isn't {{", inputs={"a": 1}) == "it's 1 isn't {{"


def test_secrets_stay() -> None:
    assert render("Bearer {{secret:T}} {{inputs.a}} {{secret-file:/x}}", inputs={"a": 1}) == (
        "Bearer {{secret:T}} 1 {{secret-file:/x}}"
    )
    assert render("{{secret:T}}") == "{{secret:T}}"


@pytest.mark.parametrize("text", ["", "a b", "a.", "a[", "a[x]", "1a", "a..b", "|", 'a["x]'])
def test_no_paths(text: str) -> None:
    with pytest.raises(ValueError):
        parse_path(text)


def test_paths() -> None:
    assert parse_path("a.b-c[0]['d.e'].3[\"f\"]") == ("a", "b-c", 0, "d.e", "3", "f")


@given(st.recursive(SCALARS, lambda s: st.lists(s) | st.dictionaries(st.text(), s), max_leaves=8))
def test_what_is_inserted_is_never_rendered_again(value: Any) -> None:
    assert render("{{inputs.v}}", inputs={"v": value}) == value
    assert render("<{{inputs.v}}>", inputs={"v": value}) == f"<{to_text(value)}>"


@given(st.text())
def test_any_text_compiles_or_says_why(text: str) -> None:
    try:
        Compiler().value(text)
    except ValueError as e:
        assert str(e)


@given(st.text())
def test_any_condition_compiles_or_says_why(text: str) -> None:
    try:
        test = compile_condition(text, Compiler())
    except ValueError as e:
        assert str(e)
    else:
        with contextlib.suppress(KeyError, Missing):
            assert test(Names()) in (True, False)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("i.t == true", True),
        ("i.t == 1", False),
        ("i.one == 1.0", True),
        ("i.s == 'a == b'", True),
        ('i.s != "x"', True),
        ("i.none == null", True),
        ("i.gone == null", True),
        ("i.gone != true", True),
        ("i.one < 2", True),
        ("i.one >= 1", True),
        ("i.s < 2", False),
        ("i.t < 2", False),
        ("i.s > 'A'", True),
        ("i.gone > 0", False),
        ("{{i.gone | 3}} > 2", True),
        ("{{i.t}}", True),
        ("i.none", False),
        ("!i.none", True),
        ("not i.t", False),
        ("i.one == i.one", True),
        ("'x' == i.s", False),
        ("i.l[0] == -2.5e1", True),
        (True, True),
        ("true", True),
        ("i.l == i.l", True),
    ],
)
def test_conditions(condition: Any, holds: bool) -> None:
    i = {"t": True, "one": 1, "s": "a == b", "none": None, "l": [-25]}
    assert compile_condition(condition, Compiler())(Names(i=i)) is holds


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False), lambda s: st.lists(s), max_leaves=5
    )
)
def test_a_value_is_the_same_as_itself_and_not_as_another_kind(value: Any) -> None:
    assert same(value, json.loads(json.dumps(value)))
    assert not same(True, 1) and not same([True], [1]) and not same({"a": 0}, {"a": False})


def compute(kind: str, **fields: Any) -> Any:
    steps = {
        "s": {"kind": "manual"},
        "x": {"kind": kind, "depends_on": "s", **fields},
        "f": {"kind": "finish", "depends_on": "x", "output": "{{steps.x.output}}"},
    }
    ended = Driver(
        {"name": "w", "steps": steps}, inputs={"l": [{"k": 2}, {"k": 1}, {"k": 2}], "n": [3, 1, None, "a", True]}
    ).finished
    assert ended is not None
    return ended.output if ended.status == "completed" else ended.err


def test_data_steps() -> None:
    assert compute("map", over="inputs.l", expression={"v": "{{item.k}}", "i": "{{index}}"})[1] == {"v": 1, "i": 1}
    assert compute("map", over=[1, 2], **{"as": "n"}, expression="<{{n}}>") == ["<1>", "<2>"]
    assert compute("filter", over="{{inputs.l}}", expression="item.k == 2") == [{"k": 2}, {"k": 2}]
    assert compute("reduce", over=["a", "b"], initial="", expression="{{acc}}{{item}}") == "ab"
    assert compute("sort", over="inputs.l", by="k") == [{"k": 1}, {"k": 2}, {"k": 2}]
    assert compute("sort", over="inputs.n", order="desc") == ["a", 3, 1, True, None]
    assert compute("dedupe", over="inputs.l", by="k") == [{"k": 2}, {"k": 1}]
    assert compute("dedupe", over=[1, True, 1.0, "1"]) == [1, True, "1"]
    assert compute("chunk", over=[1, 2, 3], size=2) == [[1, 2], [3]]
    assert compute("template", template="{{inputs.n[0]}}!") == "3!"
    assert compute("validate", value="inputs.l", schema={"type": "array"}) == [{"k": 2}, {"k": 1}, {"k": 2}]
    assert compute("validate", value=1, schema={"type": "string"})["code"] == "validate"
    assert compute("assert", condition="inputs.n[0] == 3") is True
    assert compute("assert", condition="inputs.n[0] == 4", message="not four")["message"] == "not four"
    assert compute("fail", message="over", code="quota") == {"code": "quota", "message": "over", "step": "x"}
    assert "must be a list" in compute("map", over="inputs.l[0]", expression=1)["message"]
    assert "size" in compute("chunk", over=[1], size="{{inputs.n[1]}}{{inputs.n[4]}}")["message"]


@pytest.mark.parametrize(
    ("text", "format", "value"),
    [
        ('{"a": [1]}', "json", {"a": [1]}),
        ("a: yes\nb: true\nc: 2026-01-01\n", "yaml", {"a": "yes", "b": True, "c": "2026-01-01"}),
        ('a,b\n1,"x,\ny"\n', "csv", [{"a": "1", "b": "x,\ny"}]),
        ("", "csv", []),
        ("a\r\nb\n", "lines", ["a", "b"]),
    ],
)
def test_parse(text: str, format: str, value: Any) -> None:
    assert parse(text, format) == value


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("{", "json"),
        ("NaN", "json"),
        ("[" * 100_000, "json"),
        ("a: &x [1]\nb: *x", "yaml"),
        ("!!python/object:os.system x", "yaml"),
        ("a: .nan", "yaml"),
        ("a,b\n1\n", "csv"),
        ('a\n"x', "csv"),
    ],
)
def test_parse_says_why_not(text: str, format: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text, format)


@given(st.text(), st.sampled_from(["json", "yaml", "csv", "lines"]))
def test_parse_only_ever_raises_value_errors(text: str, format: str) -> None:
    with contextlib.suppress(ValueError):
        json.dumps(parse(text, format), allow_nan=False)


def test_reducers() -> None:
    assert reduced("append", None, 1) == [1] and reduced("append", [1], [2]) == [1, [2]]
    assert reduced("union", [1, 2], [2, 3]) == [1, 2, 3] and reduced("union", None, "a") == ["a"]
    assert reduced("merge", {"a": 1}, {"b": 2}) == {"a": 1, "b": 2} and reduced("overwrite", 1, 2) == 2
    for mode, before, value in (("append", "x", 1), ("merge", [1], {}), ("merge", {}, 1), ("union", {}, 1)):
        with pytest.raises(ValueError):
            reduced(mode, before, value)
