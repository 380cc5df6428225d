"""Conditions that need no plugin: a path, its negation, or the comparison of two operands; pure.

An operand is a path (bare or in braces, where it may have a fallback) or a literal: a JSON scalar, or text in single
or double quotes. A missing path counts as null. Values of different kinds are never equal, and neither is less than
the other; ``true`` is not ``1``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from agentd.engine.paths import Getter, Missing, Names
from agentd.engine.template import PREFIX, Compiler

Test = Callable[[Names], bool]

_PARTS = re.compile(
    r"""\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|\{\{.*?\}\}|[^"'<>=!{}])+?)\s*(==|!=|<=|>=|<|>)\s*(.+?)\s*""", re.DOTALL
)
_NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None}
_ORDERS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compile_condition(text: bool | str, compiler: Compiler) -> Test:
    """A test of names. Raises ValueError with what is wrong."""
    if isinstance(text, bool):
        return lambda names: text
    if text.startswith(PREFIX):
        evaluate = compiler.expression(text)
        return lambda names: evaluate(names) is True
    parts = _PARTS.fullmatch(text)
    if parts is None:
        return _truth(text, compiler)
    left, op, right = _operand(parts.group(1), compiler), parts.group(2), _operand(parts.group(3), compiler)
    if op == "==":
        return lambda names: same(left(names), right(names))
    if op == "!=":
        return lambda names: not same(left(names), right(names))
    order = _ORDERS[op]
    return lambda names: _ordered(order, left(names), right(names))


def _truth(text: str, compiler: Compiler) -> Test:
    bare = text.strip()
    negated = bare.startswith(("!", "not "))
    get = _operand(bare.removeprefix("!").removeprefix("not ").strip(), compiler)
    return lambda names: bool(get(names)) is not negated


def _operand(text: str, compiler: Compiler) -> Getter:
    if text in _WORDS:
        word = _WORDS[text]
        return lambda names: word
    if _NUMBER.fullmatch(text):
        number = float(text) if set(text) & set(".eE") else int(text)
        return lambda names: number
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        quoted = re.sub(r"\\(.)", r"\1", text[1:-1])
        return lambda names: quoted
    if text.startswith("{{") and text.endswith("}}"):
        return _or_null(compiler.hole(text[2:-2].strip()))
    try:
        return _or_null(compiler.path(text, optional=True))
    except ValueError:
        raise ValueError(
            f"cannot read {text!r}: a condition is a path, or compares a path with a literal (text in quotes), "
            "such as steps.a.output.ok == true"
        ) from None


def _or_null(get: Getter) -> Getter:
    def value(names: Names) -> Any:
        try:
            return get(names)
        except Missing:
            return None

    return value


def same(a: Any, b: Any) -> bool:
    """Equality of JSON values: a bool is no number, 1 equals 1.0."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def _ordered(order: Callable[[Any, Any], bool], a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    if (isinstance(a, str) and isinstance(b, str)) or (isinstance(a, int | float) and isinstance(b, int | float)):
        return order(a, b)
    return False
