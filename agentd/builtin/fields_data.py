"""Fields of the steps that compute."""

from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.ports.fields import Condition, Fields, PerItem, Schema, Templated, Value


class Assign(Fields):
    value: Any = Field(None, description="the output")
    writes: str | None = Field(None, description="the run variable it is written to")
    mode: Literal["overwrite", "append", "merge", "union"] | None = Field(
        None, description="how it joins the variable; else the variable's reducer"
    )


class Map(Fields):
    over: Value = Field(description="a list")
    as_: str | None = Field(
        None, alias="as", description="a further name for item", pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$"
    )
    expression: PerItem = Field(description="the new element; sees item and index")


class Filter(Fields):
    over: Value = Field(description="a list")
    as_: str | None = Field(
        None, alias="as", description="a further name for item", pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$"
    )
    expression: Condition = Field(description="what must hold of an element that stays")


class Reduce(Fields):
    over: Value = Field(description="a list")
    as_: str | None = Field(
        None, alias="as", description="a further name for item", pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$"
    )
    initial: Any = Field(None, description="what acc is at first")
    expression: PerItem = Field(description="the next acc; sees acc, item and index")


class Sort(Fields):
    over: Value = Field(description="a list")
    by: str | None = Field(None, description="a path inside an element")
    order: Literal["asc", "desc"] = Field("asc", description="which way")


class Dedupe(Fields):
    over: Value = Field(description="a list")
    by: str | None = Field(None, description="a path inside an element; the first of equals stays")


class Chunk(Fields):
    over: Value = Field(description="a list")
    size: Templated[Annotated[int, Field(ge=1)]] = Field(description="elements of a part")


class Template(Fields):
    template: Any = Field(description="what to render")


class Parse(Fields):
    text: Any = Field(description="what to read")
    format: Templated[Literal["json", "yaml", "csv", "lines"]] = Field("json", description="how it is written")


class Validate(Fields):
    value: Value = Field(description="what to check; it is the output")
    schema_: Schema = Field(alias="schema", description="what it must meet")
