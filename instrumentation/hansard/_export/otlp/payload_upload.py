"""Upload of payloads that are too large for an OTLP request: one attempt each, and its response."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, attach, detach, set_value

from hansard._export.otlp.exporter import ExportOutcome, ExportResponse, listening
from hansard._export.otlp.http_session import NotSent, WatchedSession

if TYPE_CHECKING:
    from hansard._config.settings import Settings

_OTLP: Final = "OTEL_EXPORTER_OTLP_"


class Uploader:
    """Uploads payloads that are too large for an OTLP request; used by one thread.

    By `PUT /v1/payloads/sha256:…`.
    """

    def __init__(self, base: str, settings: Settings) -> None:
        self._address = f"{base.rstrip('/')}/v1/payloads/"
        self._headers = dict(settings.headers)
        self._timeout_s = settings.timeout_s
        self._session = WatchedSession()
        self._session.verify = os.environ.get(f"{_OTLP}CERTIFICATE") or True
        certificate = os.environ.get(f"{_OTLP}CLIENT_CERTIFICATE")
        key = os.environ.get(f"{_OTLP}CLIENT_KEY")
        if certificate:
            self._session.cert = (certificate, key) if key else certificate

    def put(self, ref: str, data: bytes, *, media_type: str) -> ExportResponse:
        """Upload bytes once and return the response. Never raises."""
        # What watches the program's HTTP calls must not see this one.
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            with listening():
                self._session.put(
                    self._address + ref,
                    data=data,
                    headers={**self._headers, "content-type": media_type},
                    timeout=self._timeout_s,
                    allow_redirects=False,
                )
        except NotSent:
            pass
        except Exception as error:  # an address or a header that cannot be sent at all
            return ExportResponse(ExportOutcome.LATER, f"{type(error).__name__}: {error}"[:200])
        finally:
            detach(token)
        return self._session.response or ExportResponse(ExportOutcome.LATER, "there was no answer")

    def close(self) -> None:
        """Close the connection."""
        self._session.close()
