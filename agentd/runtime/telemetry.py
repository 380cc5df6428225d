"""Opens telemetry as the configuration wants it, and keeps every secret that is resolved out of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentd.config.secrets import REFERENCE
from agentd.ports.host import Secrets
from agentd.security.redaction import Redactor
from agentd.telemetry import pretty
from agentd.telemetry.emitter import Telemetry
from agentd.telemetry.trace import TraceContext
from agentd.telemetry.writer import LineWriter

if TYPE_CHECKING:
    from agentd.config.load import Loaded


class Watched:
    """Resolves references and has telemetry hide what they resolved to; see :class:`agentd.ports.host.Secrets`."""

    def __init__(self, secrets: Secrets, redactor: Redactor) -> None:
        self._secrets, self._redactor = secrets, redactor

    def resolve(self, text: str) -> str:
        """`text` with each reference replaced. Raises :class:`agentd.errors.SecretMissing`."""
        for found in REFERENCE.finditer(text):
            self._redactor.register(self._secrets.resolve(found.group(0)))
        return self._secrets.resolve(text)


def open_telemetry(loaded: Loaded, run_id: str) -> tuple[Telemetry, LineWriter, Watched]:
    """The supervisor's logger, the writer behind it, and the secrets to use from now on."""
    assert loaded.document is not None
    options = loaded.document.observability
    redactor = Redactor(v for k, v in loaded.environ.items() if "INTELLIGENCE_TOKEN" in k and not k.endswith("_FILE"))
    writer = LineWriter()
    view = None
    if pretty.wanted(options.log_format, writer.fd):
        view = pretty.for_terminal(writer.fd, loaded.environ, verbose=options.log_level == "debug")
        writer.idle = view.tick
    trace = TraceContext.parse(options.traceparent) if options.traceparent else None
    log = Telemetry(
        writer, redactor=redactor, level=options.log_level, content=options.log_content, view=view, run_id=run_id,
        trace=trace.child() if trace is not None else TraceContext.begin(),
    )  # fmt: skip
    writer.notice = log.notice
    return log, writer, Watched(loaded.secrets, redactor)
