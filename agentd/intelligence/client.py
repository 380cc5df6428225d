"""Calls the model: the preferred endpoint, retries, the next one, and what is learnt of their health."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agentd.errors import IntelligenceUnavailable
from agentd.intelligence import retry
from agentd.intelligence.breaker import Breaker
from agentd.intelligence.transport import MAX_BODY, Answer, Unreachable, post
from agentd.ports.auth import Auth, OutboundRequest
from agentd.ports.model import Dialect, ModelFault, ModelReply, ModelRequest, WireRequest

if TYPE_CHECKING:
    import httpx

    from agentd.ports.host import Clock, Log

_ABOUT_SCHEMAS = re.compile(r"response_format|json_schema|output_config|output_format|structured output", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a model is served. `token_file` is read at each dial and beats `token`; `auth` beats both."""

    url: str
    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    auth: Auth | None = field(default=None, repr=False)
    mock: bool = False

    @property
    def host(self) -> str:
        """All that logs and errors may say of the URL."""
        try:
            return urlsplit(self.url).hostname or "?"
        except ValueError:
            return "?"

    def credential(self) -> str | None:
        """The token, as it is now. Raises :class:`ModelFault` when its file cannot be read."""
        if self.token_file is None:
            return self.token
        try:
            return Path(self.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as e:
            raise ModelFault(f"the token file {self.token_file} cannot be read: {e}", kind="fatal") from e


class ModelClient:
    """The model behind one or several endpoints, with one pool of connections for as long as the client lives.

    `timeout` (seconds) bounds one attempt, `headers` go with each, `log` gets `intel.call`, `intel.result` and
    `intel.failover`, with index and host and never a URL. `net` makes the HTTP client; `content` admits the provider's
    own words to log and errors.
    """

    def __init__(
        self,
        endpoints: Sequence[Endpoint],
        dialect: Dialect,
        *,
        model: str = "",
        timeout: float = 120.0,
        headers: Mapping[str, str] | None = None,
        log: Log,
        clock: Clock,
        net: Callable[[], httpx.AsyncClient] | None = None,
        content: bool = False,
        chance: Callable[[], float] = random.random,
        max_body: int = MAX_BODY,
        health: Sequence[Sequence[Any] | None] | None = None,
    ) -> None:
        self._endpoints, self._dialect, self._model = list(endpoints), dialect, model
        self._timeout, self._headers, self._content, self._max_body = timeout, dict(headers or {}), content, max_body
        self._log, self._clock, self._chance = log, clock, chance
        self._open, self._client = net, None if net is None else net()
        known = list(health or ())
        known += [None] * (len(self._endpoints) - len(known))
        self._breakers = [Breaker(k) for k in known[: len(self._endpoints)]]
        self._schemas = True

    async def __aenter__(self) -> ModelClient:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the pool."""
        if self._client is not None:
            await self._client.aclose()

    @property
    def health(self) -> list[list[Any]]:
        """What was learnt of each endpoint, for the `health` of the next client."""
        return [breaker.state for breaker in self._breakers]

    @property
    def healthy(self) -> list[bool]:
        """Per endpoint, whether its breaker lets calls pass."""
        return [breaker.healthy for breaker in self._breakers]

    async def call(self, request: ModelRequest, deadline: float | None = None) -> ModelReply:
        """One answer of the model; `deadline` is in seconds of the clock's monotonic time.

        Endpoints are asked in order, each up to three times where a retry helps. Raises
        :class:`IntelligenceUnavailable` when none answers (fields: status, reason, retryable, tool where the provider
        complains of one). A server that refuses the schema mode is asked without it, then and ever after: who asked for
        a schema checks the answer.
        """
        if not request.model:
            request = replace(request, model=self._model)
        if request.schema is None or self._schemas:
            try:
                return await self._any(request, deadline)
            except IntelligenceUnavailable as e:
                if request.schema is None or not _refuses_schemas(e.__cause__):
                    raise
        self._schemas = False
        return await self._any(replace(request, schema=None), deadline)

    async def _any(self, request: ModelRequest, deadline: float | None) -> ModelReply:
        """The first endpoint that answers."""
        last: tuple[int, ModelFault] | None = None
        for index, breaker in enumerate(self._breakers):
            if not breaker.admits(self._clock.monotonic()):
                continue
            if last is not None:
                self._tell_failover(last, index)
            try:
                return await self._ask(index, request, deadline)
            except ModelFault as fault:
                if fault.kind == "fatal":
                    raise self._unavailable(index, fault) from fault
                last = (index, fault)
            if self._left(deadline) <= 0:
                break
        if last is None:
            wait = min((b.wait(self._clock.monotonic()) for b in self._breakers), default=0.0)
            raise IntelligenceUnavailable(
                f"every model endpoint has failed lately; the next is tried in {wait:.0f} s",
                reason="resting",
                retryable=True,
            )
        raise self._unavailable(*last) from last[1]

    async def _ask(self, index: int, request: ModelRequest, deadline: float | None) -> ModelReply:
        """One endpoint, with retries. A probe of one that has failed gets a single attempt."""
        breaker = self._breakers[index]
        probing = breaker.begin()
        attempts = 1 if probing else 1 + retry.RETRIES
        try:
            for attempt in range(1, attempts + 1):
                try:
                    reply = await self._attempt(index, attempt, request, deadline)
                except ModelFault as fault:
                    if fault.kind == "fatal":
                        raise
                    breaker.failed(self._clock.monotonic())
                    wait = retry.delay(attempt, fault.retry_after, self._chance())
                    if not self._again(fault) or attempt == attempts or not self._may_wait(wait, deadline):
                        raise
                    await self._clock.sleep(wait)
                else:
                    breaker.succeeded()
                    if probing:
                        self._log("intel.swap", index=index, host=self._endpoints[index].host, reason="recovered")
                    return reply
        finally:
            breaker.released()
        raise AssertionError("the last attempt returns or raises")

    def _again(self, fault: ModelFault) -> bool:
        """Whether the same endpoint is worth another attempt. A connection that fails is, when there is no other."""
        return fault.kind == "retry" or (isinstance(fault, Unreachable) and len(self._endpoints) == 1)

    def _may_wait(self, wait: float, deadline: float | None) -> bool:
        return wait <= retry.MAX_WAIT and wait < self._left(deadline)

    def _left(self, deadline: float | None) -> float:
        return self._timeout if deadline is None else deadline - self._clock.monotonic()

    async def _attempt(self, index: int, attempt: int, request: ModelRequest, deadline: float | None) -> ModelReply:
        endpoint, started = self._endpoints[index], self._clock.monotonic()
        about: dict[str, Any] = {"index": index, "host": endpoint.host, "model": request.model}
        if endpoint.mock:
            about["mock"] = True
        self._log("intel.call", attempt=attempt, **about)
        try:
            reply = await self._exchange(endpoint, request, min(self._timeout, self._left(deadline)))
        except ModelFault as fault:
            self._log(
                "intel.result",
                level="warn",
                status="failed",
                **about,
                dur_ms=self._since(started),
                err={"type": fault.kind, "message": self._words(fault)},
            )
            raise
        self._log(
            "intel.result",
            status="ok",
            finish=reply.finish,
            tokens_in=reply.usage.tokens_in,
            tokens_out=reply.usage.tokens_out,
            **about,
            dur_ms=self._since(started),
        )
        return reply

    def _since(self, started: float) -> int:
        return round((self._clock.monotonic() - started) * 1000)

    async def _exchange(self, endpoint: Endpoint, request: ModelRequest, within: float) -> ModelReply:
        try:
            wire = self._dialect.write(endpoint.url, request)
        except ValueError as e:
            raise ModelFault(f"the request cannot be written: {e}", kind="fatal") from e
        try:
            async with asyncio.timeout(max(within, 0.0)):
                answer = await self._send(endpoint, wire)
        except TimeoutError:
            raise ModelFault(f"no answer within {within:.0f} s", kind="failover") from None
        try:
            return self._dialect.read(answer.status, answer.headers, answer.body)
        except ModelFault as fault:
            if fault.retry_after is None:
                fault.retry_after = retry.retry_after(answer.headers, self._clock.now())
            raise

    async def _send(self, endpoint: Endpoint, wire: WireRequest) -> Answer:
        """Post with the credential; a scheme that can mend a 401 gets one more try."""
        answer = await self._post(endpoint, wire)
        if answer.status == 401 and endpoint.auth is not None:
            challenge = answer.headers.get("www-authenticate", "")
            if await endpoint.auth.on_unauthorized(self._outbound(endpoint, wire), challenge):
                answer = await self._post(endpoint, wire)
        return answer

    def _outbound(self, endpoint: Endpoint, wire: WireRequest) -> OutboundRequest:
        headers = {**wire.headers, **self._headers, **endpoint.headers}
        return OutboundRequest(method="POST", url=wire.url, headers=headers, body=wire.body)

    async def _post(self, endpoint: Endpoint, wire: WireRequest) -> Answer:
        request = self._outbound(endpoint, wire)
        headers = dict(request.headers)
        if endpoint.auth is not None:
            headers.update(await endpoint.auth.headers(request))
        elif token := endpoint.credential():
            headers.update(self._dialect.authorize(token))
        if self._client is None:
            from agentd import net

            self._client = net.client(timeout=self._timeout)
        return await post(self._client, wire.url, headers, wire.body, limit=self._max_body)

    def _words(self, fault: ModelFault) -> str:
        """What may be said of `fault`: the provider's words only where content may be logged."""
        if fault.status == 0:
            return fault.message
        if self._content:
            return f"HTTP {fault.status}: {fault.message}"
        return f"HTTP {fault.status}" + (f", about the tool {fault.tool}" if fault.tool else "")

    def _tell_failover(self, last: tuple[int, ModelFault], to: int) -> None:
        index, fault = last
        self._log(
            "intel.failover",
            level="warn",
            index=index,
            host=self._endpoints[index].host,
            to=to,
            reason=str(fault.status or "unreachable"),
        )

    def _unavailable(self, index: int, fault: ModelFault) -> IntelligenceUnavailable:
        message = f"the model at endpoint {index} ({self._endpoints[index].host}) failed: {self._words(fault)}"
        return IntelligenceUnavailable(
            message + _advice(fault),
            status=fault.status,
            reason=fault.kind,
            retryable=fault.kind != "fatal",
            tool=fault.tool,
        )


def _refuses_schemas(cause: BaseException | None) -> bool:
    """Whether a refusal is about structured output rather than the request itself."""
    return isinstance(cause, ModelFault) and cause.status in (400, 422) and bool(_ABOUT_SCHEMAS.search(cause.message))


def _advice(fault: ModelFault) -> str:
    if fault.status in (401, 403):
        return "; the credential is missing or refused: check intelligence.token"
    if 300 <= fault.status < 400:
        return "; redirects are not followed: name the address it leads to"
    if fault.status == 404:
        return "; check intelligence.endpoints and intelligence.model"
    if fault.kind == "fatal" and fault.tool:
        return f"; leave {fault.tool} out with tools.disabled, or mend its schema"
    if fault.kind == "fatal" and fault.status:
        return "; the request was refused (observability.log_content shows the reason)"
    return ""
