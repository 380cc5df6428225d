"""The written form of a workflow: its own keys, and the fields that every step may carry."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema

from agentd.ports.fields import Duration

NAME = r"^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$"
Named = Annotated[str, Field(pattern=NAME)]


_ONE_OR_MORE: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


class _OrDuration:
    """In the JSON Schema: the written form of a backoff may be its first delay alone."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(schema), {"type": ["number", "string"], "format": "duration"}]}


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class Written(BaseModel):
    """Unknown keys are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)


class Schemed(Written):
    schema_: dict[str, Any] | bool = Field(True, alias="schema", description="a JSON Schema")


class Concurrency(Written):
    max_runs: int = Field(4, ge=1, description="runs of this workflow at once")
    on_overflow: Literal["queue", "drop", "replace"] = Field("queue", description="what becomes of a start above it")


class WorkflowLimits(Written):
    steps: int | None = Field(None, ge=1, description="effect steps and model rounds of a run")
    tokens: int | None = Field(None, ge=1, description="tokens of a run")
    deadline: Duration | None = Field(None, description="wall-clock time of a run")


class Variable(Written):
    """A declared run variable."""

    schema_: dict[str, Any] | bool = Field(True, alias="schema", description="what its value must meet")
    reducer: Literal["overwrite", "append", "merge", "union"] = Field("overwrite", description="how a write joins it")
    initial: Any = Field(None, description="its value at the start; else null, [] or {} by reducer")


class Unload(Written):
    policy: Literal["drain", "cancel", "detach"] = Field("drain", description="what becomes of live runs")
    timeout: Duration | None = Field(None, description="how long a drain may take")


class Workflow(Written):
    name: Named = Field(description="how commands, logs and other workflows call it")
    description: str | None = Field(None, description="what it is for")
    armed: bool = Field(True, description="false: its start nodes stay quiet, it runs on command only")
    inputs: Schemed = Field(default_factory=Schemed, description="`schema` that a run's inputs must meet")
    outputs: Schemed = Field(default_factory=Schemed, description="`schema` that the finish output must meet")
    concurrency: Concurrency = Field(default_factory=Concurrency, description="how many runs at once")
    limits: WorkflowLimits = Field(default_factory=WorkflowLimits, description="bounds of a run")
    priority: Literal["low", "normal", "high"] = Field("normal", description="low sheds first under pressure")
    state: dict[Named, Variable] = Field(
        default_factory=dict, description="declared run variables, read as vars.<name>"
    )
    unload: Unload = Field(default_factory=Unload, description="when a reload removes it")
    steps: dict[str, Any] = Field(description="the graph: `{id: step}`")


class Backoff(Written):
    initial: Duration = Field(1.0, description="before the second attempt")
    max: Duration = Field(60.0, description="the longest")
    factor: float = Field(2.0, ge=1, le=100, description="from one attempt to the next")


def _backoff(value: Any) -> Any:
    return value if isinstance(value, dict | Backoff) else {"initial": value}


class Retry(Written):
    max: int = Field(0, ge=0, le=1000, description="further attempts after the first")
    backoff: Annotated[Backoff, BeforeValidator(_backoff), _OrDuration()] = Field(
        default_factory=Backoff, description="exponential and jittered; a duration, or initial, max and factor"
    )

    def delay(self, failures: int, jitter: float) -> float:
        """Seconds before the next attempt after so many failures: between half and all of the backoff."""
        full = min(self.backoff.max, self.backoff.initial * self.backoff.factor ** min(failures - 1, 64))
        return full * (0.5 + jitter / 2)


class CacheRule(Written):
    key: str = Field(description="a template; equal keys share a result")
    ttl: Duration | None = Field(None, description="how long it is good")


class Budget(Written):
    tokens: int = Field(ge=1, description="in and out together")


def _budget(value: Any) -> Any:
    return {"tokens": value} if isinstance(value, int | str) and not isinstance(value, bool) else value


class Common(Written):
    """What every step may carry beside its kind's own fields."""

    kind: str = Field(description="the kind of the step")
    depends_on: Annotated[list[str], BeforeValidator(_listed), WithJsonSchema(_ONE_OR_MORE)] = Field(
        default_factory=list, description="steps that come before"
    )
    when: bool | str | None = Field(None, description="a guard: when false the step is skipped")
    retry: Retry = Field(default_factory=Retry, description="further attempts")
    timeout: Duration | None = Field(None, description="of one attempt")
    on_error: Annotated[str, Field(pattern=r"^(fail|continue|goto:[a-zA-Z_][a-zA-Z0-9_-]{0,63})$")] = Field(
        "fail", description="fail the run, continue without an output, or goto:<id>"
    )
    on_replay: Literal["retry", "skip", "fail"] = Field("retry", description="when a crash interrupted it")
    output_schema: dict[str, Any] | bool | None = Field(None, description="a JSON Schema the output must meet")
    cache: CacheRule | None = Field(None, description="reuse an earlier result")
    budget: Annotated[Budget | None, BeforeValidator(_budget)] = Field(
        None, description="tokens one attempt may use, of a kind that asks a model; a number, or {tokens}"
    )
    description: str | None = Field(None, description="what it is for")


class StartCommon(Written):
    """What every start node may carry beside its kind's own fields."""

    kind: str = Field(description="the kind of the start node")
    inputs: dict[str, Any] | None = Field(None, description="the run's inputs, rendered over payload and env")
    description: str | None = Field(None, description="what it is for")


COMMON = frozenset(Common.model_fields)
START_COMMON = frozenset(StartCommon.model_fields)
