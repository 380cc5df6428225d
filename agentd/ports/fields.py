"""Types for the fields of start and step nodes: which of them are templates, conditions, schemas or nested steps.

A node's fields are a pydantic model that derives from :class:`Fields`. Strings anywhere in a field may hold
``{{path}}`` templates; a field of another type that may be one too is declared ``Templated[T]`` and is checked against
``T`` at load when it is written out, and at run time when it is rendered. The other types say how the engine reads a
field that is no plain template. A field whose name is a Python word takes an alias (``as_: str = Field(alias="as")``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from agentd.quantities import parse_duration, parse_size

T = TypeVar("T")


class Fields(BaseModel):
    """Base of every node's fields: unknown ones are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)


def is_template(value: object) -> bool:
    """Whether `value` is a string that is rendered at run time."""
    return isinstance(value, str) and ("{{" in value or value.startswith("CEL:"))


class _OrTemplate:
    """Lets a template through, holds everything else against the declared type."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        kept = tuple(t for t in get_args(source) if t is not str)
        inner = handler.generate_schema(Union[kept])  # noqa: UP007  (the members are known at run time only)
        return core_schema.no_info_wrap_validator_function(_pass_templates, inner)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": "string", "description": "a template"}]}


def _pass_templates(value: Any, check: Callable[[Any], Any]) -> Any:
    return value if is_template(value) else check(value)


Templated = Annotated[T | str, _OrTemplate()]
"""A `T`, or a template that renders to one."""

Duration = Annotated[
    float, BeforeValidator(parse_duration), WithJsonSchema({"type": ["number", "string"], "format": "duration"})
]
"""Seconds; written ``250ms``, ``5s``, ``1h30m`` or as a number."""
Size = Annotated[int, BeforeValidator(parse_size), WithJsonSchema({"type": ["integer", "string"], "format": "size"})]
"""Bytes; written ``64KB`` or as a number."""


def _read_as(how: str) -> Any:
    return Field(json_schema_extra={"read_as": how})


Value = Annotated[Any, _read_as("value")]
"""Any JSON value with templates in it; a bare path (``steps.a.output``) is read as that path."""
Condition = Annotated[bool | str, _read_as("condition")]
"""A comparison, a path, or an expression of a plugin."""
PerItem = Annotated[Any, _read_as("item")]
"""A template that the kind renders once per element, with `item` and `index`."""
Literally = _read_as("literal")
"""Mark, as in ``Annotated[dict[str, str], Literally]``: kept as written, nothing is rendered in it."""
Schema = Annotated[dict[str, Any] | bool, _read_as("schema")]
"""A JSON Schema, checked at load."""
Steps = Annotated[dict[str, Any], _read_as("steps")]
"""Nested steps: ``{id: step}``."""
Branches = Annotated[dict[str, dict[str, Any]], _read_as("branches")]
"""Named bodies of nested steps: ``{branch: {id: step}}``."""


def read_as(model: type[BaseModel]) -> dict[str, str]:
    """How each field of `model` (by its written name) is to be read; absent where it is a plain template."""
    found: dict[str, str] = {}
    for name, info in model.model_fields.items():
        how = _how(info) or _how_of_type(info.annotation)
        if how is not None:
            found[info.alias or name] = how
    return found


def _how(info: object) -> str | None:
    extra = getattr(info, "json_schema_extra", None)
    return str(extra["read_as"]) if isinstance(extra, dict) and "read_as" in extra else None


def _how_of_type(annotation: Any) -> str | None:
    """The mark may stand on a member of a union (``Condition | None``)."""
    marks = getattr(annotation, "__metadata__", ()) if get_origin(annotation) is Annotated else ()
    found = next((how for mark in marks if (how := _how(mark))), None)
    if found is None and (get_origin(annotation) is Annotated or len(get_args(annotation)) > 1):
        members = get_args(annotation)[:1] if get_origin(annotation) is Annotated else get_args(annotation)
        found = next((how for member in members if (how := _how_of_type(member))), None)
    return found


def is_text(annotation: Any) -> bool:
    """Whether a field of this type is text: a template in it interpolates even when it stands alone."""
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    return annotation is str or (bool(get_args(annotation)) and set(get_args(annotation)) == {str, type(None)})
