"""Which paths are OTLP's, whatever prefix, slash or method a sender writes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from hansard_collector.otlp.signals import CONTRACTS
from hansard_collector.pipeline.requests import Signal

# Where other backends take OTLP: moving here is then a change of the host alone.
PREFIXES = ("/otel", "/otlp", "/api/otel", "/api/public/otel")

_SIGNALS = {contract.path: signal for signal, contract in CONTRACTS.items()}
_SLASHES = re.compile(r"/+")
_DEVELOPMENT = "/v1development/"

_SEND_HERE = "traces go to /v1/traces, logs to /v1/logs, metrics to /v1/metrics"


@dataclass(frozen=True, slots=True)
class ReceiverPath:
    """The target of a path: a signal, or a reason why there is none."""

    signal: Signal | None
    problem: str = ""


_ROOT = ReceiverPath(
    None,
    f"nothing is received at this path: {_SEND_HERE} (OTEL_EXPORTER_OTLP_ENDPOINT gets these"
    " appended, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must name the whole path)",
)
_UNSUPPORTED = ReceiverPath(None, f"this signal is not received here: {_SEND_HERE}")


def find_target(path: str, *, prefixes: Sequence[str] = PREFIXES) -> ReceiverPath | None:
    """Return what an OTLP sender wants at `path`, or None if the path is not OTLP's.

    Doubled and trailing slashes are nothing to a sender, so they are nothing here: a redirect
    would lose the data, since exporters take a 3xx for success.
    """
    plain = _SLASHES.sub("/", f"/{path}").rstrip("/")
    prefix = next((each for each in prefixes if f"{plain}/".startswith(f"{each}/")), "")
    rest = plain.removeprefix(prefix)
    if rest in _SIGNALS:
        return ReceiverPath(_SIGNALS[rest])
    if not rest:
        return _ROOT
    return _UNSUPPORTED if f"{rest}/".startswith(_DEVELOPMENT) else None


def is_otlp_path(path: str, method: str = "POST", *, prefixes: Sequence[str] = PREFIXES) -> bool:
    """Whether refusals on this path are a google.rpc.Status: `/` is OTLP's only for POST."""
    target = find_target(path, prefixes=prefixes)
    return target is not None and (target is not _ROOT or method == "POST")
