"""The script of a rehearsal: what the world answers. The format is described in `docs/workflow-tools.md`."""

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from agentd.config.files import reason, text_of
from agentd.config.findings import dotted
from agentd.config.syntax import SyntaxFault, parse_any
from agentd.errors import ConfigError
from agentd.ports.fields import Duration


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Answer(_Part):
    """An output, or an error instead; given after `takes` seconds."""

    output: Any = None
    error: str | None = None
    code: str = "step"
    retry: bool = True
    takes: Duration = 0.0


def _listed(value: Any) -> Any:
    return value if isinstance(value, list) else [value]


Answers = Annotated[list[Answer], BeforeValidator(_listed), Field(min_length=1)]
"""One answer or several: the first question gets the first, the last answers all that follow."""


class Script(_Part):
    """`rounds` are those of the mock model; the other answers by tool, by request, by step and by signal."""

    inputs: dict[str, Any] | None = None
    payload: Any = None
    rounds: list[dict[str, Any]] = Field(default_factory=list)
    tools: dict[str, Answers] = Field(default_factory=dict)
    http: dict[str, Answers] = Field(default_factory=dict)
    steps: dict[str, Answers] = Field(default_factory=dict)
    signals: dict[str, Answers] = Field(default_factory=dict)
    memory: dict[str, Any] = Field(default_factory=dict)


def load(file: str) -> Script:
    """The script in `file`. Raises ConfigError with everything that is wrong with it."""
    try:
        value, marks = parse_any(text_of(Path(file)), file)
    except SyntaxFault as fault:
        raise ConfigError(findings=[("", f"{file}:{fault.line}:{fault.column}: {fault.message}")]) from None
    except (OSError, ValueError) as fault:
        raise ConfigError(findings=[("", f"{file}: {reason(fault)}")]) from None
    try:
        return Script.model_validate(value or {})
    except ValidationError as fault:
        found = []
        for error in fault.errors(include_url=False):
            at = error["loc"]
            line = next((f":{marks[at[:n]][0]}" for n in range(len(at), 0, -1) if at[:n] in marks), "")
            found.append((dotted(at), f"{file}{line}: {error['msg'].removeprefix('Value error, ')}"))
        raise ConfigError(findings=found) from None
