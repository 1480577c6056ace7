"""Spans as agents make them, built before the clock starts, and sent as exporters send them.

The *agent profile*: traces of 10 to 40 spans, a third of them model calls with 2 to 8 KiB of
prompt, about 2.8 KB a span; one prompt in a hundred holds the word NEEDLE. Equal seeds give equal
content; ids and times depend on the seed and the time given.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from urllib.parse import urlsplit

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

NEEDLE = "quetzalcoatlus"
BATCH_SPANS = 512  # the default of the SDKs' batch processors
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

_MODELS = ("gpt-4o-mini", "gpt-4.1", "claude-sonnet-4-5", "claude-haiku-4-5")
_TOOLS = ("run_sql", "search_web", "read_file", "send_mail", "get_weather")
_AGENTS = ("planner", "researcher", "writer", "support-desk")
_SYLLABLES = ("ka", "lo", "mi", "ten", "ra", "su", "vor", "ne", "bil", "do", "pra", "sti", "um")
_MICROSECOND_NS = 1_000
_MILLISECOND_NS = 1_000_000
_RETRY_S = 0.5
_ALL_ACCEPTED = b""  # an answer with a word in it tells of spans that were refused


@dataclass(frozen=True, slots=True)
class Batch:
    """A serialised export request."""

    body: bytes
    traces: dict[bytes, int]  # trace id -> spans of it, in order

    @property
    def spans(self) -> int:
        return sum(self.traces.values())


@dataclass(slots=True)
class Sent:
    """What became of a load."""

    seconds: float = 0.0
    spans: int = 0  # acknowledged
    bytes: int = 0
    waits_s: list[float] = field(default_factory=list)  # of each request
    acknowledged: list[Batch] = field(default_factory=list)
    retried: int = 0  # answers that asked to try again
    failed: int = 0  # requests given up

    @property
    def per_second(self) -> float:
        return self.spans / self.seconds if self.seconds else 0.0


class Agents:
    """Makes traces; everything it makes follows from the seed and the start."""

    def __init__(self, seed: int, *, start_ns: int | None = None) -> None:
        self.random = random.Random(seed)
        self.now_ns = start_ns if start_ns is not None else time.time_ns() - 3_600_000_000_000
        self._words = ["".join(self.random.choices(_SYLLABLES, k=3)) for _ in range(4_000)]

    def batches(self, spans: int, *, trace_spans: int | None = None) -> list[Batch]:
        """Return that many spans in requests of BATCH_SPANS."""
        stream = self._spans(trace_spans)
        batches = []
        left = spans
        while left:
            some = list(islice(stream, min(BATCH_SPANS, left)))
            left -= len(some)
            batches.append(_request(some))
        return batches

    def _spans(self, trace_spans: int | None) -> Iterator[Span]:
        while True:
            yield from self._trace(trace_spans or self.random.randint(10, 40))

    def _trace(self, count: int) -> Iterator[Span]:
        rng = self.random
        trace_id, root_id = rng.randbytes(16), rng.randbytes(8)
        conversation = f"conversation-{rng.randrange(1 << 30):08x}"
        agent = rng.choice(_AGENTS)
        start = self.now_ns
        for _ in range(count - 1):
            self.now_ns += rng.randint(1, 40) * _MILLISECOND_NS
            attributes = self.call() if rng.random() < 0.34 else self._tool()
            attributes["gen_ai.conversation.id"] = conversation
            yield self.span(trace_id, root_id, attributes)
        root = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": agent,
            "gen_ai.conversation.id": conversation,
            "user.id": f"user-{rng.randrange(200)}",
            "deployment.environment.name": "bench",
        }
        yield Span(
            trace_id=trace_id,
            span_id=root_id,
            name=f"invoke_agent {agent}",
            kind=Span.SPAN_KIND_INTERNAL,
            start_time_unix_nano=start,
            end_time_unix_nano=self.now_ns + _MILLISECOND_NS,
            attributes=attributes_of(root),
        )

    def span(self, trace_id: bytes, parent: bytes, attributes: dict[str, object]) -> Span:
        rng = self.random
        operation = attributes["gen_ai.operation.name"]
        subject = attributes.get("gen_ai.request.model") or attributes.get("gen_ai.tool.name")
        length = rng.randint(200, 900_000) * _MICROSECOND_NS
        return Span(
            trace_id=trace_id,
            span_id=rng.randbytes(8),
            parent_span_id=parent,
            name=f"{operation} {subject}",
            kind=Span.SPAN_KIND_CLIENT,
            start_time_unix_nano=self.now_ns,
            end_time_unix_nano=self.now_ns + length,
            attributes=attributes_of(attributes),
        )

    def call(self) -> dict[str, object]:
        rng = self.random
        model = rng.choice(_MODELS)
        prompt = self.text(rng.randint(2_048, 8_192))
        if rng.random() < 0.01:
            prompt += f" {NEEDLE}"
        tokens = len(prompt) // 4
        return {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "openai" if model.startswith("gpt") else "anthropic",
            "gen_ai.request.model": model,
            "gen_ai.response.model": model,
            "gen_ai.response.id": f"resp-{rng.randrange(1 << 40):010x}",
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.request.temperature": 0.2,
            "gen_ai.request.max_tokens": 1024,
            "gen_ai.usage.input_tokens": tokens,
            "gen_ai.usage.output_tokens": 80,
            "gen_ai.system_instructions": json.dumps(
                [{"type": "text", "content": "You are a careful assistant of a small company."}]
            ),
            "gen_ai.input.messages": json.dumps([_message("user", prompt)]),
            "gen_ai.output.messages": json.dumps([_message("assistant", self.text(600))]),
            "server.address": "127.0.0.1",
            "server.port": 8080,
        }

    def _tool(self) -> dict[str, object]:
        rng = self.random
        tool = rng.choice(_TOOLS)
        return {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": tool,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.description": f"The tool {tool} of the bench",
            "gen_ai.tool.call.id": f"call-{rng.randrange(1 << 40):010x}",
            "gen_ai.tool.call.arguments": json.dumps({"query": self.text(60)}),
            "gen_ai.tool.call.result": json.dumps({"rows": self.text(500)}),
            "code.function.name": f"bench.tools.{tool}",
            "thread.id": rng.randrange(1 << 16),
        }

    def text(self, size: int) -> str:
        return " ".join(self.random.choices(self._words, k=size // 8))


def conversation(seed: int, *, turns: int) -> list[Batch]:
    """Return a conversation of calls that each resend all before: one request a turn."""
    agents = Agents(seed)
    rng = agents.random
    trace_id, messages, batches = rng.randbytes(16), [], []
    for _ in range(turns):
        messages.append(_message("user", agents.text(2_000)))
        call = agents.call() | {
            "gen_ai.input.messages": json.dumps(messages),
            "gen_ai.output.messages": json.dumps([_message("assistant", agents.text(600))]),
        }
        agents.now_ns += _MILLISECOND_NS
        batches.append(_request([agents.span(trace_id, b"", call)]))
    return batches


def _message(role: str, text: str) -> dict[str, object]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


def _request(spans: Sequence[Span]) -> Batch:
    request = ExportTraceServiceRequest()
    resource = request.resource_spans.add()
    resource.resource.attributes.extend(
        attributes_of({"service.name": "bench", "telemetry.sdk.language": "python"})
    )
    scope: ScopeSpans = resource.scope_spans.add()
    scope.scope.name = "bench.load"
    scope.spans.extend(spans)
    return Batch(request.SerializeToString(), dict(Counter(span.trace_id for span in spans)))


def attributes_of(values: Mapping[str, object]) -> list[KeyValue]:
    return [KeyValue(key=key, value=_any_value(value)) for key, value in values.items()]


def _any_value(value: object) -> AnyValue:
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    if isinstance(value, list):
        wrapped = AnyValue()
        wrapped.array_value.values.extend(_any_value(item) for item in value)
        return wrapped
    return AnyValue(string_value=str(value))


# ---- sending


def send(
    batches: Sequence[Batch],
    target: str,
    *,
    protocol: str = "grpc",
    senders: int = 4,
    tries: int = 10,
) -> Sent:
    """Send requests from some senders at once, each waiting for its answer as exporters do.

    A refused request is tried again; a sender that has tried often enough gives up altogether.
    """
    sent, lock = Sent(), threading.Lock()
    todo = iter(batches)

    def work() -> None:
        post = _grpc_door(target) if protocol == "grpc" else _http_door(target)
        while True:
            with lock:
                batch = next(todo, None)
            if batch is None:
                return
            began = time.perf_counter()
            refusals = 0
            while not (is_accepted := post(batch.body)) and refusals < tries:
                refusals += 1
                time.sleep(_RETRY_S)
            wait = time.perf_counter() - began
            with lock:
                sent.retried += refusals
                if not is_accepted:
                    sent.failed += 1
                    return
                sent.spans += batch.spans
                sent.bytes += len(batch.body)
                sent.waits_s.append(wait)
                sent.acknowledged.append(batch)

    began = time.perf_counter()
    with ThreadPoolExecutor(senders) as threads:
        for future in [threads.submit(work) for _ in range(senders)]:
            future.result()
    sent.seconds = time.perf_counter() - began
    return sent


def _grpc_door(target: str):  # type: ignore[no-untyped-def] # grpc ships no types
    channel = grpc.insecure_channel(target)
    export = channel.unary_unary(EXPORT)

    def post(body: bytes) -> bool:
        try:
            answer = export(body, timeout=60)
        except grpc.RpcError:
            return False
        return bool(answer == _ALL_ACCEPTED)

    return post


def _http_door(target: str):  # type: ignore[no-untyped-def] # as its twin
    url = urlsplit(target)
    connection = http.client.HTTPConnection(url.hostname or "", url.port, timeout=60)
    headers = {"content-type": "application/x-protobuf"}

    def post(body: bytes) -> bool:
        try:
            connection.request("POST", "/v1/traces", body, headers)
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            return False
        return answer.status == 200 and content == _ALL_ACCEPTED

    return post
