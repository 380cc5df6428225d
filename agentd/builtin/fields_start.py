"""Fields of the kinds of start node that the kernel's own loop drives."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from agentd.ports.fields import Condition, Duration, Fields

Filter = Annotated[Condition | None, Field(description="what must hold of the payload")]


class Once(Fields):
    policy: Literal["ensure", "always"] = Field("ensure", description="ensure: ever once; always: at each boot")


class Manual(Fields):
    pass


class Growing(Fields):
    initial: Duration = Field(1.0, description="after the first failure")
    max: Duration = Field(300.0, description="the longest")
    factor: float = Field(2.0, ge=1, description="from one failure to the next")


class Loop(Fields):
    interval: Duration | None = Field(None, description="from one start to the next, at least")
    delay: Duration | None = Field(None, description="from an end to the next start")
    until: Condition | None = Field(None, description="stop when this holds of the finished run")
    max_iterations: int | None = Field(None, ge=1, description="stop after so many")
    backoff: Growing | None = Field(None, description="after failed runs")


class Schedule(Fields):
    """The rules that plugins add (`cron`) are further fields; the compiler parses them."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, hide_input_in_errors=True)
    every: Duration | None = Field(None, gt=0, description="a period of elapsed time")
    at: str | None = Field(None, description="an instant (RFC 3339), or a time of day (HH:MM)")
    tz: str | None = Field(None, description="an IANA time zone instead of UTC")
    jitter: Duration | None = Field(None, description="spread by up to this much")
    catch_up: Literal["none", "one", "all"] = Field("none", description="what becomes of missed ticks")


class Signal(Fields):
    name: str = Field(description="the signal's name", min_length=1)
    filter: Filter = None
    deliver: Literal["run", "wait"] = Field("run", description="start a run, or only wake waiting ones")


class Event(Fields):
    on: Literal["workflow.finished", "workflow.failed", "restore.done", "human.timeout"] = Field(
        description="what happened"
    )
    filter: Filter = None


class Stream(Fields):
    stream: str = Field(description="a declared stream")
    subject: str | None = Field(None, description="exact, or prefix.*")
    filter: Filter = None
    from_: Literal["new", "earliest"] = Field("new", alias="from", description="where to begin")


class Correlate(Fields):
    stream: str = Field(description="a declared stream")
    on: list[str] = Field(min_length=2, description="subject patterns that must all arrive")
    window: Duration = Field(gt=0, description="within this time")
    by: str | None = Field(None, description="a path inside the event: what belongs together")
    filter: Filter = None
    on_incomplete: Literal["drop", "fire"] = Field("drop", description="when the window ends without all")
    max_pending: int = Field(1000, ge=1, description="incomplete sets kept")
