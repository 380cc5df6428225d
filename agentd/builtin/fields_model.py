"""Fields of the steps that ask the model."""

from typing import Annotated, Any

from pydantic import Field

from agentd.ports.fields import Duration, Fields, Literally, Schema, Templated

Count = Annotated[int, Field(ge=1)]
OutputSchema = Annotated[dict[str, Any] | bool | None, Literally]


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
