"""Fields of the steps that read and write durable state."""

from typing import Any

from pydantic import Field

from agentd.ports.fields import Duration, Fields, Templated


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
