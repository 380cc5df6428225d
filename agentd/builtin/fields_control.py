"""Fields of the steps that steer a run."""

from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.ports.fields import Condition, Duration, Fields, Literally, Templated, Value

Targets = str | list[str]


class Switch(Fields):
    on: Value = Field(description="the value that chooses")
    cases: Annotated[dict[str, Targets], Literally] = Field(description="value as text → the step, or steps, to go to")
    default: Annotated[Targets | None, Literally] = Field(None, description="where to go when no case matches")


class Sleep(Fields):
    duration: Templated[Duration] = Field(description="how long")


class Wait(Fields):
    on: Literal["resource", "condition", "signal", "run", "deadline"] = Field(description="what to wait for")
    name: str | None = Field(None, description="signal: its name")
    server: str | None = Field(None, description="resource: the MCP server")
    uri: str | None = Field(None, description="resource: the URI")
    run: str | None = Field(None, description="run: its id")
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
