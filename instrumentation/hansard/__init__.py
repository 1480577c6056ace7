"""Hansard: the official record of what your agents saw, decided and did.

This is the package a program imports. It never imports the server.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # not from `typing`: a hook has no time to load it

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hansard import approvals, chat, errors, memory, results, testing, transcripts
    from hansard._clients.client_patch import instrument_client, uninstrument_client
    from hansard._clients.instrument import instrument, uninstrument
    from hansard._context.compile import compile_step
    from hansard._context.compiled_step import CompiledStep
    from hansard._context.compressor import model_compressor
    from hansard._decorators.decorators import agent, tool, trace
    from hansard._gate.gate import Gate, gate
    from hansard._gate.tools import ToolSet
    from hansard._models.answer import ModelAnswer
    from hansard._models.call import acall_model, call_model
    from hansard._replay import continue_replay, replay
    from hansard._runs.run import (
        Run,
        current_run,
        end_run,
        record_tool_call,
        record_tool_result,
        start_run,
    )
    from hansard._runs.step import Step, score
    from hansard._runtime.recorder import Recorder
    from hansard._runtime.setup import flush, init, shutdown
    from hansard._tracing.propagation import child_environment, extract, inject
    from hansard._tracing.span_handle import SpanHandle, span
    from hansard._tracing.workers import worker_initializer, wrap_executor, wrap_with_context
    from hansard.errors import CallRefused, GateError, NotApproved
    from hansard.results import (
        Completed,
        Executed,
        Expired,
        GateResult,
        Pending,
        Rejected,
        Revised,
    )
    from hansard.transcripts import Transcript, transcript
    from hansard_compiler.errors import ConfigError, HansardError
    from hansard_compiler.retention_modes import RetentionMode

__all__ = [
    "CallRefused",
    "CompiledStep",
    "Completed",
    "ConfigError",
    "Executed",
    "Expired",
    "Gate",
    "GateError",
    "GateResult",
    "HansardError",
    "ModelAnswer",
    "NotApproved",
    "Pending",
    "Recorder",
    "Rejected",
    "RetentionMode",
    "Revised",
    "Run",
    "SpanHandle",
    "Step",
    "ToolSet",
    "Transcript",
    "__version__",
    "acall_model",
    "agent",
    "approvals",
    "call_model",
    "chat",
    "child_environment",
    "compile_step",
    "continue_replay",
    "current_run",
    "end_run",
    "errors",
    "extract",
    "flush",
    "gate",
    "init",
    "inject",
    "instrument",
    "instrument_client",
    "memory",
    "model_compressor",
    "record_tool_call",
    "record_tool_result",
    "replay",
    "results",
    "score",
    "shutdown",
    "span",
    "start_run",
    "testing",
    "tool",
    "trace",
    "transcript",
    "transcripts",
    "uninstrument",
    "uninstrument_client",
    "worker_initializer",
    "wrap_executor",
    "wrap_with_context",
]


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


def __getattr__(name: str) -> object:
    if name in _LAZY:
        found = getattr(import_module(_LAZY[name]), name)
        if found.__module__.startswith(f"{__name__}._"):
            found.__module__ = __name__  # for help(), tracebacks and pickle: where programs find it
        globals()[name] = found
        return found
    # Modules, of which `testing` needs the OTel SDK.
    if name in ("approvals", "chat", "errors", "memory", "results", "testing", "transcripts"):
        return import_module(f"hansard.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
