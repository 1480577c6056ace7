"""A folder with what of LlamaIndex, and of OpenInference's instrumentor of it, is asked for.

Written after llama-index-core 0.14.25, llama-index-instrumentation 0.6 and
openinference-instrumentation-llama-index 4.6.1; what the real ones send is in
`tests/fixtures/clients/llama_index_streams`.
"""

from __future__ import annotations

from pathlib import Path

_FILES = {
    "llama_index/__init__.py": "",
    "llama_index/core/__init__.py": "",
    "llama_index/core/base/__init__.py": "",
    "llama_index/core/base/llms/__init__.py": "",
    "llama_index/core/base/llms/base.py": """
class BaseLLM:
    pass
""",
    "llama_index/core/instrumentation/span_handlers.py": """
class BaseSpanHandler:
    def __init__(self):
        self.open_spans = {}
    def span_enter(self, id_, bound_args, instance=None, parent_id=None, **kwargs):
        if span := self.new_span(id_=id_, bound_args=bound_args, instance=instance):
            self.open_spans[id_] = span
    def span_exit(self, id_, bound_args, instance=None, result=None, **kwargs):
        if self.prepare_to_exit_span(
            id_=id_, bound_args=bound_args, instance=instance, result=result
        ):
            del self.open_spans[id_]
""",
    "llama_index/core/instrumentation/__init__.py": """
from uuid import uuid4

class Dispatcher:
    def __init__(self):
        self.span_handlers = []
    def call(self, instance, function):
        id_ = f"{type(instance).__name__}-{uuid4()}"
        for handler in self.span_handlers:
            handler.span_enter(id_=id_, bound_args=None, instance=instance)
        result = function()
        for handler in self.span_handlers:
            handler.span_exit(id_=id_, bound_args=None, instance=instance, result=result)
        return result

dispatcher = Dispatcher()

def get_dispatcher(name="root"):
    return dispatcher
""",
    "llama_index_stand_in_instrumentor.py": """
from collections.abc import AsyncGenerator, Generator
from types import SimpleNamespace
from opentelemetry import context, trace
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import BaseSpanHandler

class Held:
    def __init__(self, span):
        self.__pydantic_private__ = {"_otel_span": span}
        self.token = context.attach(trace.set_span_in_context(span))

class Handler(BaseSpanHandler):
    def __init__(self, tracer):
        super().__init__()
        self.tracer, self.waiting = tracer, []
    def new_span(self, id_, **kwargs):
        return Held(self.tracer.start_span(id_.partition("-")[0]))
    def prepare_to_exit_span(self, id_, result, **kwargs):
        held = self.open_spans[id_]
        context.detach(held.token)
        span = held.__pydantic_private__["_otel_span"]
        if isinstance(result, Generator | AsyncGenerator):
            self.waiting.append(span)
        else:
            span.end()
        return held

class Instrumentor(BaseInstrumentor):
    def instrumentation_dependencies(self):
        return []
    def _instrument(self, tracer_provider, **kwargs):
        self.handler = Handler(tracer_provider.get_tracer("llama_index"))
        get_dispatcher().span_handlers.append(self.handler)
    def _uninstrument(self, **kwargs):
        get_dispatcher().span_handlers.remove(self.handler)
    def end(self):
        while self.handler.waiting:
            self.handler.waiting.pop().end()

class Model(BaseLLM):
    def stream(self, ask):
        def gen():
            yield from ask(stream=True)
        return get_dispatcher().call(self, gen)
    def astream(self, ask):
        async def gen():
            async for one in await ask(stream=True):
                yield one
        return get_dispatcher().call(self, gen)

    def chat(self, raw):
        return get_dispatcher().call(self, lambda: SimpleNamespace(raw=raw))

class Engine:
    def stream(self, model, ask):
        def gen():
            for one in model.stream(ask):
                yield one
        return get_dispatcher().call(self, gen)
""",
}


def write_llama_index(folder: Path) -> None:
    """Write the packages into a folder that is on `sys.path`."""
    for name, code in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
