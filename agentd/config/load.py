"""From a command line, an environment and files to a document: every layer, every finding, no side effect."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentd.config import checks, dotenv, env, files, flags, lifetime, settings, vars, workflows
from agentd.config.compose import compose
from agentd.config.document import Document
from agentd.config.files import Tree
from agentd.config.findings import Finding
from agentd.config.flags import Invocation
from agentd.config.paths import Table
from agentd.config.secrets import Literals, Resolver
from agentd.config.settings import Setting
from agentd.config.validate import validate

if TYPE_CHECKING:
    from agentd.plugins import PluginSet


@dataclass(slots=True, kw_only=True)
class Loaded:
    """A configuration as it stands. `document` is None when `findings` holds an error.

    `value` is the assembled document before it was typed, `sources` says which layer set each path of it; neither
    holds a literal credential that a variable or a flag gave. `cwd` is what relative paths are relative to.
    """

    invocation: Invocation
    environ: Mapping[str, str]
    cwd: Path
    files: list[str]
    plugins: PluginSet
    model: type[Document]
    table: Table
    value: dict[str, Any]
    tree: Tree
    document: Document | None
    secrets: Resolver
    findings: list[Finding] = field(default_factory=list)

    @property
    def sources(self) -> dict[str, str]:
        """Dotted path to the layer that set it."""
        from agentd.config.findings import dotted

        return {dotted(at): source for at, source in sorted(self.tree.sources.items(), key=lambda i: dotted(i[0]))}

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "error"]


Loader = Callable[[Sequence[str] | None, Sequence[str]], "PluginSet"]


def load(
    argv: Sequence[str],
    environ: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
    *,
    load_plugins: Loader | None = None,
) -> Loaded:
    """Read everything once. Raises :class:`agentd.errors.UsageError` only for an `--env` file that cannot be read."""
    where = Path(cwd) if cwd is not None else Path()
    first = Table(Document)
    early = flags.scan(argv, first)
    outer = dotenv.overlay(os.environ if environ is None else environ, early.env_files, where)
    named, explicit, findings = files.chosen(outer, early.configs, where)
    tree, wrong = files.read(named, where)
    findings += wrong

    allow, disabled = _plugin_words(tree, outer, early.settings, first)
    plugins = (load_plugins or _load_plugins)(allow, disabled)
    model = compose(plugins)
    table = first if model is Document else Table(model)
    invocation = early if table is first else flags.scan(argv, table)
    if (invocation.configs, invocation.env_files) != (early.configs, early.env_files):
        findings.append(Finding("error", "", "write a value that begins with dashes as --flag=value"))
    findings += [Finding("error", flag, message) for flag, message in invocation.faults]

    if not explicit:
        findings += files.relaxations(tree, [option.at for option in table.options if option.relaxes])
    findings += checks.inline_credentials(tree, tree.value, table)
    literals = Literals()
    given, near = env.read(outer, table)
    findings += near + settings.apply([*given, *invocation.settings], tree, table, literals)
    findings += checks.misplaced_references(tree.value, table)
    value, unreadable = workflows.expand(tree.value, where)
    value, unknown = vars.substitute(value)
    document, invalid = validate(tree, value, model)
    findings += unreadable + unknown + invalid
    if document is not None:
        findings += [*checks.check(document, plugins), *lifetime.grace(document, outer)]

    loaded = Loaded(
        invocation=invocation,
        environ=outer,
        cwd=where,
        files=named,
        plugins=plugins,
        model=model,
        table=table,
        value=value,
        tree=tree,
        document=document,
        secrets=Resolver(outer, literals, where),
        findings=findings,
    )
    if loaded.errors:
        loaded.document = None
    return loaded


def _plugin_words(
    tree: Tree, environ: Mapping[str, str], given: list[Setting], table: Table
) -> tuple[list[str] | None, list[str]]:
    """`plugins.allow` and `plugins.disabled`, which are needed before the rest of the schema is known."""
    probe = Tree()
    probe.merge({"plugins": tree.value.get("plugins") or {}}, "", {})
    words = [s for s in [*env.read(environ, table)[0], *given] if s.path.startswith("plugins.")]
    settings.apply(words, probe, table, Literals())
    section = probe.value.get("plugins")
    section = section if isinstance(section, dict) else {}
    allow, disabled = _words(section.get("allow")), _words(section.get("disabled"))
    return allow, disabled or []


def _words(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [word.strip() for word in value.split(",") if word.strip()]
    return [word for word in value if isinstance(word, str)] if isinstance(value, list) else None


def _load_plugins(allow: Sequence[str] | None, disabled: Sequence[str]) -> PluginSet:
    from agentd.plugins import load

    return load(allow, disabled)
