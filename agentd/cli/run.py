"""`agentd` without a subcommand: run the configured instance, as a job or a daemon."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from agentd.cli.output import emit
from agentd.config import lifetime
from agentd.errors import EXIT_OK

if TYPE_CHECKING:
    from agentd.children.spawner import Spawner
    from agentd.config.flags import Invocation
    from agentd.config.load import Loaded


def main(invocation: Invocation, loaded: Loaded) -> int:
    """Live, and give the exit code. The result of a job goes to stdout; a result nobody takes is a failure."""
    spawner = _zygote(loaded)
    import asyncio

    from agentd.runtime.ids import new_id
    from agentd.runtime.instance import Instance
    from agentd.runtime.telemetry import open_telemetry

    assert loaded.document is not None
    log, writer, secrets = open_telemetry(loaded, loaded.document.lifecycle.run_id or new_id())
    instance = Instance(loaded, log, spawner, secrets=secrets, flush=lambda: writer.flush(0.2), ready=_collect_again)
    # What a restore reads is no garbage, and looking at it again and again doubles its time.
    gc.disable()
    try:
        code = asyncio.run(instance.run())
    finally:
        writer.flush(2.0)
    if result := instance.result():
        lost = emit(result)
        return code if lost == EXIT_OK else lost
    return code


def _collect_again() -> None:
    """What a boot made stays; live runs are many objects and no garbage, so the collector looks less often."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    gc.enable()


def _zygote(loaded: Loaded) -> Spawner | None:
    """What children come from, None where no turn can come; for a job forked now, while we have one thread."""
    assert loaded.document is not None
    if not lifetime.has_turns(loaded.document, loaded.plugins):
        return None
    from agentd.children.spawner import Spawner

    if lifetime.shape(loaded.document, loaded.plugins) == "daemon":
        return Spawner.later()
    spawner = Spawner.fork()
    # A job has few turns: what they use is built once they use it, and what none will use stays out.
    spawner.warm(mcp=bool(loaded.document.mcp.servers), rehearse=False)
    return spawner
