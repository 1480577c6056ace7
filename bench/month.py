"""A store as a team has it after thirty days: runs of many agents, models, users and services.

Spans are small (some 600 bytes of content), so that a million take minutes and not an hour; what a
page costs depends on rows. Runs start evenly over the thirty days before the store was made.
Equal seeds give equal content.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from bench import processes
from bench.load import BATCH_SPANS, NEEDLE, Agents, Batch, attributes_of, send

_DAYS: Final = 30
_DAY_NS: Final = 86_400 * 1_000_000_000
_MILLISECOND_NS: Final = 1_000_000
_MEAN_SPANS: Final = 16  # of a run
_SENT_AT_ONCE: Final = 40  # requests that are in memory at a time

_MODELS: Final = (
    "gpt-4o-mini-2024-07-18", "gpt-4o-mini", "gpt-4.1-2025-04-14", "gpt-4.1",
    "claude-sonnet-4-5-20250929", "claude-haiku-4-5", "gemini-2.5-flash",
)  # fmt: skip
_TOOLS: Final = (
    "run_sql", "search_web", "read_file", "send_mail", "get_weather", "lookup_order", "refund",
    "create_ticket",
)  # fmt: skip
_AGENTS: Final = (
    "planner", "researcher", "writer", "support-desk", "billing", "triage", "reviewer", "router",
)  # fmt: skip
_SERVICES: Final = ("shop-api", "support-bot", "batch-jobs", "intranet")
_PROMPTS: Final = ("answer", "summarise", "plan")
_TAGS: Final = ("beta", "vip", "nightly")
_ERRORS: Final = (
    ("TimeoutError", "no answer from {} after 30 s"),
    ("ConnectionError", "connection to {} was refused"),
    ("ValueError", "invalid order number '{}'"),
    ("PermissionError", "no access to table {}"),
)


class Month(Agents):
    """Makes the runs of thirty days."""

    def __init__(self, seed: int, *, spans: int, now_ns: int | None = None) -> None:
        end_ns = now_ns if now_ns is not None else time.time_ns()
        super().__init__(seed, start_ns=end_ns - _DAYS * _DAY_NS)
        self._between_ns = (_DAYS * _DAY_NS - 3_600 * 1_000_000_000) * _MEAN_SPANS // spans

    def requests(self, spans: int) -> Iterator[Batch]:
        """Yield that many spans in requests of BATCH_SPANS, each of one service."""
        stream = self._runs()
        left = spans
        while left:
            some = list(islice(stream, min(BATCH_SPANS, left)))
            left -= len(some)
            yield _request(some, self.random.choice(_SERVICES))

    def _runs(self) -> Iterator[Span]:
        while True:
            start_ns = self.now_ns
            yield from self._run()
            self.now_ns = start_ns + int(self.random.uniform(0.5, 1.5) * self._between_ns)

    def _run(self) -> Iterator[Span]:
        rng = self.random
        trace_id, root_id = rng.randbytes(16), rng.randbytes(8)
        conversation, agent = f"conversation-{rng.randrange(1 << 18):05x}", rng.choice(_AGENTS)
        start_ns, did_fail = self.now_ns, False
        for _ in range(rng.randint(4, 2 * _MEAN_SPANS - 6)):
            self.now_ns += rng.randint(1, 400) * _MILLISECOND_NS
            values = self.call() if rng.random() < 0.4 else self._tool_call()
            values["gen_ai.conversation.id"] = conversation
            values["gen_ai.agent.name"] = agent
            span = self.span(trace_id, root_id, values)
            if rng.random() < 0.02:
                did_fail |= rng.random() < 0.5
                self._fail(span)
            yield span
        root = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": conversation,
            "user.id": f"user-{int(rng.paretovariate(0.7)) % 2_000}",
            "deployment.environment.name": rng.choice(("production", "staging")),
        }
        if rng.random() < 0.2:
            root["hansard.run.tags"] = [rng.choice(_TAGS)]
        span = Span(
            trace_id=trace_id,
            span_id=root_id,
            name=f"invoke_agent {agent}",
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start_ns,
            end_time_unix_nano=self.now_ns + _MILLISECOND_NS,
            attributes=attributes_of(root),
        )
        if did_fail:
            self._fail(span)
        yield span

    def call(self) -> dict[str, object]:
        rng = self.random
        model, tokens = rng.choice(_MODELS), int(rng.lognormvariate(7.5, 1.0))
        prompt = self.text(rng.randint(80, 500))
        if rng.random() < 0.01:
            prompt += f" {NEEDLE}"
        messages = [{"role": "user", "parts": [{"type": "text", "content": prompt}]}]
        answer = [
            {
                "role": "assistant",
                "parts": [{"type": "text", "content": self.text(160)}],
                "finish_reason": "stop",
            }
        ]
        provider = {"gp": "openai", "cl": "anthropic"}.get(model[:2], "gcp.gemini")
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.response.time_to_first_chunk": rng.lognormvariate(-1.0, 0.5),
            "gen_ai.usage.input_tokens": tokens,
            "gen_ai.usage.cache_read.input_tokens": tokens // 2 if rng.random() < 0.5 else 0,
            "gen_ai.usage.output_tokens": rng.randint(10, 400),
            "gen_ai.prompt.name": rng.choice(_PROMPTS),
            "gen_ai.prompt.version": str(rng.randint(1, 4)),
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps(answer),
        }

    def _tool_call(self) -> dict[str, object]:
        tool = self.random.choice(_TOOLS)
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.call.arguments": json.dumps({"query": self.text(60)}),
            "gen_ai.tool.call.result": json.dumps({"rows": self.text(160)}),
        }

    def _fail(self, span: Span) -> None:
        kind, message = self.random.choice(_ERRORS)
        words = message.format(self.random.choice(("alpha", "beta", "gamma")))
        span.status.code = Status.STATUS_CODE_ERROR
        span.status.message = words
        span.attributes.extend(attributes_of({"error.type": kind}))
        event = span.events.add(name="exception", time_unix_nano=span.end_time_unix_nano)
        event.attributes.extend(attributes_of({"exception.type": kind, "exception.message": words}))


def fill(data: Path, *, spans: int, seed: int = 17) -> None:
    """Make a store of that many spans, over gRPC as exporters do; nothing where it is there."""
    with processes.hansard(data) as server:
        if server.count_spans() == spans:
            return
        requests = Month(seed, spans=spans).requests(spans)
        while some := list(islice(requests, _SENT_AT_ONCE)):
            sent = send(some, server.grpc)
            assert not sent.failed, f"{sent.failed} requests were given up"
        stored = server.count_spans()
        assert stored == spans, f"{stored} spans of {spans} are stored"


def _request(spans: Sequence[Span], service: str) -> Batch:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(
        attributes_of({"service.name": service, "telemetry.sdk.language": "python"})
    )
    scope = resource.scope_spans.add()
    scope.scope.name = "bench.month"
    scope.spans.extend(spans)
    return Batch(request.SerializeToString(), dict(Counter(span.trace_id for span in spans)))
