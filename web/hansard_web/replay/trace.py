"""The run that a replay makes: a trace of its own, linked to the step it is of.

Its spans go through ordinary ingest; nothing of the source is touched.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.trace import Link

from hansard import semconv
from hansard._clients.call import quiet_clients
from hansard._context.compile_span import CompileSpan
from hansard._context.compiled_step import CompiledStep
from hansard._models.call_span import CallSpan
from hansard._runs.run import context_of
from hansard._tracing.attributes import tool_attributes, tool_name
from hansard._tracing.context import entered
from hansard._tracing.open_span import OpenSpan, outcome_of
from hansard_collector.errors import StoreBusy
from hansard_compiler.calls import Json
from hansard_compiler.providers.transport.exchange import ProviderResponse, watching
from hansard_compiler.replay.live import LiveCall
from hansard_store.errors import StoreBusyError
from hansard_web.replay import SERVICE
from hansard_web.replay.source import ReplayedStep
from hansard_web.replay.transport.provider_gate import Permission
from hansard_web.replay.transport.turn import ReplayTurn, compiled_of
from hansard_web.sidecar.recorder import Outlet, remote, resource_of

LINK: Final = "replay_of"
_TRIES: Final = 20
_WAIT_S: Final = 0.5  # what was paid for is not dropped because the store is busy for a moment


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """One call of a replay that was answered."""

    step_id: str
    answer: ProviderResponse
    latency_ms: float | None  # None: from the recording

    def json(self, turn: ReplayTurn) -> Json:
        """What the replay's row keeps of it: ids, hashes and numbers."""
        tokens = self.answer.call.tokens
        return {
            **_turn_body(turn),
            "step_id": self.step_id,
            "latency_ms": self.latency_ms,
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
        }


def compile_json(turn: ReplayTurn) -> Json:
    """Return what the row keeps of a turn that was compiled, and not sent."""
    return {**_turn_body(turn), "step_id": None}


def _turn_body(turn: ReplayTurn) -> Json:
    step = turn.remade.step if turn.remade is not None else None
    return {
        "source_step_id": turn.source.step.step_id,
        "compile_step_id": None if step is None else step.recorded.step_id or None,
        "compile_hash": None if step is None else step.hash,
        "request_hash": turn.ref if turn.request else None,
        "is_exact": turn.is_exact,
        "is_rebuilt": turn.is_rebuilt,
    }


