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
from hansard.session import end_run, record_tool_call, record_tool_result, start_run
from hansard.setup import flush, init, shutdown
from hansard.step import Step
from hansard.workers import propagate, propagating, worker
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from hansard import testing

__all__ = [
    "RetentionMode",
    "Run",
    "SpanHandle",
    "Step",
    "__version__",
    "agent",
    "current_run",
    "end_run",
    "extract",
    "flush",
    "init",
    "inject",
    "inject_environment",
    "instrument",
    "propagate",
    "propagating",
    "record_http",
    "record_tool_call",
    "record_tool_result",
    "shutdown",
    "span",
    "start_run",
    "testing",
    "tool",
    "trace",
    "uninstrument",
    "unrecord_http",
    "worker",
]


def __getattr__(name: str) -> object:
    if name == "testing":  # with the SDK of OpenTelemetry, which a program needs in `init()` first
        return import_module("hansard.testing")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
