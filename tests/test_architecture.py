"""The house rules that a linter cannot hold: what plugins import, what loading costs, how large a room may be."""

from __future__ import annotations

import ast
import inspect
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentd.builtin import LATE, MODULES
from agentd.contributions import built_in
from agentd.hookspecs import Hooks
from agentd.plugins import SLOTS, PluginSet

ROOT = Path(__file__).resolve().parent.parent
KERNEL = sorted(ROOT.glob("agentd/**/*.py"))
BUILTIN = sorted(p for p in ROOT.glob("agentd/builtin/*.py") if p.name != "__init__.py")
PLUGINS = sorted(p for p in ROOT.glob("plugins/*/**/*.py") if "tests" not in p.parts and p.stem.isidentifier())
OWN = {p.name.removesuffix(".py") for folder in ROOT.glob("plugins/*") for p in folder.glob("agentd_*")}

PUBLIC = ("agentd", "agentd.hookspecs", "agentd.ports", "agentd.errors", "agentd.testing")
"""What a plugin may import of agentd: the compatibility promise."""

SDKS = {"asyncio", "httpx", "httpx2", "mcp", "starlette", "uvicorn", "rich", "jsonschema_rs", "cronsim", "sqlite3"}
"""What loading every plugin must not import."""


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(body: list[ast.stmt], *, deep: bool) -> Iterator[str]:
    """The modules imported by `body`: everywhere, or when the module itself is imported."""
    for node in body:
        for inner in ast.walk(node) if deep else at_import(node):
            if isinstance(inner, ast.Import):
                yield from (alias.name for alias in inner.names)
            elif isinstance(inner, ast.ImportFrom) and inner.level == 0 and inner.module:
                yield from (
                    f"{inner.module}.{a.name}" if inner.module == "agentd" else inner.module for a in inner.names
                )


def at_import(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
        return
    yield node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from at_import(child)


def tree(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text()).body


@pytest.mark.parametrize("path", PLUGINS, ids=named)
def test_a_plugin_imports_only_what_is_promised_and_no_other_plugin(path: Path) -> None:
    mine = next(part.removesuffix(".py") for part in path.parts if part.startswith("agentd_"))
    for module in imports(tree(path), deep=True):
        top = module.partition(".")[0]
        assert top not in OWN - {mine}, f"{named(path)} imports another plugin, {top}"
        if top == "agentd":
            assert any(module == p or module.startswith(p + ".") for p in PUBLIC[1:]) or module == "agentd.__version__"


ENTRIES = [p for p in PLUGINS if p.stem == "__init__" or p.parent.parent.name == "plugins"]
"""The modules that are imported whether or not the plugin is used."""


@pytest.mark.parametrize("path", ENTRIES + BUILTIN, ids=named)
def test_a_plugin_imports_nothing_heavy_at_the_top(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "pydantic", "agentd", *OWN} - {"asyncio", "sqlite3"}
    heavy = {m for m in imports(tree(path), deep=False) if m.partition(".")[0] not in allowed}
    assert not heavy, f"{named(path)} imports {heavy} at the top; import it where something is opened"


def test_the_kernel_imports_no_plugin() -> None:
    for path in KERNEL:
        assert not OWN & {m.partition(".")[0] for m in imports(tree(path), deep=True)}, named(path)


def test_loading_every_plugin_imports_no_sdk() -> None:
    code = f"import sys; from agentd.plugins import load; load(); print(*sorted({SDKS!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_every_plugin_of_the_tree_loads_and_contributes() -> None:
    code = "from agentd.plugins import load; p = load(); print([str(f) + f.reason for f in p.failed], p.contested)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[] {}\n"


def test_the_list_of_built_in_plugins_is_complete() -> None:
    having = {f"agentd.builtin.{p.stem}" for p in BUILTIN if "@hookimpl" in p.read_text()}
    assert having == set(MODULES)


def test_what_late_modules_contribute_is_as_announced() -> None:
    for module in set(LATE.values()):
        assert set(built_in(module)) == {key for key, where in LATE.items() if where == module}


def test_every_hook_is_documented_and_collected() -> None:
    hooks = {name: hook for name, hook in inspect.getmembers(Hooks, inspect.isfunction) if name.startswith("agentd_")}
    assert {name.removeprefix("agentd_") for name in hooks} == set(SLOTS)
    assert set(SLOTS) <= set(PluginSet.__dataclass_fields__)
    assert all(hook.__doc__ for hook in hooks.values())
    reference = (ROOT / "docs/plugins.md").read_text()
    for name in hooks:
        assert f"`{name}`" in reference, f"docs/plugins.md does not describe {name}"


def test_rooms_stay_small() -> None:
    lines = {path: len(path.read_text().splitlines()) for path in KERNEL + PLUGINS}
    large = {named(path): count for path, count in lines.items() if count > 400}
    assert not large
    assert statistics.median(lines.values()) < 150
    assert len((ROOT / "agentd/hookspecs.py").read_text().splitlines()) <= 250


def test_names_say_what_things_are() -> None:
    vague = {"utils", "util", "helpers", "common", "misc", "manager", "base"}
    assert not [named(p) for p in KERNEL + PLUGINS if p.stem in vague or p.parent.name in vague]


def test_no_stored_record_can_name_importable_code() -> None:
    for path in KERNEL + PLUGINS:
        found = {m.partition(".")[0] for m in imports(tree(path), deep=True)}
        assert not found & {"pickle", "shelve", "marshal", "dill", "cloudpickle"}, named(path)


def test_generated_files_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts/generate.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
