"""One way to trace a function, in an interpreter of its own; told on stdin what to do.

Needs the standard library and the one SDK it is about, so that it runs in a peer's environment too.
`python sdk_contender.py NAME SINK`: imports, sets up, prints what that took, and then for each line
`BYTES CALLS` calls a function that often with a text of that size, no two the same, and prints the
processor time that took: of the calling thread, and of the whole process until all was sent.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Function = Callable[[str], int]
Flush = Callable[[], object]
SetUp = Callable[[], tuple[Function, Flush]]


def work(text: str) -> int:
    """Do what the traced program does."""
    return len(text)


# ---- each returns how to set up; importing is done by then


def plain(sink: str) -> SetUp:
    return lambda: (work, lambda: None)


def opentelemetry(sink: str) -> SetUp:
    """The stock SDK, its batch processor and OTLP exporter, and attributes set by hand."""
    trace: Any = import_module("opentelemetry.trace")
    sdk: Any = import_module("opentelemetry.sdk.trace")
    export: Any = import_module("opentelemetry.sdk.trace.export")
    otlp: Any = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")

    def set_up() -> tuple[Function, Flush]:
        provider = sdk.TracerProvider()
        exporter = otlp.OTLPSpanExporter(endpoint=f"{sink}/v1/traces")
        provider.add_span_processor(export.BatchSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        tracer = trace.get_tracer("bench")

        def traced(text: str) -> int:
            with tracer.start_as_current_span("execute_tool work") as span:
                span.set_attribute("gen_ai.operation.name", "execute_tool")
                span.set_attribute("gen_ai.tool.name", "work")
                span.set_attribute("gen_ai.tool.type", "function")
                span.set_attribute("gen_ai.tool.call.arguments", json.dumps({"text": text}))
                result = work(text)
                span.set_attribute("gen_ai.tool.call.result", json.dumps(result))
                return result

        return traced, provider.force_flush

    return set_up


def _hansard(sink: str, **settings: Any) -> SetUp:
    hansard: Any = import_module("hansard")

    def set_up() -> tuple[Function, Flush]:
        data = tempfile.mkdtemp(prefix="hansard-bench-")
        if settings.get("is_started", True):
            is_embedded = settings.get("embedded", False)
            hansard.init(endpoint=sink, data=data, service_name="bench", embedded=is_embedded)
        return hansard.tool(work), hansard.flush

    return set_up


def hansard(sink: str) -> SetUp:
    return _hansard(sink)


def hansard_embedded(sink: str) -> SetUp:
    return _hansard(sink, embedded=True)


def hansard_off(sink: str) -> SetUp:
    return _hansard(sink, is_started=False)


def langfuse(sink: str) -> SetUp:
    package: Any = import_module("langfuse")

    def set_up() -> tuple[Function, Flush]:
        client = package.Langfuse(public_key="pk-lf-bench", secret_key="sk-lf-bench", host=sink)
        return package.observe(as_type="tool")(work), client.flush

    return set_up


def openinference(sink: str) -> SetUp:
    otel: Any = import_module("phoenix.otel")

    def set_up() -> tuple[Function, Flush]:
        provider = otel.register(
            endpoint=f"{sink}/v1/traces", protocol="http/protobuf", batch=True, verbose=False
        )
        return provider.get_tracer("bench").tool(work), provider.force_flush

    return set_up


def mlflow(sink: str) -> SetUp:
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{sink}/v1/traces"
    os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
    package: Any = import_module("mlflow")

    def set_up() -> tuple[Function, Flush]:
        traced = package.trace(work, span_type="TOOL")
        traced("first")  # it sets up with its first span
        provider: Any = import_module("mlflow.tracing.provider")
        return traced, lambda: provider.provider.get().force_flush()

    return set_up


def lmnr(sink: str) -> SetUp:
    package: Any = import_module("lmnr")

    def set_up() -> tuple[Function, Flush]:
        address, _, port = sink.rpartition(":")
        package.Laminar.initialize(
            project_api_key="bench",
            base_url=address,
            http_port=int(port),
            force_http=True,
            instruments=set(),
        )
        return package.observe(span_type="TOOL")(work), package.Laminar.flush

    return set_up


def traceloop(sink: str) -> SetUp:
    sdk: Any = import_module("traceloop.sdk")
    decorators: Any = import_module("traceloop.sdk.decorators")
    trace: Any = import_module("opentelemetry.trace")

    def set_up() -> tuple[Function, Flush]:
        sdk.Traceloop.init(
            app_name="bench",
            api_endpoint=sink,
            api_key="bench",
            telemetry_enabled=False,
            instruments=set(),
        )
        return decorators.tool(name="work")(work), trace.get_tracer_provider().force_flush

    return set_up


def logfire(sink: str) -> SetUp:
    os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{sink}/v1/traces"
    package: Any = import_module("logfire")

    def set_up() -> tuple[Function, Flush]:
        package.configure(send_to_logfire=False, console=False, metrics=False)
        traced = package.instrument("work", record_return=True)(work)
        return traced, package.force_flush

    return set_up


CONTENDERS: dict[str, Callable[[str], SetUp]] = {
    "plain function": plain,
    "opentelemetry": opentelemetry,
    "hansard": hansard,
    "hansard embedded": hansard_embedded,
    "hansard, no init()": hansard_off,
    "langfuse": langfuse,
    "openinference": openinference,
    "mlflow": mlflow,
    "lmnr": lmnr,
    "traceloop": traceloop,
    "logfire": logfire,
}


# ---- told what to do


def _tell(**values: float) -> None:
    sys.__stdout__.write(json.dumps(values) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def _rss_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def _texts(size_bytes: int, count: int) -> list[str]:
    """Return texts as programs pass them, no two the same."""
    words = "the quick brown fox jumps over the lazy dog; " * (size_bytes // 45 + 1)
    began = time.monotonic_ns()
    return [f"{began + number:020d} {words}"[:size_bytes] for number in range(count)]


def _round(function: Function, flush: Flush, size_bytes: int, calls: int) -> None:
    texts = _texts(size_bytes, calls)
    process_s, thread_s = time.process_time(), time.thread_time()
    for text in texts:
        function(text)
    thread_s = time.thread_time() - thread_s
    flush()
    process_s = time.process_time() - process_s
    _tell(thread_us=thread_s / calls * 1e6, process_us=process_s / calls * 1e6)


def main() -> None:
    """Set up, and take rounds until stdin ends."""
    name, sink = sys.argv[1:3]
    sys.stdout = sys.stderr  # what an SDK prints is not for whoever measures
    before_mib, began_s = _rss_mib(), time.perf_counter()
    set_up = CONTENDERS[name](sink)
    imported_s = time.perf_counter()
    function, flush = set_up()
    ended_s = time.perf_counter()
    _tell(
        import_s=imported_s - began_s,
        set_up_s=ended_s - imported_s,
        rss_mib=_rss_mib() - before_mib,
    )
    for line in sys.stdin:
        if line.strip() == "rest":
            process_s = time.process_time()
            time.sleep(5)
            _tell(idle_percent=(time.process_time() - process_s) / 5 * 100, rss_mib=_rss_mib())
            continue
        size_bytes, calls = (int(word) for word in line.split())
        _round(function, flush, size_bytes, calls)
    os._exit(0)  # nobody is measured while it ends


if __name__ == "__main__":
    main()
