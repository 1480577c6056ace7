"""HTTP requests: one attempt each, by the stock exporters or for a payload, and its response.

They retry by themselves, for seconds and in memory, and take a redirect for success. Here each
attempt ends at once and says why, so that what failed can be on disk before it is tried again.
Imported with the exporters only: `requests` takes a tenth of a second.
"""

from __future__ import annotations

import netrc  # noqa: F401, which `requests` would import with its first request: see `forking`
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import requests

from hansard._export.otlp.exporter import ExportOutcome, ExportResponse, of_status

if TYPE_CHECKING:
    pass

_PAGE: Final = "text/html"
_OTLP: Final = "OTEL_EXPORTER_OTLP_"


class NotSent(Exception):
    """An attempt that did not succeed; no error that the exporters would retry by themselves."""


class WatchedSession(requests.Session):
    """Keeps the response to the last request; used by one thread at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.response: ExportResponse | None = None
        self.body: bytes | None = None

    @contextmanager
    def carrying(self, body: bytes) -> Iterator[None]:
        """Send this in place of what requests in the block have for a body."""
        self.body = body
        try:
            yield
        finally:
            self.body = None

    def request(self, *arguments: Any, **options: Any) -> requests.Response:
        """Send a request; raises NotSent unless it was taken."""
        self.response = None
        if self.body is not None:
            options["data"] = self.body
        try:
            response = self._attempt(*arguments, **options)
        except requests.RequestException as error:
            self.response = ExportResponse(ExportOutcome.LATER, words_of(error))
            raise NotSent(self.response.reason) from None
        read = _answer_of(response)
        self.response = read
        if read.outcome is not ExportOutcome.ACCEPTED:
            raise NotSent(read.reason)
        return response

    def _attempt(self, *arguments: Any, **options: Any) -> requests.Response:
        try:
            return super().request(*arguments, **options)
        except requests.Timeout:
            raise
        except requests.ConnectionError:
            # Servers close idle connections, and this one may have been closed under our hands.
            return super().request(*arguments, **options)


def _answer_of(response: requests.Response) -> ExportResponse:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if 200 <= response.status_code < 300 and media_type == _PAGE:
        return ExportResponse(
            ExportOutcome.LATER, "it answered with a web page; is it an OTLP endpoint?"
        )
    return of_status(
        response.status_code,
        response.reason or "",
        retry_after=response.headers.get("retry-after"),
    )


def words_of(error: requests.RequestException) -> str:
    """Return a failed attempt in words."""
    if isinstance(error, requests.Timeout):
        return "it did not answer in time"
    if isinstance(error, requests.exceptions.SSLError):
        return f"no secure connection could be made ({_cause(error)})"
    if isinstance(error, requests.ConnectionError):
        return f"no connection ({_cause(error)})"
    return f"nothing could be sent ({type(error).__name__}: {error})"


def _cause(error: BaseException) -> str:
    """Return the innermost reason: libraries wrap it three times."""
    inner: Any = error
    for _ in range(8):
        deeper = getattr(inner, "reason", None) or inner.__cause__ or inner.__context__
        if not isinstance(deeper, BaseException):
            break
        inner = deeper
    message = getattr(inner, "strerror", None) or str(inner) or type(inner).__name__
    # A server that speaks something else is quoted here.
    return " ".join(str(message).split()).encode("ascii", "backslashreplace").decode()[:200]
