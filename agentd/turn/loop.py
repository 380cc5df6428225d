"""The exchange with the model: rounds of one model call and its tool calls, until an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from agentd.errors import AgentdError, DeadlineExceeded
from agentd.ports.model import Message, ModelReply, ModelRequest, ToolCall
from agentd.turn import prompt
from agentd.turn.answer import Answer
from agentd.turn.channel import Channel
from agentd.turn.model import Model
from agentd.turn.rules import Outcome, failed, failure, judge
from agentd.turn.stop import Stop, Stopped
from agentd.turn.tools import Toolbox
from agentd.turn.transcript import in_order, to_data, unanswered
from agentd.turn.usage import charge
from agentd.turn.work import Work

REASKS = 2
"""How often an answer that does not meet the schema is asked for again."""


class Loop:
    """One turn. :meth:`run` comes to an outcome whatever happens; the counters tell what it took."""

    def __init__(
        self,
        work: Work,
        *,
        model: Model,
        tools: Toolbox,
        answer: Answer,
        channel: Channel,
        stop: Stop,
        deadline: float | None = None,
    ) -> None:
        self._work, self._model, self._tools, self._answer = work, model, tools, answer
        self._channel, self._stop, self._deadline = channel, stop, deadline
        self._messages = prompt.opening(work, tools=bool(tools.schemas))
        self._asked_again = False
        self._reasks = 0
        self._tools_refused = 0
        self._schema = answer.schema
        self.rounds = self.tokens_in = self.tokens_out = 0

    async def run(self) -> Outcome:
        """Take rounds until the turn ends. Raises nothing that is an AgentdError."""
        try:
            outcome = await self._resume()
            while outcome is None:
                outcome = self._guard() or await self._round()
            return outcome
        except Stopped as e:
            return failed("cancelled", "cancelled", str(e))
        except DeadlineExceeded as e:
            return failed("deadline", e.code, e.message)
        except AgentdError as e:
            return failure(e)

    async def _resume(self) -> Outcome | None:
        """Begin, or take up what an earlier attempt of this turn has left: its calls without an answer are made."""
        said = self._work.transcript
        if not said:
            self._add(prompt.task(self._work))
            return None
        self._messages += said
        left = unanswered(said)
        self._recall(left)
        if left or self._tools.finished is not None:
            outcome = await self._perform(left)
            self._messages = in_order(self._messages)
            return outcome
        self._messages = in_order(self._messages)
        last = said[-1]
        # A final answer whose result was lost; what carries more than text may be half of a paused one.
        if last.role == "assistant" and last.text and not last.calls and last.raw is None:
            return self._conclude(last.text)
        return None

    def _recall(self, left: Sequence[ToolCall]) -> None:
        """Take over the counts of the earlier attempt: rounds, and the calls that have an answer."""
        waiting = {call.id for call in left}
        spoken = [m for m in self._work.transcript if m.role == "assistant"]
        wrong = {m.call_id for m in self._work.transcript if m.is_error}
        self.rounds = len(spoken)
        for message in spoken:
            is_last = message is spoken[-1]
            made = [c for c in message.calls if not (is_last and c.id in waiting)]
            self._tools.remember(made, ended=[c for c in made if is_last and c.id not in wrong])

    def _guard(self) -> Outcome | None:
        """Why there is no further round: cancelled, deadline, rounds, tokens, in this order."""
        self._stop.check()
        limits = self._work.limits
        if self._late():
            return failed("deadline", "deadline", "the deadline of the run passed")
        if self.rounds >= limits.rounds:
            return failed("exhausted_steps", "budget", f"no answer within {limits.rounds} rounds")
        if limits.tokens is not None and self.tokens_in + self.tokens_out >= limits.tokens:
            return failed("exhausted_tokens", "budget", f"no answer within {limits.tokens} tokens")
        return None

    def _late(self) -> bool:
        # A timer may wake a little before its time.
        return self._deadline is not None and asyncio.get_running_loop().time() >= self._deadline - 0.001

    async def _round(self) -> Outcome | None:
        reply = await self._ask()
        meaning = judge(reply, asked_again=self._asked_again)
        # What is empty is never sent back: providers refuse an empty assistant message.
        if reply.message.text or reply.message.calls or meaning == "go_on":
            self._add(reply.message)
        if isinstance(meaning, Outcome):
            return meaning
        if meaning == "calls":
            return await self._perform(reply.message.calls, reply.reason)
        if meaning == "answer":
            return self._conclude(reply.message.text)
        if meaning == "ask_again":
            self._asked_again = True
            self._add(prompt.ask_again_for_calls())
        return None

    async def _ask(self) -> ModelReply:
        """One model call; a provider that refuses the schema is asked without it, and the answer is checked here."""
        try:
            return await self._call()
        except AgentdError as e:
            if self._late():
                raise DeadlineExceeded("the deadline of the run passed") from e
            if self._schema is None or not _refuses_schema(e):
                raise
        self._schema = None
        return await self._call()

    async def _call(self) -> ModelReply:
        config = self._work.frame.get("model") or {}
        request = ModelRequest(
            model=config.get("model") or "",
            messages=tuple(self._messages),
            tools=self._tools.schemas,
            schema=self._schema,
            max_tokens=config.get("max_tokens"),
        )
        self.rounds += 1
        try:
            work = self._model.call(request, self._deadline)
            reply = await self._stop.race(work, deadline=self._deadline)
        except (Stopped, DeadlineExceeded):
            self._charge(request, None)
            raise
        self._charge(request, reply)
        return reply

    def _charge(self, request: ModelRequest, reply: ModelReply | None) -> None:
        usage = charge(request, reply)
        self.tokens_in += usage.tokens_in
        self.tokens_out += usage.tokens_out
        self._channel.usage(usage.tokens_in, usage.tokens_out, reported=usage.reported)

    async def _perform(self, calls: Sequence[ToolCall], reason: str = "") -> Outcome | None:
        self._messages += await self._tools.perform(calls, reason=reason)
        if self._tools.finished is not None:
            return self._tools.finished
        if self._tools.looped is not None:
            return failed("loop_detected", "loop_detected", f"the model repeated the same call of {self._tools.looped}")
        if self._tools.rejected > REASKS:
            return failed("failed", "output_schema", "the result given to finish does not meet the schema")
        return None

    def _conclude(self, text: str) -> Outcome | None:
        """The final answer, or one more round for an answer that does not meet the schema."""
        value, problems = self._answer.read(text)
        if not problems:
            return Outcome(status="completed", output=value)
        if self._reasks == REASKS:
            return failed("failed", "output_schema", f"the answer does not meet the schema: {'; '.join(problems)}")
        self._reasks += 1
        self._add(prompt.ask_again_for_schema(problems))
        return None

    def _add(self, message: Message) -> None:
        self._messages.append(message)
        data: dict[str, Any] = to_data(message)
        self._channel.message(data)


def _refuses_schema(error: AgentdError) -> bool:
    """Whether a provider may have refused the call for its schema, as far as its status tells."""
    return error.fields.get("status") in (400, 422) and not error.fields.get("tool")
