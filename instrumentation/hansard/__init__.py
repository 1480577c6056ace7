"""Hansard: the official record of what your agents saw, decided and did.

This is the package a program imports. It never imports the server.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

from hansard.clients import instrument, record_http, uninstrument, unrecord_http
from hansard.decorators import agent, tool, trace
from hansard.handle import SpanHandle, span
from hansard.propagation import extract, inject, inject_environment
from hansard.run import Run, current_run
from hansard.scoring import score
from hansard.session import end_run, record_tool_call, record_tool_result, start_run
from hansard.setup import flush, init, shutdown
from hansard.step import Step
from hansard.workers import propagate, propagating, worker
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from hansard import approvals, chat, memory, testing
    from hansard.answer import ModelAnswer
    from hansard.calling import acall_model, call_model
    from hansard.compiled import CompiledStep
    from hansard.compiling import compile_step
    from hansard.compressing import model_compressor
    from hansard.gating.gate import gate
    from hansard.gating.tools import ToolSet
    from hansard.replaying import continue_replay, replay
    from hansard.transcripts import Transcript, transcript
    from hansard.transcripts_in_process import InProcessTranscripts

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


# With the compiler or the gate, which not every program needs.
_LAZY = {
    "CompiledStep": "compiled",
    "InProcessTranscripts": "transcripts_in_process",
    "ModelAnswer": "answer",
    "ToolSet": "gating.tools",
    "Transcript": "transcripts",
    "acall_model": "calling",
    "call_model": "calling",
    "compile_step": "compiling",
    "continue_replay": "replaying",
    "gate": "gating.gate",
    "model_compressor": "compressing",
    "replay": "replaying",
    "transcript": "transcripts",
}


def __getattr__(name: str) -> object:
    if name in _LAZY:
        return getattr(import_module(f"hansard.{_LAZY[name]}"), name)
    # Modules, of which the last needs the OTel SDK.
    if name in ("approvals", "chat", "memory", "testing"):
        return import_module(f"hansard.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
