"""The heartbeat beside a server: a process for each cycle, so that ingest keeps its own.

A cycle reads a great deal and computes: in a thread it would take the interpreter from ingest and
pages, and what it allocates would stay with the server. The child runs with lower priority.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryFile
from typing import Final

from hansard_collector.background import Background
from hansard_web.app.config import Config, judge_arguments
from hansard_web.ui.format import printable

_POLL_S: Final = 0.2
_END_S: Final = 5.0  # for a cycle to end when the server does
_NICE: Final = 10
_MOST_ERROR_BYTES: Final = 2_000
_log = logging.getLogger("hansard.heartbeat")


class HeartbeatProcesses:
    """Starts a cycle every so often for as long as `working` lasts; one at a time."""

    def __init__(self, config: Config, *, every_s: float) -> None:
        self._command = _command(config)
        # Not an argument: every user of the machine reads those, and the address is a secret.
        self._environment = dict(os.environ)
        if config.report_webhook is not None:
            self._environment["HANSARD_REPORT_WEBHOOK"] = config.report_webhook
        self._background = Background(
            "hansard-heartbeat",
            self._cycle,
            every_s=every_s,
            first_s=min(every_s, 60.0),
            log=_log,
            put_off="the heartbeat's cycle is put off",
        )

    @contextmanager
    def working(self) -> Iterator[None]:
        """Run cycles for as long as the block lasts."""
        with self._background.working():
            yield

    def _cycle(self, stop: threading.Event) -> None:
        with TemporaryFile() as errors:  # a pipe that nobody reads would stop a talkative child
            child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
                env=self._environment,
            )
            while child.poll() is None:
                if stop.wait(_POLL_S):
                    _end(child)
                    return
            if child.returncode:
                errors.seek(0)
                text = errors.read(_MOST_ERROR_BYTES).decode("utf-8", "replace").strip()
                _log.warning("the heartbeat ended with %d: %s", child.returncode, printable(text))


def _command(config: Config) -> list[str]:
    script = (
        f"import os; os.nice({_NICE}) if hasattr(os, 'nice') else None; "
        "from hansard._cli.main import main; main()"
    )
    options: list[tuple[str, object]] = [
        ("--data", config.data),
        ("--retention", config.retention),
        ("--outbound", config.outbound),
        ("--heartbeat-window", _seconds(config.heartbeat_window)),
        ("--stale-after", _seconds(config.stale_after)),
        ("--evidence", config.evidence),
        *judge_arguments(config),
        ("--scan-url", config.scan_url),
        ("--report-every", _seconds(config.report_every)),
        ("--report-escalation", _seconds(config.report_escalation)),
        *(("--recipients", who) for who in config.recipients),
        *(("--detect-threshold", f"{rule}={most}") for rule, most in config.detect_threshold),
        *(("--detect-min-cases", f"{rule}={least}") for rule, least in config.detect_min_cases),
        *(("--detect-window", f"{rule}={_seconds(ns)}") for rule, ns in config.detect_window),
        ("--config", config.config),
    ]
    named = [part for flag, value in options if value is not None for part in (flag, str(value))]
    return [sys.executable, "-c", script, "heartbeat", "--once", "--origin", "server", *named]


def _seconds(nanoseconds: int) -> str:
    return f"{nanoseconds // 10**9}s"


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.kill(child.pid, 9)
        child.wait()
