"""What a fired start node makes of its payload: whether it counts, and the run's inputs; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentd.engine.compare import Test
from agentd.engine.paths import Missing, With, compile_path, parse_path
from agentd.engine.plan import Plan
from agentd.errors import EXIT_CONFIG, AgentdError


class InputsInvalid(AgentdError):
    """The inputs cannot be rendered or do not meet `inputs.schema`: no run is made."""

    code = "inputs"
    exit_code = EXIT_CONFIG


class _Nothing:
    """Names that hold nothing; what there is comes first, through :class:`With`."""

    def name(self, root: str) -> Any:
        raise KeyError(root)

    def step(self, id: str) -> Any:
        return None

    def everything(self, text: str) -> dict[str, Any]:
        return {}


def render_inputs(plan: Plan, node: str, payload: Any, env: Mapping[str, Any]) -> dict[str, Any]:
    """The inputs of a run that start node `node` begins with `payload`.

    Its `inputs` rendered over ``{payload, env}``; without them the payload itself when it is an object, else nothing.
    Raises :class:`InputsInvalid` (log `run.inputs.invalid`).
    """
    render = plan.starts[node].inputs
    if render is None:
        inputs = payload if isinstance(payload, dict) else {}
    else:
        try:
            inputs = render(With(_Nothing(), {"payload": payload, "env": dict(env)}))
        except (Missing, ValueError) as e:
            raise InputsInvalid(f"{plan.name}.{node}: nothing at {e}") from e
    problem = plan.inputs.problem(inputs)
    if problem is not None:
        raise InputsInvalid(f"{plan.name}.{node}: the inputs do not meet inputs.schema: {problem}")
    return inputs


def passes(plan: Plan, node: str, payload: Any, env: Mapping[str, Any]) -> bool:
    """Whether the `filter` of start node `node` lets `payload` through; a path that is not there is null."""
    test = plan.starts[node].filter
    return test is None or _holds(test, payload, env)


def is_last(plan: Plan, node: str, ended: Mapping[str, Any], env: Mapping[str, Any]) -> bool:
    """Whether the `until` of start node `node` holds of a run that ended ``{status, output, err, iteration, …}``."""
    test = plan.starts[node].until
    return test is not None and _holds(test, dict(ended), env)


def value_at(text: str, payload: Any, env: Mapping[str, Any]) -> Any:
    """What a bare path finds in a payload, the keys of which may be named directly; None where there is nothing."""
    try:
        return compile_path(parse_path(text))(_names(payload, env))
    except (Missing, ValueError):
        return None


def _holds(test: Test, payload: Any, env: Mapping[str, Any]) -> bool:
    try:
        return test(_names(payload, env))
    except ValueError:
        return False


def _names(payload: Any, env: Mapping[str, Any]) -> With:
    more = dict(payload) if isinstance(payload, dict) else {}
    return With(_Nothing(), {**more, "payload": payload, "env": dict(env)})
