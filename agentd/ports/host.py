"""What an opened object may use of the instance it lives in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Clock(Protocol):
    """Time, so that tests can hold it still. Seconds throughout."""

    def now(self) -> float:
        """Seconds since the epoch, UTC."""

    def monotonic(self) -> float:
        """Seconds of a clock that never steps."""

    async def sleep(self, seconds: float) -> None:
        """Wait; a negative value is zero."""


class Log(Protocol):
    """Telemetry: `event` is a word of the closed vocabulary (:mod:`agentd.telemetry.vocabulary`)."""

    def __call__(self, event: str, /, *, level: str = "info", msg: str = "", **fields: Any) -> None:
        """Write one event; never blocks, never raises for a field's value."""


class Secrets(Protocol):
    """Resolves references at the moment of use."""

    def resolve(self, text: str) -> str:
        """`text` with each ``{{secret:NAME}}`` and ``{{secret-file:PATH}}`` replaced.

        Raises :class:`agentd.errors.SecretMissing`. The result is never kept.
        """


class Host(Protocol):
    """The services of the instance, handed to whatever a plugin opens."""

    instance: str
    clock: Clock
    log: Log
    secrets: Secrets
    environ: Mapping[str, str]
