"""Makers of runs as the pages show them, written through the real writer."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from pathlib import Path

from hansard_store.ingest.derived_rows import CallProjection, SpanProjection, Usage
from tests.store.maker import NOW, SECOND, StoreMaker, call, message, trace_id


class RunMaker:
    """A store on disk, filled run by run; ages are counted from the real now."""

    def __init__(self, path: Path) -> None:
        self.store = StoreMaker(path)
        self.folder = self.store.folder
        self._numbers = itertools.count(1)

    def close(self) -> None:
        self.store.close()

    def run(
        self,
        name: str = "answer",
        *,
        words: str = "What is the time?",
        answer: str = "It is noon.",
        agent: str = "clerk",
        model: str = "gpt-4o-mini",
        status: int = 0,
        age_s: float = 60,
        duration_s: float | None = 2,
        usage: Usage | None = None,
        tool: str | None = None,
        conversation: str | None = None,
        prompt: str | None = None,
        service: str = "svc",
        trace: str = "",
        attributes: dict[str, str | bool | int | float] | None = None,
    ) -> str:
        """Store an agent's run with one model call, and a tool call if named; returns its id."""
        trace = trace or f"{next(self._numbers):032x}"
        self.store.now_ns = time.time_ns()
        start_s = (time.time_ns() - NOW) / SECOND + 3600 - age_s
        made = Usage(1200, 80, 600, None, None, 350_000) if usage is None else usage
        spoken = call(
            input=[message("system", "Be brief."), message("user", words)],
            output=[message("assistant", answer)],
            model=model,
            usage=made,
        )
        with self.store.batch():
            self.store.span(
                name,
                run=trace,
                start_s=start_s,
                duration_s=duration_s,
                status=status,
                service=service,
                attributes=attributes or {},
                texts=[("span_name", name)],
                projection=self._agent(name, agent, words, answer, conversation)._replace(
                    prompt_id=prompt
                ),
            )
            self.store.span(
                f"chat {model}",
                name,
                run=trace,
                start_s=start_s + 0.1,
                duration_s=None if duration_s is None else duration_s * 0.8,
                service=service,
                projection=self._call(spoken, model, made),
            )
            if tool:
                self.store.span(
                    tool,
                    name,
                    run=trace,
                    start_s=start_s + 0.2,
                    duration_s=0.05,
                    service=service,
                    role="tool",
                    texts=[("tool_result", f"{tool} found 6 hits")],
                    facets=[("tool", tool)],
                )
        return trace_id(trace).hex()

    def request(
        self,
        name: str = "GET /health",
        *,
        service: str = "svc",
        age_s: float = 60,
        conversation: str | None = None,
        prompt: str | None = None,
    ) -> str:
        """Store a run of kind other: a plain request; returns its id."""
        trace = f"{next(self._numbers):032x}"
        self.store.now_ns = time.time_ns()
        start_s = (time.time_ns() - NOW) / SECOND + 3600 - age_s
        self.store.span(
            name,
            run=trace,
            start_s=start_s,
            service=service,
            texts=[("span_name", name)],
            projection=SpanProjection(
                "other", "otel", conversation_id=conversation, prompt_id=prompt
            ),
        )
        return trace

    def _agent(
        self, name: str, agent: str, words: str, answer: str, conversation: str | None
    ) -> SpanProjection:
        return SpanProjection(
            role="agent",
            dialect="gen_ai",
            agent_name=agent,
            facets=(("agent", agent), ("role", "agent")),
            conversation_id=conversation,
            first_input=words,
            last_output=answer,
        )

    def _call(self, spoken: CallProjection, model: str, usage: Usage) -> SpanProjection:
        return SpanProjection(
            role="llm",
            dialect="gen_ai",
            model=model,
            usage=usage,
            call=spoken,
            facets=(("model", model), ("role", "llm")),
        )

    def runs(self, names: Sequence[str], **options: object) -> list[str]:
        return [self.run(name, **options) for name in names]  # type: ignore[arg-type]
