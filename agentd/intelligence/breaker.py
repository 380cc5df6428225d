"""One endpoint's circuit breaker: pure, the time is given (monotonic seconds)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

THRESHOLD = 3
COOLDOWN = 5.0
MAX_COOLDOWN = 60.0


class Breaker:
    """Open after three failures in a row; after a cooldown (5 s, doubling to 60 s) one probe is let through."""

    def __init__(self, known: Sequence[Any] | None = None) -> None:
        """`known` is the :attr:`state` of a breaker of the same endpoint, perhaps of another process here."""
        failures, cooldown, opens_at = known if known is not None else (0, COOLDOWN, None)
        self._failures: int = failures
        self._cooldown: float = cooldown
        self._opens_at: float | None = opens_at
        self._probing = False

    @property
    def state(self) -> list[Any]:
        """What another breaker may begin with: failures in a row, the cooldown, and the instant of the next probe."""
        return [self._failures, self._cooldown, self._opens_at]

    @property
    def healthy(self) -> bool:
        """Whether calls pass freely."""
        return self._opens_at is None

    def admits(self, now: float) -> bool:
        """Whether a call may be made now; does not change anything."""
        return self._opens_at is None or (now >= self._opens_at and not self._probing)

    def begin(self) -> bool:
        """Announce a call that was admitted; True when it is the probe, which gets one attempt only."""
        self._probing = self._opens_at is not None
        return self._probing

    def succeeded(self) -> None:
        """The endpoint answered: closed again, as if nothing had been."""
        self._failures, self._cooldown, self._opens_at, self._probing = 0, COOLDOWN, None, False

    def failed(self, now: float) -> None:
        """The endpoint failed once more."""
        self._failures += 1
        if self._probing:
            self._cooldown = min(self._cooldown * 2, MAX_COOLDOWN)
        if self._probing or (self._opens_at is None and self._failures >= THRESHOLD):
            self._opens_at = now + self._cooldown
        self._probing = False

    def released(self) -> None:
        """A call ended without telling anything of the endpoint: cancelled, or refused for its content."""
        self._probing = False

    def wait(self, now: float) -> float:
        """Seconds until a probe may be made; 0 when calls pass."""
        return 0.0 if self._opens_at is None else max(0.0, self._opens_at - now)
