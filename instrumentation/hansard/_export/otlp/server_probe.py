"""Whether the collector at the other end is Hansard: only it is sent start records and pulses.

Another back end would show a span without an end as broken, and keep pulses as logs. Asked on the
sender's thread after something arrived there, so it costs the program nothing; a collector in
between answers for itself, and is not Hansard.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from hansard._config.values import GRPC
from hansard._export.otlp.exporter_logs import listening
from hansard._runtime.forks import call_apart_from_forks

if TYPE_CHECKING:
    from hansard._config.settings import Settings

PRODUCT: Final = "hansard"  # what /healthz and Hello name themselves
HELLO: Final = "/hansard.v1.Presence/Hello"  # empty request, PRODUCT as the answer's bytes
_ANSWER_S: Final = 2.0
_ROOTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE", "OTEL_EXPORTER_OTLP_CERTIFICATE")


def is_hansard(settings: Settings) -> bool:
    """Ask the collector who it is; False when it does not say, or not within two seconds."""
    if settings.embedded:
        return True
    with listening():
        try:
            return _says_grpc(settings) if settings.protocol == GRPC else _says_http(settings)
        except Exception:  # whatever it does, it is nobody who answers as Hansard does
            return False


def _says_http(settings: Settings) -> bool:
    import requests

    response = requests.get(
        f"{settings.endpoint.rstrip('/')}/healthz",
        headers=dict(settings.headers),
        timeout=_ANSWER_S,
        allow_redirects=False,
        verify=_roots() or True,
    )
    told: Any = response.json()
    return isinstance(told, dict) and told.get("product") == PRODUCT


def _says_grpc(settings: Settings) -> bool:
    import grpc

    address = urlsplit(settings.traces_endpoint)
    target = address.netloc or settings.traces_endpoint
    if address.scheme == "http":
        channel = grpc.insecure_channel(target)
    else:
        roots = _roots()
        pem = None
        if roots is not None:
            with open(roots, "rb") as file:
                pem = file.read()
        channel = grpc.secure_channel(target, grpc.ssl_channel_credentials(pem))
    with call_apart_from_forks(channel.close), channel:
        metadata = tuple((name.lower(), text) for name, text in settings.headers.items())
        answer = channel.unary_unary(HELLO)(b"", timeout=_ANSWER_S, metadata=metadata)
    return bool(answer == PRODUCT.encode())


def _roots() -> str | None:
    """Return the certificate file that the stock exporters trust, None for the system's."""
    return next((os.environ[name] for name in _ROOTS if os.environ.get(name)), None)
