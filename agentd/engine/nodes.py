"""From the written fields of one step to what the engine uses: closures, tests, schemas; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from agentd.engine.compare import compile_condition
from agentd.engine.findings import Findings, join
from agentd.engine.names import Sight
from agentd.engine.paths import Getter, Names, parse_path
from agentd.engine.plan import Node
from agentd.engine.schemas import malformed
from agentd.engine.template import Compiler, Expressions
from agentd.ports.fields import is_template, is_text, read_as


class NodeCompiler:
    """Compiles the fields of one step into its :class:`~agentd.engine.plan.Node`."""

    def __init__(
        self, node: Node, path: str, findings: Findings, sight: Sight, expressions: Expressions | None
    ) -> None:
        self.node, self.path, self.findings, self.sight = node, path, findings, sight
        self.expressions = expressions

    def compile(
        self, field: str, make: Callable[[Compiler], Any], sight: Sight | None = None, *, live: bool = True
    ) -> Any:
        """What `make` makes, with everything it reads checked; None after a finding.

        `live` says that it is evaluated once, when the step is entered: only there may the memory be read, because
        what it said is kept with the step's record.
        """
        compiler = Compiler(self.expressions)
        place = join(self.path, field)
        try:
            made = make(compiler)
        except ValueError as e:
            self.findings.add(place, str(e))
            return None
        seen = sight if sight is not None else self.sight
        for read in compiler.reads:
            problem = seen.problem(read)
            if problem is not None:
                self.findings.add(place, problem)
            elif read.path[0] == "memory":
                self.node.volatile = True
                if not live:
                    self.findings.add(
                        place, "the memory cannot be read here; read it before, with memory.get or assign"
                    )
        return made

    def condition(self, field: str, text: bool | str, sight: Sight | None = None, *, live: bool = False) -> Any:
        return self.compile(field, lambda c: compile_condition(text, c), sight, live=live)

    def fields(self, model: BaseModel, sights: dict[str, Sight]) -> None:
        """All fields of the kind. `sights` are those of fields that see more than the step does."""
        how = read_as(type(model))
        values = model.model_dump(by_alias=True, warnings=False)
        moving: list[tuple[str, Getter]] = []
        for name, info in type(model).model_fields.items():
            field = info.alias or name
            value, way = values[field], how.get(field, "template")
            if value is None or way in ("literal", "steps", "branches"):
                continue
            if way == "schema":
                self._schema(field, value)
            elif way == "condition":
                self.node.tests[field] = self.condition(field, value, sights.get(field))
            elif way == "item":
                get = self._item(field, value, sights.get(field))
                if get is not None:
                    self.node.items[field] = get
            else:
                get = self._template(field, value, way, is_text(info.annotation))
                if get is not None:
                    moving.append((field, self._checked(field, value, get, info)))
        self.node.fields = values
        if moving:
            self.node.render = _renderer(values, moving)

    def _template(self, field: str, value: Any, way: str, text: bool) -> Getter | None:
        if text and isinstance(value, str):
            return self._getter(field, lambda c: c.text(value))
        if way == "value" and isinstance(value, str) and not is_template(value) and self._is_path(value):
            return self._getter(field, lambda c: c.path(value))
        return self._getter(field, lambda c: c.value(value))

    def _getter(self, field: str, make: Callable[[Compiler], Getter | None], **how: Any) -> Getter | None:
        made: Getter | None = self.compile(field, make, **how)
        return made

    def _item(self, field: str, value: Any, sight: Sight | None) -> Getter | None:
        return self._getter(field, lambda c: c.value(value), sight=sight, live=False)

    def _is_path(self, text: str) -> bool:
        try:
            return parse_path(text)[0] in self.sight.roots
        except ValueError:
            return False

    def _checked(self, field: str, value: Any, get: Getter, info: Any) -> Getter:
        """A typed field is held against its type once it is rendered."""
        annotation = info.annotation
        if annotation is Any or is_text(annotation):
            return get
        kind: Any = Annotated[annotation, *info.metadata] if info.metadata else annotation
        adapter: TypeAdapter[Any] = TypeAdapter(kind)

        def checked(names: Names) -> Any:
            rendered = get(names)
            try:
                made = adapter.validate_python(rendered)
            except ValidationError as e:
                raise ValueError(
                    f"{field}: {e.errors(include_url=False)[0]['msg'].removeprefix('Value error, ')}"
                ) from None
            return made.model_dump(by_alias=True, warnings=False) if isinstance(made, BaseModel) else made

        return checked

    def _schema(self, field: str, value: Any) -> None:
        problem = malformed(value)
        if problem is not None:
            self.findings.add(join(self.path, field), problem)


def _renderer(values: dict[str, Any], moving: list[tuple[str, Getter]]) -> Callable[[Names], dict[str, Any]]:
    def render(names: Names) -> dict[str, Any]:
        made = dict(values)
        for field, get in moving:
            made[field] = get(names)
        return made

    return render
