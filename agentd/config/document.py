"""The kernel's sections of the configuration, each option declared once.

Type, default, help, secrecy and reload class stand here; the JSON Schema, the environment names, the flags, `--help`
and the reference in the docs are generated from it. Plugins' options are mounted by :mod:`agentd.config.compose`.

Annotations are evaluated as they are read here and in every module of models: as texts they cost pydantic twice.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from agentd.config.quantities import parse_duration, parse_size

Duration = Annotated[float, BeforeValidator(parse_duration), Field(json_schema_extra={"format": "duration"})]
"""Seconds."""
Size = Annotated[int, BeforeValidator(parse_size), Field(json_schema_extra={"format": "size"})]
"""Bytes."""
Position = Annotated[str, Field(pattern=r"^[1-9][0-9]{0,2}$")]
Name = Annotated[str, Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}$")]


def option(
    default: Any = None,
    help: str = "",
    *,
    restart: bool = False,
    secret: bool = False,
    relaxes: bool = False,
    **kw: Any,
) -> Any:
    """Declare an option. `restart`: a change needs a restart; `secret`: a file may hold a reference only;
    `relaxes`: it weakens a security control, which a file that nobody named may not do.
    """
    extra: dict[str, Any] = {"reload": "restart" if restart else "live"}
    if secret:
        extra["secret"] = True
    if relaxes:
        extra["relaxes"] = True
    if callable(default):
        # A section's defaults need no validator, and building one takes milliseconds.
        factory = default.model_construct if isinstance(default, type) and issubclass(default, BaseModel) else default
        return Field(default_factory=factory, description=help, json_schema_extra=extra, **kw)
    return Field(default, description=help, json_schema_extra=extra, **kw)


class Section(BaseModel):
    """A part of the document: unknown keys are errors, values are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, hide_input_in_errors=True)


class InstructionDir(Section):
    path: str = option(..., "a directory of documents")
    glob: str = option("*.md", "which files of it")
    order: Literal["name", "date"] = option("name", "in which order they are joined")


class Instruction(Section):
    """Exactly one source."""

    text: str | None = option(None, "the instruction itself")
    file: str | None = option(None, "a file that holds it")
    dir: InstructionDir | None = option(None, "a directory of files that are joined")


class ToolSelection(Section):
    internal: list[str] = option(lambda: ["*"], "globs of internal tools the model sees")
    mcp: list[str] = option(lambda: ["*"], "globs of MCP tools the model sees, as <ns or server>.<tool>")


class Agent(Section):
    name: str | None = option(None, "the durable identity; else AGENT_POD_NAME, HOSTNAME, agentd", restart=True)
    persona: str | None = option(None, "who the agent is: the first words of every prompt")
    instruction: str | Instruction | None = option(None, "what to do: text, a path, or an object with one source")
    prompt: str | None = option(
        None, "a message into the root conversation; the instruction is standing policy beside it"
    )
    output_schema: dict[str, Any] | None = option(None, "a JSON Schema the final answer must meet")
    max_parallel_turns: int = option(4, "turns that may run at once", ge=1)
    tools: ToolSelection = option(ToolSelection, "what the model sees")


