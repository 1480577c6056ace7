"""What the stock exporters log while we send through them: read, and not passed on.

They tell each failed attempt, with no end. The program is told once, by `hansard.troubles`. Of the
gRPC exporter its log line is also the one public place where the status code of a failure stands.
Lines of other threads, of the application's own exporters, pass untouched.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGERS = (
    "hansard.pipeline",
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.exporter.otlp.proto.common._internal",
    "opentelemetry.exporter.otlp.proto.grpc.exporter",
    "opentelemetry.exporter.otlp.proto.http._log_exporter",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "urllib3.connectionpool",
)
_heard = threading.local()


class _Listener(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        lines: list[logging.LogRecord] | None = getattr(_heard, "lines", None)
        if lines is None:
            return True
        lines.append(record)
        return False


_listener = _Listener()


def _listen() -> None:
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if _listener not in logger.filters:
            # Before the exporters' own filter, which swallows a line that it has seen.
            logger.filters.insert(0, _listener)


@contextmanager
def listening() -> Iterator[list[logging.LogRecord]]:
    """Yield the list that gets every line this thread's exporters log in the block."""
    _listen()
    lines: list[logging.LogRecord] = []
    _heard.lines = lines
    try:
        yield lines
    finally:
        _heard.lines = None
