"""Bodies: steps that hold steps. Each decides which scopes to open, and what their ends mean; pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from agentd.engine.paths import Missing, With, down, parse_path
from agentd.engine.state import Scope, Step

if TYPE_CHECKING:
    from agentd.engine.decision import Error
    from agentd.engine.fold import Fold

MAX_ITERATIONS = 10_000

_RATE = re.compile(r"(\d+)/(\d*(?:\.\d+)?)(ms|s|m|h)")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


class Body:
    """What every body has: its live scopes by key, and the timers it waits for."""

    __slots__ = ("pauses", "scopes", "step")

    def __init__(self, step: Step) -> None:
        self.step = step
        self.scopes: dict[Any, Scope] = {}
        self.pauses: set[str] = set()

    def start(self, fold: Fold) -> None:
        """Open the first scopes, or complete at once."""

    def child_done(self, fold: Fold, scope: Scope) -> None:
        """All of `scope` is over."""

    def child_failed(self, fold: Fold, scope: Scope, error: Error) -> None:
        """A step of `scope` failed; the scope is gone."""
        fold.fail(self.step, error)


class Subgraph(Body):
    """Nested steps as one step."""

    __slots__ = ()

    def start(self, fold: Fold) -> None:
        fold.open(self.step, self, None, ".", "body", {})

    def child_done(self, fold: Fold, scope: Scope) -> None:
        fold.complete(self.step, scope.result())


class Parallel(Body):
    """Named branches side by side; with `on_error: continue` a failed one is named in `_errors`."""

    __slots__ = ("errors", "open", "results")

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self.results: dict[str, Any] = dict.fromkeys(step.node.bodies)
        self.errors: dict[str, Error] = {}
        self.open = len(self.results)

    def start(self, fold: Fold) -> None:
        for name in self.step.node.bodies:
            fold.open(self.step, self, name, f"{{{name}}}.", name, {})

    def child_done(self, fold: Fold, scope: Scope) -> None:
        self.results[scope.key] = scope.result()
        self._over(fold)

    def child_failed(self, fold: Fold, scope: Scope, error: Error) -> None:
        if self.step.node.on_error != "continue":
            fold.fail(self.step, error)
            return
        self.errors[scope.key] = error
        del self.results[scope.key]
        self._over(fold)

    def _over(self, fold: Fold) -> None:
        self.open -= 1
        if not self.open:
            fold.complete(self.step, {**self.results, "_errors": self.errors})


class Race(Body):
    """Named branches; the first `min_success` that succeed end it."""

    __slots__ = ("left", "need", "won")

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self.need = step.fields["min_success"]
        self.left = len(step.node.bodies)
        self.won: dict[str, Any] = {}

    def start(self, fold: Fold) -> None:
        for name in self.step.node.bodies:
            fold.open(self.step, self, name, f"{{{name}}}.", name, {})

    def child_done(self, fold: Fold, scope: Scope) -> None:
        self.won[scope.key] = scope.result()
        self.left -= 1
        if len(self.won) < self.need:
            return
        for other in list(self.scopes.values()):
            fold.discard(other)
        if self.need == 1:
            fold.complete(self.step, {"winner": scope.key, "output": self.won[scope.key]})
        else:
            fold.complete(self.step, {"winner": list(self.won), "output": self.won})

    def child_failed(self, fold: Fold, scope: Scope, error: Error) -> None:
        self.left -= 1
        if len(self.won) + self.left < self.need:
            fold.fail(self.step, error)


class Foreach(Body):
    """A body for each element, `parallel` at once, in waves of `size`, begun no faster than `rate`."""

    __slots__ = ("active", "done", "elements", "names", "next", "parallel", "period", "results", "size", "wave")

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        batch = step.fields["batch"]
        self.elements = listed(step.fields["over"])
        self.names = ("item", *([step.fields["as"]] if step.fields["as"] else ()))
        self._shape(batch["parallel"], batch["size"], batch["rate"], step.fields["collect"])

    def _shape(self, parallel: int, size: int | None, rate: str | None, collect: bool) -> None:
        self.parallel = parallel
        self.size = size or len(self.elements)
        self.period = seconds_each(rate) if rate else 0.0
        self.results: list[Any] | None = [None] * len(self.elements) if collect else None
        self.next = self.active = self.done = 0
        self.wave = self.size

    def start(self, fold: Fold) -> None:
        if not self.elements:
            fold.complete(self.step, self.results)
            return
        self._fill(fold)

    def _fill(self, fold: Fold) -> None:
        while self.next < min(len(self.elements), self.wave) and self.active < self.parallel:
            index, self.next = self.next, self.next + 1
            self.active += 1
            due = self.step.started + index * self.period
            if due > fold.now:
                self._later(fold, index, due)
            else:
                self._open(fold, index)

    def _later(self, fold: Fold, index: int, due: float) -> None:
        entry = f"{self.step.entry}[{index}]~"

        def go(later: Fold) -> None:
            self.pauses.discard(entry)
            self._open(later, index)

        fold.pause(entry, due, self.step, go)

    def _open(self, fold: Fold, index: int) -> None:
        binding = dict.fromkeys(self.names, self.elements[index])
        fold.open(self.step, self, index, f"[{index}].", "body", {**binding, "index": index})

    def child_done(self, fold: Fold, scope: Scope) -> None:
        self._over(fold, scope.key, scope.result() if self.results is not None else None)

    def child_failed(self, fold: Fold, scope: Scope, error: Error) -> None:
        if self.step.node.on_error == "continue":
            self._over(fold, scope.key, {"index": scope.key, "error": error})
        else:
            fold.fail(self.step, error)

    def _over(self, fold: Fold, index: int, result: Any) -> None:
        if self.results is not None:
            self.results[index] = result
        self.active -= 1
        self.done += 1
        if self.done == len(self.elements):
            fold.complete(self.step, self.results)
            return
        if self.done == self.wave:
            self.wave += self.size
        self._fill(fold)


class Batch(Foreach):
    """A body for each batch of a list: `size` elements, of equal `by` where given."""

    __slots__ = ()

    def __init__(self, step: Step) -> None:
        Body.__init__(self, step)
        fields = step.fields
        self.elements = batches(listed(fields["over"]), fields["size"], fields["by"])
        self.names = ("batch",)
        self._shape(fields["parallel"], None, None, True)


class Iterate(Body):
    """A body again and again, one iteration at a time."""

    __slots__ = ("bound", "count", "results")

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self.bound: int | None = step.fields["max_iterations"]
        self.count = 0
        self.results: list[Any] | None = [] if step.fields["collect"] else None

    def start(self, fold: Fold) -> None:
        self._next(fold, self.step.scope)

    def _next(self, fold: Fold, before: Scope) -> None:
        step = self.step
        bound = MAX_ITERATIONS if self.bound is None else self.bound
        if self.count >= bound:
            if self.bound is None:
                fold.fail(step, {"code": "iterations", "message": f"no end after {MAX_ITERATIONS} iterations"})
            else:
                self._complete(fold)
            return
        go_on = step.node.tests.get("while")
        try:
            if go_on is not None and not go_on(With(before, {"iteration": self.count})):
                self._complete(fold)
                return
        except ValueError as e:
            fold.fail(step, {"code": "iterate", "message": f"while: {e}"})
            return
        fold.open(step, self, self.count, f"[{self.count}].", "body", {"iteration": self.count})

    def child_done(self, fold: Fold, scope: Scope) -> None:
        self.step.output = result = scope.result()
        if self.results is not None:
            self.results.append(result)
        stop = self.step.node.tests.get("until")
        try:
            stopped = stop is not None and stop(scope)
        except ValueError as e:
            fold.fail(self.step, {"code": "iterate", "message": f"until: {e}"})
            return
        self.count += 1
        if stopped:
            self._complete(fold)
        else:
            self._next(fold, scope)

    def _complete(self, fold: Fold) -> None:
        fold.complete(self.step, self.step.output if self.results is None else self.results)


BODIES: dict[str, Callable[[Step], Body]] = {
    "subgraph": Subgraph, "parallel": Parallel, "race": Race, "foreach": Foreach, "batch": Batch, "iterate": Iterate,
}  # fmt: skip


def listed(value: Any) -> list[Any]:
    """`value`, a list. Raises ValueError."""
    if not isinstance(value, list):
        raise ValueError(f"over must be a list, got {type(value).__name__}")
    return value


def seconds_each(rate: str) -> float:
    """The time between two of ``20/1s``. Raises ValueError."""
    found = _RATE.fullmatch(rate)
    if found is None or int(found.group(1)) == 0:
        raise ValueError(f"expected a rate such as 20/1s, got {rate!r}")
    return float(found.group(2) or 1) * _UNIT[found.group(3)] / int(found.group(1))


def batches(elements: list[Any], size: int, by: str | None) -> list[list[Any]]:
    """`elements` in lists of at most `size`, equal values of the path `by` together, in order of first appearance."""
    groups: dict[str, list[Any]] = {}
    path = ("item", *parse_path(by)) if by else ("item",)
    for element in elements:
        value: Any = element if by else None
        try:
            for segment in path[1:]:
                value = down(value, segment, path)
        except Missing:
            value = None
        groups.setdefault(json.dumps(value, sort_keys=True), []).append(element)
    return [group[i : i + size] for group in groups.values() for i in range(0, len(group), size)]
