"""The run that a replay makes: a trace of its own, linked to the step it is of.

Its spans go through ordinary ingest; nothing of the source is touched.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.trace import Link

from hansard import semconv
from hansard.addresses import context_of
from hansard.call_span import CallSpan
from hansard.clients import names
from hansard.clients.call import quiet_clients
from hansard.compile_span import CompileSpan
from hansard.compiled import CompiledStep
from hansard.outcome import outcome_of
from hansard.place import entered
from hansard_collector.errors import StoreBusy
from hansard_compiler.calls import Json
from hansard_compiler.providers.exchange import Answer, watching
from hansard_store.errors import StoreBusyError
from hansard_web.replaying.source import Source
from hansard_web.replaying.turn import Turn, compiled_of
from hansard_web.sidecar.recording import Outlet, remote

SERVICE: Final = "hansard-replay"
LINK: Final = "replay_of"
_TRIES: Final = 20
_WAIT_S: Final = 0.5  # what was paid for is not dropped because the store is busy for a moment


@dataclass(frozen=True, slots=True)
class Said:
    """One call of a replay that was answered."""

    step_id: str
    answer: Answer
    latency_ms: float | None  # None: from the recording

    def json(self, turn: Turn) -> Json:
        """What the replay's row keeps of it: ids, hashes and numbers."""
        tokens = self.answer.call.tokens
        return {
            **_told_of(turn),
            "step_id": self.step_id,
            "latency_ms": self.latency_ms,
            "input_tokens": tokens.input,
            "output_tokens": tokens.output,
        }


def compile_json(turn: Turn) -> Json:
    """Return what the row keeps of a turn that was compiled, and not sent."""
    return {**_told_of(turn), "step_id": None}


def _told_of(turn: Turn) -> Json:
    step = turn.remade.step if turn.remade is not None else None
    return {
        "source_step_id": turn.source.step.step_id,
        "compile_step_id": None if step is None else step.kept.step_id or None,
        "compile_hash": None if step is None else step.hash,
        "request_hash": turn.ref if turn.request else None,
        "is_exact": turn.is_exact,
        "is_rebuilt": turn.is_rebuilt,
    }


class ReplayRun:
    """The trace of one replay while it is made."""

    def __init__(
        self, outlet: Outlet, replay_id: str, source: Source, *, mode: str, is_recorded: bool
    ) -> None:
        self.trace_id = os.urandom(16).hex()
        self._recording = outlet.recording(_resource())
        self._source = source
        self._marks: dict[str, str | bool] = {
            semconv.REPLAY_ID: replay_id,
            semconv.REPLAY_MODE: mode,
            **({semconv.REPLAY_RECORDED: True} if is_recorded else {}),
        }
        named = source.run.name.removeprefix(f"{semconv.OP_INVOKE_AGENT} ")
        agent = source.step.agent_name or named
        self._root = self._recording.begin(
            f"{semconv.OP_INVOKE_AGENT} {agent}".rstrip(),
            trace_id=self.trace_id,
            span_id=os.urandom(8).hex(),
            parent_span_id=None,
            attributes={
                semconv.OPERATION_NAME: semconv.OP_INVOKE_AGENT,
                semconv.AGENT_NAME: agent,
                **self._told(source),
            },
            links=(self._link(source),),
        )
        self.save()

    @property
    def root_id(self) -> str:
        return f"{self.trace_id}-{self._root.span_id}"

    def _told(self, source: Source) -> dict[str, str | bool]:
        return {semconv.REPLAY_OF: source.step.step_id, **self._marks}

    def _link(self, source: Source) -> Link:
        at = remote(source.step.run_id, source.step.span_id).get_span_context()
        return Link(at, {semconv.LINK_TYPE: LINK})

    def compile(self, turn: Turn) -> Turn:
        """Record the compile of a turn; returns the turn with the compile as its call names it."""
        remade = turn.remade
        if remade is None:
            return turn
        with entered(context_of(None, self.root_id)):
            span = CompileSpan.begin(self._recording.recorder)
            kept = span.keep(remade.result, remade.given, checks=remade.checks)
        step = CompiledStep(remade.result, checks=remade.checks, kept=kept)
        return replace(turn, remade=replace(remade, step=step))

    def ask(self, turn: Turn, on_begin: Callable[[str], object] = lambda _: None) -> Said:
        """Make a call, and record it however it ends. Raises what the call raises.

        It is shown from before it is sent. A recorded answer is told as a second span of one call:
        nothing was spent on it, so it does not count.
        """
        adapter = turn.adapter
        with entered(context_of(None, self.root_id)):
            span = CallSpan.begin(self._recording.recorder, turn.given, adapter, compiled_of(turn))
        told: dict[str, str | bool] = self._told(turn.source)
        if turn.is_rebuilt:
            told[semconv.REPLAY_REBUILT] = True
        if turn.is_recorded:
            told[names.DUPLICATE] = True
        span.mark(told, links=(self._link(turn.source),))
        self.save()
        on_begin(span.step_id)
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
        kept = span.finish(answer)
        self.save()
        return Said(kept.step_id, answer, None if turn.is_recorded else round(took_ms, 3))

    def end(self, error: BaseException | None = None) -> None:
        """End the run."""
        if self._root.claim():
            self._root.close(outcome_of(None, error))
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


def _resource() -> ResourceMessage:
    resource = ResourceMessage()
    attribute = resource.attributes.add()
    attribute.key = semconv.SERVICE_NAME
    attribute.value.string_value = SERVICE
    return resource