class Auth(BaseModel):
    """How to authenticate to a target; the fields besides `kind` are the scheme's."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True, hide_input_in_errors=True)
    kind: str = option("static", "an installed scheme")


class Intelligence(Section):
    endpoints: list[str] = option(list, "model endpoints in order of preference: https, loopback http, or mock:…")
    dialect: str = option("openai", "the wire format: openai, anthropic, or a plugin's")
    model: str | None = option(None, "the model's name")
    token: str | None = option(None, "the credential; in a file a reference only", secret=True)
    token_file: str | None = option(None, "a file that holds the credential, read anew at each dial")
    tokens: dict[Position, str] = option(dict, "credentials of single endpoints by position, from 1", secret=True)
    token_files: dict[Position, str] = option(dict, "files that hold them")
    headers: dict[str, str] = option(dict, "further headers of each call")
    timeout: Duration = option(120.0, "of one call")
    max_tokens: int | None = option(None, "upper bound of one answer", ge=1)
    auth: Auth | None = option(None, "a credential scheme instead of `token`")


class McpServer(Section):
    name: Name = option(..., "how tools and steps refer to it")
    endpoint: str = option(..., "https, or http on a loopback host")
    headers: dict[str, str] = option(dict, "further headers of each request")
    auth: Auth | None = option(None, "a credential scheme")
    tags: dict[str, list[Literal["untrusted_input", "sensitive", "egress"]]] = option(dict, "tool glob to tags")
    ns: str | None = option(None, "the prefix of its tools instead of the name")
    allow: list[str] | None = option(None, "globs of tools to offer")
    exclude: list[str] = option(list, "globs of tools not to offer")
    timeout: Duration | None = option(None, "of one request; else mcp.default_timeout")
    required: bool = option(False, "the instance cannot run without it (exit 6)")


class Mcp(Section):
    default_timeout: Duration = option(60.0, "of one request to any server")
    servers: list[McpServer] = option(list, "the servers to use")


class Tools(Section):
    disabled: list[str] = option(list, "globs of tools, internal or MCP, that nobody may call")
    overrides: dict[str, str | None] = option(dict, "tool name to another tool that serves it, null to remove it")


class KeepLast(Section):
    keep_last: int | None = option(None, "how many finished ones to keep", ge=0)
    ttl: Duration | None = option(None, "how long to keep finished ones")


class Retention(Section):
    runs: KeepLast = option(lambda: KeepLast(keep_last=1000), "of finished runs; the last 1000 unless set")


class StoreSection(Section):
    """`store`; each installed kind mounts its own options beside these."""

    kind: str | None = option(None, "none for a one-shot, file for a long-lived instance", restart=True)
    prefix: str = option("agentd", "the first segment of every key", restart=True)
    on_conflict: Literal["stay", "exit"] = option(
        "stay", "when another process writes under this identity", restart=True
    )
    on_error: Literal["halt", "degrade"] = option("halt", "when the store fails for good", restart=True)
    timeout: Duration = option(30.0, "of one operation", restart=True)
    max_value_bytes: Size = option(64 << 20, "the largest value the store can read back", restart=True)
    retention: Retention = option(Retention, "what is kept of finished work", restart=True)


class StreamRetention(Section):
    max_events: int = option(10000, "events kept", ge=1)
    max_age: Duration | None = option(None, "how long events are kept")


class Stream(Section):
    retention: StreamRetention = option(StreamRetention, "of one durable stream")


class RunLimits(Section):
    steps: int = option(500, "model rounds and steps of one run", ge=1)
    tokens: int = option(2_000_000, "tokens of one run", ge=1)
    deadline: Duration = option(3600.0, "wall-clock time of one run")


class Limits(Section):
    max_runs: int = option(8, "runs at once", ge=1)
    run: RunLimits = option(RunLimits, "of each run")
    step_timeout: Duration = option(600.0, "of one step")
    inline_max_bytes: Size = option(65536, "a larger step output is kept as an artifact")
    memory: Size | None = option(None, "address space of a child process")
    cpu: Duration | None = option(None, "CPU time of a child process")


class Lifecycle(Section):
    run_until: Literal["auto", "idle", "drained"] = option("auto", "idle: a job; drained: a daemon", restart=True)
    run_id: str | None = option(None, "the idempotency key of a job's unit of work", restart=True, max_length=256)
    drain_timeout: Duration = option(25.0, "from the signal to the exit", restart=True)
    idle_grace: Duration = option(5.0, "how long a job waits for late work")
    exit_code_map: dict[Literal["3", "7"], Annotated[int, Field(ge=0, le=125)]] = option(
        dict, "remaps the exit codes 3 and 7", restart=True
    )


class Observability(Section):
    log_level: Literal["debug", "info", "warn", "error"] = option("info", "the least level that is written")
    log_format: Literal["auto", "json", "pretty"] = option("auto", "auto: readable on a terminal, else JSON")
    log_content: bool = option(False, "write what is said, not only its length and hash")
    health_file: str | None = option(None, "rewritten every 10 s while the loop is live", restart=True)
    traceparent: str | None = option(None, "W3C trace context to continue")


class Security(Section):
    tls_ca: str | None = option(None, "further trusted roots (PEM)", restart=True, relaxes=True)
    allow_trifecta: bool = option(
        False, "admit untrusted input, sensitive data and egress together", restart=True, relaxes=True
    )


class Plugins(Section):
    allow: list[str] | None = option(None, "the only installed plugins that may load", restart=True)
    disabled: list[str] = option(list, "installed plugins that are not loaded", restart=True)


class Document(Section):
    """The kernel's part of the configuration document."""

    config_version: Literal["1"] | None = option(None, 'the version of this format: "1"')
    agent: Agent = option(Agent, "who it is and what it does")
    intelligence: Intelligence = option(Intelligence, "the model")
    mcp: Mcp = option(Mcp, "the way out")
    tools: Tools = option(Tools, "what may be called")
    store: StoreSection = option(StoreSection, "where durable state lives")
    workflows: list[dict[str, Any]] = option(list, "what runs, and when")
    streams: dict[str, Stream] = option(dict, "durable event streams")
    limits: Limits = option(Limits, "how much")
    lifecycle: Lifecycle = option(Lifecycle, "how long")
    observability: Observability = option(Observability, "what is told")
    security: Security = option(Security, "what is allowed")
    plugins: Plugins = option(Plugins, "which plugins load")
    vars: dict[str, Any] = option(dict, "deployment constants, used as {{config.NAME}}")
