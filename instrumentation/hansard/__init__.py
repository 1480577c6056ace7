"""Hansard: the official record of what your agents saw, decided and did.

This is the package a program imports. It never imports the server.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # not from `typing`: a hook has no time to load it

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hansard import approvals, chat, memory, testing
    from hansard.answer import ModelAnswer
    from hansard.calling import acall_model, call_model
    from hansard.clients.http import record_http, unrecord_http
    from hansard.clients.switching import instrument, uninstrument
    from hansard.compiled import CompiledStep
    from hansard.compiling import compile_step
    from hansard.compressing import model_compressor
    from hansard.decorators import agent, tool, trace
    from hansard.gating.gate import gate
    from hansard.gating.tools import ToolSet
    from hansard.handle import SpanHandle, span
    from hansard.propagation import extract, inject, inject_environment
    from hansard.replaying import continue_replay, replay
    from hansard.run import Run, current_run
    from hansard.scoring import score
    from hansard.session import end_run, record_tool_call, record_tool_result, start_run
    from hansard.setup import flush, init, shutdown
    from hansard.step import Step
    from hansard.transcripts import Transcript, transcript
    from hansard.transcripts_in_process import InProcessTranscripts
    from hansard.workers import propagate, propagating, worker
    from hansard_compiler.retention import RetentionMode

__all__ = [
    "CompiledStep",
    "InProcessTranscripts",
    "ModelAnswer",
    "RetentionMode",
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
    "compile_step",
    "continue_replay",
    "current_run",
    "end_run",
    "extract",
    "flush",
    "gate",
    "init",
    "inject",
    "inject_environment",
    "instrument",
    "memory",
    "model_compressor",
    "propagate",
    "propagating",
    "record_http",
    "record_tool_call",
    "record_tool_result",
    "replay",
    "score",
    "shutdown",
    "span",
    "start_run",
    "testing",
    "tool",
    "trace",
    "transcript",
    "uninstrument",
    "unrecord_http",
    "worker",
]


# Imported when it is used: a command that only needs the version does not load OpenTelemetry.
_LAZY = {
    "acall_model": "hansard.calling",
    "agent": "hansard.decorators",
    "call_model": "hansard.calling",
    "compile_step": "hansard.compiling",
    "CompiledStep": "hansard.compiled",
    "continue_replay": "hansard.replaying",
    "current_run": "hansard.run",
    "end_run": "hansard.session",
    "extract": "hansard.propagation",
    "flush": "hansard.setup",
    "gate": "hansard.gating.gate",
    "init": "hansard.setup",
    "inject": "hansard.propagation",
    "inject_environment": "hansard.propagation",
    "InProcessTranscripts": "hansard.transcripts_in_process",
    "instrument": "hansard.clients.switching",
    "model_compressor": "hansard.compressing",
    "ModelAnswer": "hansard.answer",
    "propagate": "hansard.workers",
    "propagating": "hansard.workers",
    "record_http": "hansard.clients.http",
    "record_tool_call": "hansard.session",
    "record_tool_result": "hansard.session",
    "replay": "hansard.replaying",
    "RetentionMode": "hansard_compiler.retention",
    "Run": "hansard.run",
    "score": "hansard.scoring",
    "shutdown": "hansard.setup",
    "span": "hansard.handle",
    "SpanHandle": "hansard.handle",
    "start_run": "hansard.session",
    "Step": "hansard.step",
    "tool": "hansard.decorators",
    "ToolSet": "hansard.gating.tools",
    "trace": "hansard.decorators",
    "Transcript": "hansard.transcripts",
    "transcript": "hansard.transcripts",
    "uninstrument": "hansard.clients.switching",
    "unrecord_http": "hansard.clients.http",
    "worker": "hansard.workers",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        found = getattr(import_module(_LAZY[name]), name)
        globals()[name] = found  # asked for once
        return found
    # Modules, of which the last needs the OTel SDK.
    if name in ("approvals", "chat", "memory", "testing"):
        return import_module(f"hansard.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
