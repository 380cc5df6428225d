"""Fields of the kinds of step that the engine evaluates itself."""

from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.ports.fields import (
    Branches,
    Condition,
    Duration,
    Fields,
    Literally,
    PerItem,
    Schema,
    Steps,
    Templated,
    Value,
)

MAX_ITERATIONS = 10_000
Targets = str | list[str]


class Switch(Fields):
    on: Value = Field(description="the value that chooses")
    cases: Annotated[dict[str, Targets], Literally] = Field(description="value as text → the step, or steps, to go to")
    default: Annotated[Targets | None, Literally] = Field(None, description="where to go when no case matches")


class Parallel(Fields):
    branches: Branches = Field(description="named bodies that run side by side", min_length=1)


class Batching(Fields):
    size: Templated[Annotated[int, Field(ge=1)]] | None = Field(
        None, description="elements of a wave; the next waits for it"
    )
    parallel: Templated[Annotated[int, Field(ge=1, le=1000)]] = Field(16, description="elements at once")
    rate: str | None = Field(
        None, description="elements begun per time, such as 20/1s", pattern=r"^\d+/\d*(\.\d+)?(ms|s|m|h)$"
    )


class Foreach(Fields):
    over: Value = Field(description="a list")
    body: Steps = Field(description="the steps for each element; sees item and index")
    as_: str | None = Field(
        None, alias="as", description="a further name for item", pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$"
    )
    batch: Batching = Field(default_factory=Batching, description="size, parallel and rate")
    collect: bool = Field(True, description="whether the results become the output")


class Batch(Fields):
    over: Value = Field(description="a list")
    body: Steps = Field(description="the steps for each batch; sees batch and index")
    by: str | None = Field(None, description="a path inside an element: equal values go together")
    size: Templated[Annotated[int, Field(ge=1)]] = Field(10, description="elements of one batch at most")
    parallel: Templated[Annotated[int, Field(ge=1, le=1000)]] = Field(16, description="batches at once")


class Iterate(Fields):
    body: Steps = Field(description="the steps of one iteration; sees iteration, from 0")
    while_: Condition | None = Field(None, alias="while", description="checked before each iteration")
    until: Condition | None = Field(None, description="checked after each iteration")
    max_iterations: Templated[Annotated[int, Field(ge=0, le=MAX_ITERATIONS)]] | None = Field(
        None, description="ends after so many; without it 10000 is the bound, and reaching that fails"
    )
    collect: bool = Field(False, description="all results, not the last one")


class Race(Fields):
    branches: Branches = Field(description="named bodies; the first to succeed wins", min_length=1)
    min_success: int = Field(1, ge=1, description="how many must succeed")


class Subgraph(Fields):
    body: Steps = Field(description="the nested steps")


class Sleep(Fields):
    duration: Templated[Duration] = Field(description="how long")


class Wait(Fields):
    on: Literal["resource", "condition", "signal", "run", "subagent", "message", "webhook", "deadline"] = Field(
        description="what to wait for"
    )
    name: str | None = Field(None, description="signal: its name")
    server: str | None = Field(None, description="resource: the MCP server")
    uri: str | None = Field(None, description="resource: the URI")
    run: str | None = Field(None, description="run: its id")
    handle: str | None = Field(None, description="subagent: its handle")
    path: str | None = Field(None, description="webhook: the path")
    context: str | None = Field(None, description="message: the conversation")
    filter: Condition | None = Field(None, description="what must hold of the payload")
    condition: Condition | None = Field(None, description="condition: what must become true")
    interval: Templated[Duration] | None = Field(None, description="condition: how often it is looked at")
    until: Any = Field(None, description="deadline: the instant (RFC 3339 or epoch seconds)")


class Assert(Fields):
    condition: Condition = Field(description="what must hold")
    message: str | None = Field(None, description="what to say when it does not")


class Fail(Fields):
    message: str = Field("the workflow failed on purpose", description="why")
    code: str = Field("failed", description="the word for it")


class Noop(Fields):
    pass


class Finish(Fields):
    status: Templated[Literal["completed", "failed", "refused", "cancelled", "partial"]] = Field(
        "completed", description="the status of the run"
    )
    output: Any = Field(None, description="the result; without it that of the only dependency")
    reason: str | None = Field(None, description="why")


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
