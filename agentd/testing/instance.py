"""A whole instance in this process: what a configuration document does, with real servers, children and stores.

::

    lived = live({"workflows": [...]}, tmp_path)
    assert lived.code == 0 and lived.output == "…"

A document whose workflows need a model names ``mock:`` endpoints. Children come from a zygote of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentd.config.load import load
from agentd.errors import ConfigError
from agentd.runtime.instance import Instance
from agentd.runtime.telemetry import Watched
from agentd.security.redaction import Redactor
from agentd.telemetry.emitter import Telemetry


@dataclass(slots=True)
class Lived:
    """What a life left behind: its exit code, what it printed, and its events."""

    code: int = -1
    printed: str = ""
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def output(self) -> Any:
        """What was printed, as JSON where it is any."""
        try:
            return json.loads(self.printed)
        except ValueError:
            return self.printed.rstrip("\n")

    def named(self, event: str) -> list[dict[str, Any]]:
        """Every event called `event`, in order."""
        return [e for e in self.events if e["event"] == event]

    def ended(self, step: str) -> dict[str, Any]:
        """The last `step.done` of `step`."""
        return next(e for e in reversed(self.events) if e["event"] == "step.done" and e["step"] == step)

    def put(self, line: str) -> None:
        """Take a log line (:class:`agentd.telemetry.emitter.Lines`)."""
        self.events.append(json.loads(line))


def live(
    document: Mapping[str, Any],
    cwd: Path,
    *,
    environ: Mapping[str, str] | None = None,
    during: Callable[[Instance, Lived], Awaitable[None]] | None = None,
    children: bool = False,
) -> Lived:
    """Live `document` to its end in `cwd`. `during` runs beside it once it is ready, with what was
    logged so far; then a daemon is told to leave.

    `children`: turns may be run. Raises ConfigError for a document that is none.
    """
    from agentd.children.spawner import Spawner

    path = cwd / "agentd.json"
    path.write_text(json.dumps(document))
    outer = {"HOME": str(cwd), "AGENTD_STATE_DIR": str(cwd / "state"), "HOSTNAME": "test", **(environ or {})}
    loaded = load(["--config", str(path)], outer, cwd)
    if loaded.document is None:
        raise ConfigError(findings=[(f.path, f.msg) for f in loaded.errors])
    lived, redactor = Lived(), Redactor([])
    log = Telemetry(lived, redactor=redactor, level="debug", strict=True, run_id="life")
    instance = Instance(
        loaded, log, Spawner.fork() if children else None, secrets=Watched(loaded.secrets, redactor), flush=lambda: None
    )

    async def whole() -> int:
        if during is None:
            return await instance.run()
        life = asyncio.ensure_future(instance.run())
        while not lived.named("proc.ready") and not life.done():  # noqa: ASYNC110  (an instance tells it in its log)
            await asyncio.sleep(0.01)
        try:
            if not life.done():
                await during(instance, lived)
        finally:
            instance.leave("test")
            code = await life
        return code

    lived.code = asyncio.run(whole())
    lived.printed = instance.result()
    return lived
