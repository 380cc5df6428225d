"""Fields of the kinds of step that are performed outside the engine."""

from typing import Annotated, Any, Literal

from pydantic import Field

from agentd.ports.fields import Duration, Fields, Literally, Schema, Templated

Count = Annotated[int, Field(ge=1)]
OutputSchema = Annotated[dict[str, Any] | bool | None, Literally]


class McpTool(Fields):
    server: str = Field(description="a declared server")
    tool: str = Field(description="the tool's own name there")
    args: Any = Field(default_factory=dict, description="its arguments")
    idempotency: bool | str = Field(True, description="false sends no key, a text is the key")


class McpResource(Fields):
    server: str = Field(description="a declared server")
    op: Literal["read", "list", "prompt", "complete"] = Field("read", description="what to ask")
    uri: str | None = Field(None, description="read: the resource")
    name: str | None = Field(None, description="prompt: its name")
    args: dict[str, Any] = Field(default_factory=dict, description="prompt: its arguments")
    ref: dict[str, Any] | None = Field(None, description="complete: what is completed")
    argument: dict[str, Any] | None = Field(None, description="complete: name and value so far")


class Tool(Fields):
    name: str = Field(description="a full tool name, internal or <server>.<tool>")
    args: Any = Field(default_factory=dict, description="its arguments")


class Http(Fields):
    url: str = Field(description="where to")
    method: Templated[Literal["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]] = Field(
        "GET", description="how"
    )
    headers: dict[str, Any] = Field(default_factory=dict, description="further headers")
    query: dict[str, Any] = Field(default_factory=dict, description="query parameters")
    json_: Any = Field(None, alias="json", description="a JSON body")
    body: Any = Field(None, description="a text body")
    expect: Any = Field(None, description="the status, statuses or class (2xx) that is a success; else any under 400")
    allow_private: bool = Field(False, description="may dial an address that is not public")
    idempotency: bool | str = Field(False, description="send the key as Idempotency-Key, or as the named header")


class MemoryKey(Fields):
    key: str = Field(description="the key")


class MemorySet(Fields):
    key: str = Field(description="the key")
    value: Any = Field(description="the value")
    ttl: Templated[Duration] | None = Field(None, description="how long it is kept")
    sensitive: bool = Field(False, description="kept out of prompts and reads")


class MemoryList(Fields):
    prefix: str = Field("", description="keys that begin so")


class ArtifactCreate(Fields):
    content: Any = Field(description="what to keep")
    name: str | None = Field(None, description="a name for people")
    media_type: str | None = Field(None, description="its media type")
    sensitive: bool = Field(False, description="kept out of prompts and reads")


class ArtifactRef(Fields):
    id: str = Field(description="the artifact")


class Emit(Fields):
    stream: str | None = Field(None, description="a declared stream")
    subject: str | None = Field(None, description="the event's subject")
    payload: Any = Field(None, description="what it says")
    key: str | None = Field(None, description="equal keys are one event; else the step's own")


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
    handles: Any = Field(description="handles of runs or subagents")
    min: Templated[Count] | None = Field(None, description="how many must be done; else all")
    partials: bool = Field(False, description="at the timeout, what there is")


class AgentLimits(Fields):
    steps: Templated[Count] | None = Field(None, description="model rounds")
    tokens: Templated[Count] | None = Field(None, description="tokens")
    deadline: Templated[Duration] | None = Field(None, description="wall-clock time")


class Agent(Fields):
    instruction: str | None = Field(None, description="what to do")
    prompt: str | None = Field(None, description="the first message; else the instruction is")
    system: str | None = Field(None, description="instead of the persona")
    tools: list[str] | None = Field(None, description="globs of tools it may call")
    servers: list[str] | None = Field(None, description="MCP servers it may use")
    limits: AgentLimits = Field(default_factory=AgentLimits, description="bounds of the turn")
    conversation: str | None = Field(None, description="the durable context to continue")
    output_schema: OutputSchema = Field(None, description="a JSON Schema for the answer")
    output_contract: str | None = Field(None, description="what the answer must be, in words")
    model: str | None = Field(None, description="instead of the configured model")


class Subagent(Agent):
    mode: Literal["sync", "async", "detached", "warm"] = Field("sync", description="how it is waited for")


class Think(Fields):
    prompt: str = Field(description="what to think about")
    system: str | None = Field(None, description="instead of the persona")
    output_schema: OutputSchema = Field(None, description="a JSON Schema for the answer")
    check: str | None = Field(None, description="what the answer must satisfy, asked of the model")
    retries: Templated[Annotated[int, Field(ge=0, le=10)]] = Field(1, description="further tries when it does not")
    model: str | None = Field(None, description="instead of the configured model")


class Classify(Fields):
    input: Any = Field(description="what to classify")
    classes: Any = Field(description="names, or names and descriptions")
    instruction: str | None = Field(None, description="how")


class Extract(Fields):
    input: Any = Field(description="where to look")
    schema_: Schema = Field(alias="schema", description="what to find")
    instruction: str | None = Field(None, description="how")


class Summarize(Fields):
    input: Any = Field(description="what to summarize")
    max_words: Templated[Count] | None = Field(None, description="how long at most")
    instruction: str | None = Field(None, description="how")


class Judge(Fields):
    input: Any = Field(description="what to judge")
    criteria: Any = Field(description="by what")
    threshold: Templated[float] | None = Field(None, description="the score that passes")


class Route(Fields):
    input: Any = Field(description="what to route")
    routes: Any = Field(description="names and descriptions of where it may go")
    instruction: str | None = Field(None, description="how")


class Human(Fields):
    question: str = Field(description="what to ask")
    schema_: Schema | None = Field(None, alias="schema", description="what the answer must meet")
    to: str | None = Field(None, description="whom to ask")
