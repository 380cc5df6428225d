"""`artifact.create|get|delete`: documents beside the records, kept as long as their run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agentd.engine.decision import Done
from agentd.journal import artifacts

if TYPE_CHECKING:
    from agentd.runtime.instance import Instance
    from agentd.runtime.live import Call
    from agentd.runtime.runs import Performer


def performers(instance: Instance) -> Mapping[str, Performer]:
    """The kinds of this family."""
    steps = ArtifactSteps(instance)
    return {"artifact.create": steps.create, "artifact.get": steps.get, "artifact.delete": steps.delete}


class ArtifactSteps:
    """Writes are part of the step's own commit, reads go to the store."""

    def __init__(self, instance: Instance) -> None:
        self._artifacts = artifacts.Artifacts(instance.journal)

    def create(self, call: Call) -> Done:
        """``{id, size, name?, media_type?}``; the same content from the same step is one artifact."""
        fields = call.fields
        ref, (kind, id, state) = artifacts.make(
            call.run_id, call.step_id, fields["content"], sensitive=fields["sensitive"]
        )
        assert state is not None
        about = {word: fields[word] for word in ("name", "media_type") if fields[word] is not None}
        call.also.append((kind, id, {**state, **about}))
        return Done({"id": id, "size": ref["size"], **about})

    async def get(self, call: Call) -> Done:
        """``{found, content, size, name?, media_type?}``."""
        found = await self._artifacts.get(call.fields["id"])
        if found is None:
            return Done({"found": False, "content": None})
        about = {word: found[word] for word in ("name", "media_type") if word in found}
        return Done({"found": True, "content": found["value"], "size": found.get("size"), **about})

    def delete(self, call: Call) -> Done:
        """``{id}``; absent is fine."""
        call.also.append(("artifact", call.fields["id"], None))
        return Done({"id": call.fields["id"]})
