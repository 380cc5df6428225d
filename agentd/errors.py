"""Every deliberate error, with its exit code and whether retrying helps.

The exit codes are a public interface (`docs/exit-codes.md`): schedulers branch on them. One place maps an error
to a code, :func:`exit_code`. Across the store and the child frames an error is data, ``{code, message, fields}``,
made by :meth:`AgentdError.to_data`; no stored record names importable code.
"""

from __future__ import annotations

from typing import Any, ClassVar

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_CONFIG = 2
EXIT_PARTIAL = 3
EXIT_INTELLIGENCE = 4
EXIT_REFUSED = 5
EXIT_SERVER = 6
EXIT_BUDGET = 7
EXIT_DEADLINE = 124


class AgentdError(Exception):
    """Base of every deliberate error: fields first, the message derived from them.

    A subclass sets ``template`` and is raised with keyword fields; a plain message may be given instead.
    ``code`` is the stable word that crosses stores and frames.
    """

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = EXIT_FAILED
    retryable: ClassVar[bool] = False
    template: ClassVar[str] = ""

    def __init__(self, message: str = "", /, **fields: Any) -> None:
        self.fields = fields
        self.message = message or self.template.format_map(_Known(fields))
        super().__init__(self.message)

    def to_data(self) -> dict[str, Any]:
        """The error as data: ``{code, message, fields}``, JSON-compatible."""
        plain = {k: v if isinstance(v, str | int | float | bool | None) else str(v) for k, v in self.fields.items()}
        return {"code": self.code, "message": self.message, "fields": plain}


class _Known(dict[str, Any]):
    """A template never fails for want of a field."""

    def __missing__(self, key: str) -> str:
        return "?"


class UsageError(AgentdError):
    """The command line cannot be understood."""

    code = "usage"
    exit_code = EXIT_CONFIG


class ConfigError(AgentdError):
    """The configuration is wrong; `findings` holds every reason, as ``(path, message)`` pairs."""

    code = "config"
    exit_code = EXIT_CONFIG

    def __init__(self, message: str = "", /, *, findings: list[tuple[str, str]] | None = None, **fields: Any) -> None:
        self.findings = findings if findings is not None else [("", message)]
        super().__init__(message or "; ".join(f"{p}: {m}" if p else m for p, m in self.findings), **fields)


class PluginError(ConfigError):
    """A plugin that the configuration needs is missing, broken or contradicts another."""

    code = "plugin"


class SecretMissing(ConfigError):
    """A secret reference resolves to nothing."""

    code = "secret_missing"


class IntelligenceUnavailable(AgentdError):
    """Every model endpoint failed, or the only answer was a refusal to serve."""

    code = "intelligence"
    exit_code = EXIT_INTELLIGENCE
    retryable = True


class TaskRefused(AgentdError):
    """agentd ran correctly, the task cannot be done."""

    code = "refused"
    exit_code = EXIT_REFUSED


class ServerUnavailable(AgentdError):
    """An MCP server that is required cannot be reached or does not speak MCP."""

    code = "server"
    exit_code = EXIT_SERVER
    retryable = True


class BudgetExceeded(AgentdError):
    """Steps, tokens, tree or the time of one step ran out."""

    code = "budget"
    exit_code = EXIT_BUDGET


class DeadlineExceeded(AgentdError):
    """The wall-clock deadline of a run passed."""

    code = "deadline"
    exit_code = EXIT_DEADLINE


class StepFailed(AgentdError):
    """A step ended as failed; whether another attempt helps is an instance matter."""

    code = "step"

    def __init__(self, message: str = "", /, *, retry: bool = True, **fields: Any) -> None:
        super().__init__(message, **fields)
        self.retry = retry


class ChildDied(AgentdError):
    """A child process ended without a result."""

    code = "child"
    retryable = True


class StoreError(AgentdError):
    """The store could not do what was asked; an I/O error may be retried."""

    code = "store"
    retryable = True


class StoreFull(StoreError):
    """The disk of the store is full."""

    code = "store_full"


class StoreCorrupt(StoreError):
    """The store was found damaged, and is left as it is."""

    code = "store_corrupt"
    retryable = False


class StoreBusy(StoreError):
    """Another process holds the store."""

    code = "store_busy"
    retryable = False


class Conflict(StoreError):
    """A put met a sequence that is already taken: somebody else writes under this identity. Never retried."""

    code = "conflict"
    retryable = False
    template = "conflict on {key}: the store has sequence {latest}"


def exit_code(error: BaseException) -> int:
    """The process exit code for `error`; anything undeliberate is 1."""
    return error.exit_code if isinstance(error, AgentdError) else EXIT_FAILED
