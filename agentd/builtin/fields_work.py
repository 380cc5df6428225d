"""Fields of the steps that have to do with other runs, and with people."""

from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.ports.fields import Fields, Schema, Templated

Count = Annotated[int, Field(ge=1)]


class WorkflowStep(Fields):
    name: str = Field(description="the workflow")
    inputs: Any = Field(default_factory=dict, description="its inputs")
    mode: Literal["sync", "async", "detached"] = Field("sync", description="wait for it, get a handle, or let it go")
    cascade: bool = Field(True, description="a cancelled run cancels it too")


class WorkflowSignal(Fields):
    name: str = Field(description="the signal")
    run: str | None = Field(None, description="only to this run")
    payload: Any = Field(None, description="what it carries")


class RunHandle(Fields):
    run: str = Field(description="the run's id")


class CancelRun(RunHandle):
    reason: str | None = Field(None, description="why")


class Join(Fields):
    handles: Any = Field(description="handles of runs")
    min: Templated[Count] | None = Field(None, description="how many must be done; else all")
    partials: bool = Field(False, description="at the timeout, what there is")


class Human(Fields):
    question: str = Field(description="what to ask")
    schema_: Schema | None = Field(None, alias="schema", description="what the answer must meet")
    to: str | None = Field(None, description="whom to ask")
