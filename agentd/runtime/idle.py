"""When a job leaves: at once when its work is final; late work of start nodes that may fire again gets some time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance


class Idle:
    """Looks whether an instance has anything left to do, whenever something ended."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._grace = False
        self._settling = False
        self._booted = False

    def begin(self) -> None:
        """Everything is armed: from now on a job may leave."""
        self._booted = True
        self.check()

    @property
    def now(self) -> bool:
        """Nothing runs, waits or is on its way."""
        i = self._instance
        work = i.runs.live or i.admission.admissible or i.admission.accepting
        return not (work or i.journal.outstanding or i.triggers.expect("surely"))

    def check(self) -> None:
        """Have a job leave if there is nothing left; a daemon stays."""
        instance = self._instance
        if instance.shape != "job" or not self._booted:
            return
        if not self.now:
            if instance.journal.outstanding and not self._settling:
                self._settling = True
                instance.background(self._when_settled())
        elif not instance.triggers.expect("perhaps"):
            instance.leave("idle")
        elif not self._grace:
            self._grace = True
            instance.timers.at(instance.clock.now() + instance.document.lifecycle.idle_grace, self._over)

    async def _when_settled(self) -> None:
        """What is being written is no work by itself: look again when it is durable."""
        await self._instance.journal.settled()
        self._settling = False
        self.check()

    def _over(self) -> None:
        self._grace = False
        if self.now:
            self._instance.log("lifecycle.idle_exit", code=self._instance.job_code(), job_shape=True)
            self._instance.leave("idle")
