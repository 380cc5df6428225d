"""Secret references in the fields of a step: put in at the moment of use, and only where the author wrote them.

What a template brought in is data. A payload that says ``{{secret:TOKEN}}`` stays those words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentd.config.secrets import REFERENCE
from agentd.engine.state import Step

if TYPE_CHECKING:
    from agentd.ports.host import Secrets
    from agentd.runtime.live import Call


def resolved(call: Call) -> Mapping[str, Any]:
    """The rendered fields of `call` with its author's references replaced. Raises SecretMissing."""
    step = call.live.state.flying.get(call.step_id)
    written = step.node.fields if isinstance(step, Step) else {}
    found: dict[str, Any] = fill(written, call.fields, call.host.secrets)
    return found


def fill(written: Any, rendered: Any, secrets: Secrets) -> Any:
    """`rendered` with each reference replaced that stands at the same place in `written`."""
    if isinstance(written, str) and isinstance(rendered, str):
        ours = {match.group() for match in REFERENCE.finditer(written)}
        if not ours:
            return rendered
        return REFERENCE.sub(lambda m: secrets.resolve(m.group()) if m.group() in ours else m.group(), rendered)
    if isinstance(written, Mapping) and isinstance(rendered, Mapping):
        return {key: fill(written.get(key), value, secrets) for key, value in rendered.items()}
    if isinstance(written, list) and isinstance(rendered, list) and len(written) == len(rendered):
        return [fill(w, r, secrets) for w, r in zip(written, rendered, strict=True)]
    return rendered
