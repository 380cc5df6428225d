"""Fields of the steps that hold steps."""

from typing import Annotated

from pydantic import Field

from agentd.ports.fields import Branches, Condition, Fields, Steps, Templated, Value

MAX_ITERATIONS = 10_000


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