class ReplayRun:
    """The trace of one replay while it is made."""

    def __init__(
        self, outlet: Outlet, replay_id: str, source: ReplayedStep, *, mode: str, is_recorded: bool,
        under: str | None = None, permission: Permission | None = None,
    ) -> None:  # fmt: skip
        """Begin a trace; with `under`, a step of one that was begun before, go on with that one."""
        self.trace_id = os.urandom(16).hex() if under is None else under.partition("-")[0]
        self._permission = permission or Permission()
        self._recording = outlet.recording(resource_of(SERVICE))
        self._marks: dict[str, str | bool] = {
            semconv.REPLAY_ID: replay_id,
            semconv.REPLAY_MODE: mode,
            **({semconv.REPLAY_RECORDED: True} if is_recorded else {}),
        }
        named = source.run.name.removeprefix(f"{semconv.OP_INVOKE_AGENT} ")
        self._agent = source.step.agent_name or named
        self._open: list[OpenSpan] = []  # what `end` closes
        self.parent_id = under or self._begin(source, parent_span_id=None)
        self.save()

    def _begin(self, source: ReplayedStep, *, parent_span_id: str | None) -> str:
        """Begin a span that calls stand under; returns its step id."""
        span = self._recording.begin(
            f"{semconv.OP_INVOKE_AGENT} {self._agent}".rstrip(),
            trace_id=self.trace_id,
            span_id=os.urandom(8).hex(),
            parent_span_id=parent_span_id,
            attributes={
                semconv.OPERATION_NAME: semconv.OP_INVOKE_AGENT,
                semconv.AGENT_NAME: self._agent,
                **self._source_attributes(source),
            },
            links=(_link_to(source.step.step_id),),
        )
        self._open.append(span)
        return f"{self.trace_id}-{span.span_id}"

    def go_live(self, source: ReplayedStep, under: str | None) -> str:
        """Mark what follows as live, under a span of its own; returns that span's step id.

        `under` is that span where the fork went live before.
        """
        self._marks[semconv.REPLAY_LIVE] = True
        parent_span_id = self.parent_id.partition("-")[2]
        self.parent_id = under or self._begin(source, parent_span_id=parent_span_id)
        self.save()
        return self.parent_id

    def tool(self, call: LiveCall, source: ReplayedStep) -> None:
        """Record a tool call whose result came from the record or from somebody: nothing ran."""
        attributes = {
            **tool_attributes(name=call.name, call_id=call.call_id, type=None),
            **self._source_attributes(source),
            semconv.REPLAY_RESULT: call.origin,
            semconv.REPLAY_RESULT_BY: call.by if call.origin == "hand" else None,
            semconv.DUPLICATE: True if call.origin == "recorded" else None,
        }
        linked = (_link_to(call.recorded_in),) if call.recorded_in else ()
        span = OpenSpan(
            self._recording.recorder,
            tool_name(call.name),
            context=context_of(None, self.parent_id),
            attributes=attributes,
            links=linked,
        )
        span.keep(semconv.TOOL_CALL_ARGUMENTS, call.arguments)
        span.keep(semconv.TOOL_CALL_RESULT, call.result)
        if span.claim():
            span.close(outcome_of("failed" if call.is_error else None, None))

    def _source_attributes(self, source: ReplayedStep) -> dict[str, str | bool]:
        return {semconv.REPLAY_OF: source.step.step_id, **self._marks}

    def compile(self, turn: ReplayTurn) -> ReplayTurn:
        """Record the compile of a turn; returns the turn with the compile as its call names it."""
        remade = turn.remade
        if remade is None:
            return turn
        with entered(context_of(None, self.parent_id)):
            span = CompileSpan.begin(self._recording.recorder)
            recorded = span.keep(remade.result, remade.ports, checks=remade.checks)
        step = CompiledStep(remade.result, checks=remade.checks, recorded=recorded)
        return replace(turn, remade=replace(remade, step=step))

    def ask(self, turn: ReplayTurn) -> CallOutcome:
        """Make a call, and record it however it ends. Raises what the call raises.

        It is shown from before it is sent. A recorded answer is a second span of one call:
        nothing was spent on it, so it does not count.
        """
        self._permission.spend(turn.side_effects)
        adapter = turn.adapter
        with entered(context_of(None, self.parent_id)):
            span = CallSpan.begin(
                self._recording.recorder, turn.render_input, adapter, compiled_of(turn)
            )
        attributes: dict[str, str | bool] = self._source_attributes(turn.source)
        if turn.is_rebuilt:
            attributes[semconv.REPLAY_REBUILT] = True
        if turn.is_recorded:
            attributes[semconv.DUPLICATE] = True
        span.mark(attributes, links=(_link_to(turn.source.step.step_id),))
        self.save()
        started = time.perf_counter()
        try:
            with span.running(), quiet_clients(), watching(span):
                answer = turn.ask(adapter)
        except BaseException as error:
            span.fail(error)
            self.save()
            raise
        finally:
            adapter.close()
        took_ms = (time.perf_counter() - started) * 1e3
        recorded = span.finish(answer)
        self.save()
        return CallOutcome(
            recorded.step_id, answer, None if turn.is_recorded else round(took_ms, 3)
        )

    def end(self, error: BaseException | None = None) -> None:
        """End what was begun here: the run, and what went on live in it."""
        while self._open:
            span = self._open.pop()
            if span.claim():
                span.close(outcome_of(None, error))
        self.save()

    def save(self) -> None:
        """Write what is known by now; waits while the store is busy."""
        for attempt in range(_TRIES):
            try:
                self._recording.save()
            except (StoreBusyError, StoreBusy):
                if attempt == _TRIES - 1:
                    raise
                time.sleep(_WAIT_S)
            else:
                return


def _link_to(step_id: str) -> Link:
    run_id, span_id, *_ = step_id.split("-")
    return Link(remote(run_id, span_id).get_span_context(), {semconv.LINK_TYPE: LINK})
