"""A folder with what of LangChain, and of OpenInference's instrumentor of it, is asked for.

Written after langchain-core 1.7 and openinference-instrumentation-langchain 0.1.80; what the real
ones send is in `tests/fixtures/clients/langgraph_instrumented`.
"""

from __future__ import annotations

from pathlib import Path

_FILES = {
    "langchain_core/__init__.py": "",
    "langchain_core/callbacks.py": """
class BaseCallbackHandler:
    run_inline = False
""",
    "langchain_core/runnables/__init__.py": "",
    "langchain_core/runnables/config.py": """
from contextvars import ContextVar
var_child_runnable_config = ContextVar("child_runnable_config", default=None)
""",
    "langchain_core/tracers/__init__.py": "",
    "langchain_core/tracers/context.py": """
hooks = []
def register_configure_hook(context_var, inheritable, handle_class=None, env_var=None):
    hooks.append(context_var)
""",
    "langchain_stand_in_instrumentor.py": """
from contextlib import contextmanager
from types import SimpleNamespace
from uuid import uuid4
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tracers.context import hooks
from opentelemetry import trace
from opentelemetry.instrumentation.instrumentor import BaseInstrumentor

class Instrumentor(BaseInstrumentor):
    def instrumentation_dependencies(self):
        return []
    def _instrument(self, tracer_provider, **kwargs):
        self.tracer, self.spans, self.parents = tracer_provider.get_tracer("langchain"), {}, {}
    def _uninstrument(self, **kwargs):
        pass
    def get_span(self, run_id):
        return self.spans.get(run_id)
    def get_ancestors(self, run_id):
        found, parent = [], self.parents.get(run_id)
        while parent:
            found.append(self.spans[parent])
            parent = self.parents.get(parent)
        return found
    def begin(self, name, *, batch_size=0):
        config = var_child_runnable_config.get()
        run_id, parent = uuid4(), config and config["callbacks"].parent_run_id
        context = trace.set_span_in_context(self.spans[parent]) if parent else None
        self.parents[run_id] = parent
        self.spans[run_id] = self.tracer.start_span(name, context=context)
        for hook in hooks if batch_size else ():
            if (handler := hook.get()) is not None and handler.run_inline:
                handler.on_chat_model_start({}, [], run_id=run_id, batch_size=batch_size)
        return run_id
    def end(self, run_id):
        self.spans.pop(run_id).end()
    @contextmanager
    def model(self):
        run_id = self.begin("model", batch_size=1)
        try:
            yield self.spans[run_id]
        finally:
            self.end(run_id)
    @contextmanager
    def chain(self, name="chain"):
        run_id = self.begin(name)
        config = {"callbacks": SimpleNamespace(parent_run_id=run_id)}
        token = var_child_runnable_config.set(config)
        try:
            yield self.spans[run_id]
        finally:
            var_child_runnable_config.reset(token)
            self.end(run_id)
""",
}


def write_langchain(folder: Path) -> None:
    """Write the packages into a folder that is on `sys.path`."""
    for name, code in _FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
