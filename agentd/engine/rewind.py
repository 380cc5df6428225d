"""Going back: what lies downstream of the target of a goto is to be entered again; pure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from agentd.engine.plan import Node
from agentd.engine.state import Scope

if TYPE_CHECKING:
    from agentd.engine.fold import Fold


def rewind(fold: Fold, scope: Scope, target: Node) -> None:
    """Abandon what goes on downstream of `target`, count anew what each step there waits for, ready `target`.

    Steps keep their last status, output and error until they are entered again, so that a second try can read what
    was wrong with the first.
    """
    region = scope.graph.regions[target.index]
    inside = set(region)
    fold.ready = deque((s, n) for s, n in fold.ready if s is not scope or n.index not in inside)
    for index in region:
        step = scope.steps[index]
        if step is not None and step.left:
            step.left = False
            scope.open += 1
        elif step is not None and (step.status in ("running", "suspended") or step.body is not None):
            fold.withdraw(step)
        scope.failures.pop(index, None)
    for index in region:
        if index != target.index:
            _count(scope, index, inside)
    scope.missing[target.index], scope.live[target.index] = 0, 1
    fold.ready.append((scope, target))


def _count(scope: Scope, index: int, inside: set[int]) -> None:
    waits, live = 0, False
    for source in scope.graph.sources[index]:
        before = scope.steps[source]
        if source in inside or before is None or not before.left:
            waits += 1
        else:
            live = live or before.leads_to(index)
    scope.missing[index], scope.live[index] = waits, live
