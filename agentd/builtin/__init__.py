"""The kernel's own plugins: they come through the same hooks as anyone's.

`MODULES` is the list, as import strings, so that naming them costs nothing. Each implements some hooks of
:mod:`agentd.hookspecs` and imports only the standard library, pydantic and agentd at the top.
"""

MODULES: tuple[str, ...] = (
    "agentd.builtin.starts",
    "agentd.builtin.steps_pure",
    "agentd.builtin.steps_effect",
    "agentd.builtin.store_memory",
    "agentd.builtin.openai",
    "agentd.builtin.anthropic",
    "agentd.builtin.static_auth",
)

LATE: dict[tuple[str, str], str] = {
    ("dialects", "openai"): "agentd.builtin.openai",
    ("dialects", "anthropic"): "agentd.builtin.anthropic",
    ("auth_schemes", "static"): "agentd.builtin.static_auth",
}
"""The kinds of those modules that are imported at the first use of a kind, not at every start."""
