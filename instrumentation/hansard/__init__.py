"""Hansard: the official record of what your agents saw, decided and did.

This is the package a program imports. It never imports the server.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # not from `typing`: a hook has no time to load it

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hansard import approvals as approvals
    from hansard import chat as chat
    from hansard import errors as errors
    from hansard import memory as memory
    from hansard import results as results
    from hansard import testing as testing
    from hansard import transcripts as transcripts
    from hansard._clients.client_patch import instrument_client as instrument_client
    from hansard._clients.client_patch import uninstrument_client as uninstrument_client
    from hansard._clients.instrument import instrument as instrument
    from hansard._clients.instrument import uninstrument as uninstrument
    from hansard._context.compile import compile_step as compile_step
    from hansard._context.compiled_step import CompiledStep as CompiledStep
    from hansard._context.compressor import model_compressor as model_compressor
    from hansard._decorators.decorators import agent as agent
    from hansard._decorators.decorators import tool as tool
    from hansard._decorators.decorators import trace as trace
    from hansard._gate.gate import Gate as Gate
    from hansard._gate.gate import gate as gate
    from hansard._gate.tools import ToolSet as ToolSet
    from hansard._models.answer import ModelAnswer as ModelAnswer
    from hansard._models.call import acall_model as acall_model
    from hansard._models.call import call_model as call_model
    from hansard._replay import continue_replay as continue_replay
    from hansard._replay import replay as replay
    from hansard._runs.run import Run as Run
    from hansard._runs.run import current_run as current_run
    from hansard._runs.run import end_run as end_run
    from hansard._runs.run import record_tool_call as record_tool_call
    from hansard._runs.run import record_tool_result as record_tool_result
    from hansard._runs.run import start_run as start_run
    from hansard._runs.step import Step as Step
    from hansard._runs.step import score as score
    from hansard._runtime.recorder import Recorder as Recorder
    from hansard._runtime.setup import flush as flush
    from hansard._runtime.setup import init as init
    from hansard._runtime.setup import shutdown as shutdown
    from hansard._tracing.propagation import child_environment as child_environment
    from hansard._tracing.propagation import extract as extract
    from hansard._tracing.propagation import inject as inject
    from hansard._tracing.span_handle import SpanHandle as SpanHandle
    from hansard._tracing.span_handle import span as span
    from hansard._tracing.workers import worker_initializer as worker_initializer
    from hansard._tracing.workers import wrap_executor as wrap_executor
    from hansard._tracing.workers import wrap_with_context as wrap_with_context
    from hansard.errors import CallRefused as CallRefused
    from hansard.errors import GateError as GateError
    from hansard.errors import NotApproved as NotApproved
    from hansard.results import Completed as Completed
    from hansard.results import Executed as Executed
    from hansard.results import Expired as Expired
    from hansard.results import GateResult as GateResult
    from hansard.results import Pending as Pending
    from hansard.results import Rejected as Rejected
    from hansard.results import Revised as Revised
    from hansard.transcripts import Transcript as Transcript
    from hansard.transcripts import transcript as transcript
    from hansard_compiler.errors import ConfigError as ConfigError
    from hansard_compiler.errors import HansardError as HansardError
    from hansard_compiler.retention_modes import RetentionMode as RetentionMode

# Imported when it is used: a command that only needs the version does not load OpenTelemetry.
_MODULES = {
    "hansard._clients.client_patch": ("instrument_client", "uninstrument_client"),
    "hansard._clients.instrument": ("instrument", "uninstrument"),
    "hansard._context.compile": ("compile_step",),
    "hansard._context.compiled_step": ("CompiledStep",),
    "hansard._context.compressor": ("model_compressor",),
    "hansard._decorators.decorators": ("agent", "tool", "trace"),
    "hansard._gate.gate": ("gate", "Gate"),
    "hansard._gate.tools": ("ToolSet",),
    "hansard._models.answer": ("ModelAnswer",),
    "hansard._models.call": ("acall_model", "call_model"),
    "hansard._replay": ("continue_replay", "replay"),
    "hansard._runs.run": (
        "current_run",
        "end_run",
        "record_tool_call",
        "record_tool_result",
        "Run",
        "start_run",
    ),
    "hansard._runs.step": ("score", "Step"),
    "hansard._runtime.recorder": ("Recorder",),
    "hansard._runtime.setup": ("flush", "init", "shutdown"),
    "hansard._tracing.propagation": ("child_environment", "extract", "inject"),
    "hansard._tracing.span_handle": ("span", "SpanHandle"),
    "hansard._tracing.workers": ("worker_initializer", "wrap_executor", "wrap_with_context"),
    "hansard.errors": ("CallRefused", "GateError", "NotApproved"),
    "hansard.results": (
        "Completed",
        "Executed",
        "Expired",
        "GateResult",
        "Pending",
        "Rejected",
        "Revised",
    ),
    "hansard.transcripts": ("Transcript", "transcript"),
    "hansard_compiler.errors": ("ConfigError", "HansardError"),
    "hansard_compiler.retention_modes": ("RetentionMode",),
}
_LAZY = {name: module for module, names in _MODULES.items() for name in names}
# Of these `testing` needs the OTel SDK.
_SUBMODULES = ("approvals", "chat", "errors", "memory", "results", "testing", "transcripts")
__all__ = sorted((*_LAZY, *_SUBMODULES, "__version__"))  # of the names above


def __getattr__(name: str) -> object:
    if name in _LAZY:
        found = getattr(import_module(_LAZY[name]), name)
        if found.__module__.startswith(f"{__name__}._"):
            found.__module__ = __name__  # for help(), tracebacks and pickle: where programs find it
        globals()[name] = found
        return found
    if name in _SUBMODULES:
        return import_module(f"hansard.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
