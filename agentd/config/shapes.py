"""What a value of the schema looks like, and turning what people write into it.

The same value has the same meaning from a file, a variable and a flag: text is converted here, by the shape, before
pydantic checks the bounds. What would silently change (a number for a string, true for an integer) is refused.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator

from agentd.config.findings import nearest
from agentd.config.syntax import SyntaxFault, Where, parse_any, parse_yaml

Kind = Literal["string", "integer", "number", "boolean", "enum", "parsed", "list", "map", "object", "either", "any"]
Report = Callable[[Where, str], None]


@dataclass(frozen=True, slots=True)
class Shape:
    """`item` is the element of a list or map, `model` the class of an object; `either` is a string or that object.

    `parsed` values are read by a validator of their own (durations, sizes), `word` names them.
    """

    kind: Kind
    word: str
    item: Shape | None = None
    model: type[BaseModel] | None = None
    choices: tuple[Any, ...] = ()

    @property
    def plain(self) -> bool:
        """No list, map or object."""
        return self.kind not in ("list", "map", "object", "either", "any")


_PLAIN: dict[Any, Shape] = {
    str: Shape("string", "a string"),
    int: Shape("integer", "an integer"),
    float: Shape("number", "a number"),
    bool: Shape("boolean", "true or false"),
}


def shape_of(annotation: Any, metadata: tuple[Any, ...] = ()) -> Shape:
    """The shape of a field's annotation."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return shape_of(inner, (*metadata, *more))
    for item in metadata:
        if isinstance(item, BeforeValidator):
            word = getattr(item.func, "__name__", "value").removeprefix("parse_")
            return Shape("parsed", f"a {word}")
    if isinstance(annotation, type) and annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _of_union([shape_of(a) for a in args if a is not type(None)])
    if origin is Literal:
        return Shape("enum", "one of " + ", ".join(map(str, args)), choices=args)
    if origin in (list, tuple, set, frozenset):
        item = shape_of(args[0]) if args else Shape("any", "a value")
        return Shape("list", f"a list of {item.word.split(' ', 1)[-1]}s" if item.plain else "a list", item=item)
    if origin is dict or annotation is dict:
        return Shape("map", "an object", item=shape_of(args[1]) if args else Shape("any", "a value"))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Shape("object", "an object", model=annotation)
    return Shape("any", "a value")


def _of_union(members: list[Shape]) -> Shape:
    if len(members) == 1:
        return members[0]
    models = [m.model for m in members if m.kind == "object"]
    if len(members) == 2 and len(models) == 1 and any(m.kind == "string" for m in members):
        return Shape("either", "a string or an object", model=models[0])
    return Shape("any", "a value")


@lru_cache(maxsize=512)
def fields_of(model: type[BaseModel]) -> Mapping[str, Shape]:
    """The shapes of a model's fields, by the name that is written."""
    if not model.__pydantic_fields_complete__:
        model.model_rebuild()
    return {f.alias or name: shape_of(f.annotation, tuple(f.metadata)) for name, f in model.model_fields.items()}


def from_text(text: str, shape: Shape) -> Any:
    """What a variable or a flag says, still to be coerced. Raises ValueError with what was expected."""
    start = text.lstrip()[:1]
    if shape.kind in ("map", "object"):
        value = _flow(text, shape.word + " such as {k: v} or JSON")
        if not isinstance(value, dict):
            raise ValueError("expected an object such as {k: v} or JSON")
        return value
    if shape.kind == "list" and (start == "[" or (start == "{" and shape.item and not shape.item.plain)):
        return _flow(text if start == "[" else f"[{text}]", "a list such as [a, b] or a, b")
    return text


def _flow(text: str, expected: str) -> Any:
    try:
        return parse_any(text).value
    except SyntaxFault:
        try:
            return parse_yaml(text).value
        except SyntaxFault as fault:
            raise ValueError(f"expected {expected} ({fault.message})") from None


def coerce(value: Any, shape: Shape, at: Where, report: Report) -> Any:
    """`value` as `shape` has it; whatever does not fit is reported and left as it is."""
    if value is None:
        return None
    match shape.kind:
        case "list":
            return _list(value, shape, at, report)
        case "map":
            if isinstance(value, dict):
                item = shape.item or Shape("any", "a value")
                return {key: coerce(below, item, (*at, key), report) for key, below in value.items()}
        case "either" if isinstance(value, str):
            return value
        case "object" | "either":
            if isinstance(value, dict) and shape.model is not None:
                return _object(value, shape.model, at, report)
        case "any" | "parsed":
            return value
        case _:
            return _plain(value, shape, at, report)
    report(at, f"expected {shape.word}, got {shown(value)}")
    return value


def _list(value: Any, shape: Shape, at: Where, report: Report) -> Any:
    item = shape.item or Shape("any", "a value")
    if isinstance(value, str) and item.plain:
        value = [part.strip() for part in value.split(",") if part.strip()]
    elif not isinstance(value, list | dict) and item.plain:
        value = [value]
    if not isinstance(value, list):
        report(at, f"expected {shape.word}, got {shown(value)}")
        return value
    return [coerce(below, item, (*at, index), report) for index, below in enumerate(value)]


def _object(value: dict[str, Any], model: type[BaseModel], at: Where, report: Report) -> dict[str, Any]:
    known, kept = fields_of(model), {}
    for key, below in value.items():
        if key in known:
            if below is not None:
                kept[key] = coerce(below, known[key], (*at, key), report)
        elif model.model_config.get("extra") == "allow":
            kept[key] = below
        else:
            report((*at, key), f"unknown key{nearest(key, known)}; allowed here: {', '.join(sorted(known))}")
    return kept


def _plain(value: Any, shape: Shape, at: Where, report: Report) -> Any:
    made: Any = _NO
    match shape.kind:
        case "string" if isinstance(value, str):
            made = value
        case "string" if isinstance(value, int | float):
            report(at, f"expected a string, got {shown(value)}: write it in quotes")
            return value
        case "enum" if value in shape.choices and type(value) in {type(c) for c in shape.choices}:
            made = value
        case "enum" if isinstance(value, int | float) and str(value) in shape.choices:
            report(at, f"expected {shape.word}, got the number {value}: write it in quotes")
            return value
        case "boolean":
            made = {"true": True, "false": False, "1": True, "0": False}.get(str(value).strip().lower(), _NO)
        case "integer":
            made = _integer(value)
        case "number":
            made = _number(value)
    if made is _NO:
        report(at, f"expected {shape.word}, got {shown(value)}")
        return value
    return made


_NO = object()


def _integer(value: Any) -> Any:
    if isinstance(value, bool):
        return _NO
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and len(value) < 40:
        digits = value.strip().removeprefix("+")
        if digits.removeprefix("-").isdecimal() and digits.isascii():
            return int(digits)
    return value if isinstance(value, int) else _NO


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        return _NO
    if isinstance(value, str):
        try:
            return float(value) if value.strip().lower().lstrip("+-")[:1] in "0123456789." else _NO
        except ValueError:
            return _NO
    return value if isinstance(value, int | float) else _NO


def shown(value: Any) -> str:
    """A wrong value in a message: short, and no object or list is spelled out."""
    if isinstance(value, bool) or value is None:
        return str(value).lower().replace("none", "null")
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = str(value) if len(str(value)) <= 60 else str(value)[:57] + "…"
    return f'"{text}"' if isinstance(value, str) else f"the number {text}"
