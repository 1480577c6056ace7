"""Log lines of a command, on stderr: one mechanism for all that is logged, whoever logs it."""

from __future__ import annotations

import logging
import sys
import threading
from types import TracebackType

from hansard_web.ui.format import printable

_BAR = "  │ "  # before the lines of a traceback


class LogLine(logging.Formatter):
    """A record as one line, and its traceback set off below it.

    What is logged may hold recorded text: it begins no line of its own, and drives no terminal.
    """

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without control characters and line breaks but those of the log."""
        record.message = record.getMessage()
        told = [printable(self.formatMessage(record))]
        below = [self.formatException(record.exc_info)] if record.exc_info else []
        below += [record.stack_info] if record.stack_info else []
        told += [_BAR + printable(one) for text in below for one in text.split("\n")]
        return "\n".join(told)


def log_to_stderr() -> None:
    """Have warnings and errors of this process on stderr, unless a program logs by itself."""
    if logging.root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(LogLine())
    logging.root.addHandler(handler)
    logging.captureWarnings(True)
    threading.excepthook = _log_thread
    sys.excepthook = _log_end


def _log_thread(told: threading.ExceptHookArgs) -> None:
    if told.exc_value is None or issubclass(told.exc_type, SystemExit):
        return
    name = told.thread.name if told.thread is not None else "a thread"
    error = (told.exc_type, told.exc_value, told.exc_traceback)
    logging.getLogger("hansard").error("%s ended", name, exc_info=error)


def _log_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    logging.getLogger("hansard").critical("ended", exc_info=(kind, error, trace))
