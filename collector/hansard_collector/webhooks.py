"""One POST of JSON to an address of the settings: it ends in time and follows no redirect."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from hansard_compiler.errors import HansardError

TIMEOUT_S: Final = 5.0  # to be reached, and as long again to answer
_MOST_ANSWER_BYTES: Final = 64 << 10
_MOST_WAIT_S: Final = 86_400


class WebhookFailed(HansardError):
    """An address did not take a message. Names its host alone: the rest of it is a secret."""

    code = "webhook_failed"

    def __init__(
        self, message: str, *, http_status: int | None = None, retry_after_s: int = 0
    ) -> None:
        super().__init__(message)
        self.http_status = http_status  # None: there was no response
        self.retry_after_s = retry_after_s  # 0: the response asks for no delay


def host_of(address: str) -> str:
    """Return the host of an address; "" of one that cannot be read."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def post_json(
    address: str, body: bytes, *, headers: Mapping[str, str] = {}, timeout_s: float = TIMEOUT_S
) -> int:
    """Send a body and return the status of the response, which is 2xx; raises WebhookFailed."""
    # Imported here: pages and commands that only read need no TLS.
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    from hansard_collector.timed_response import TimedResponse

    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise WebhookFailed("the address is none") from None
    host = str(parts.hostname)
    kinds = {"http": HTTPConnection, "https": HTTPSConnection}
    connection = kinds[parts.scheme](host, port, timeout=timeout_s)
    connection.response_class = TimedResponse
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    common = {"Content-Type": "application/json", "User-Agent": "hansard"}
    try:
        connection.request("POST", path, body, {**common, **headers})
        response = connection.getresponse()
        response.read(_MOST_ANSWER_BYTES)
    except TimeoutError:
        raise WebhookFailed(f"{host} did not answer within {timeout_s:g} s") from None
    except (OSError, ValueError) as error:  # a ValueError: no host, or none that can be encoded
        reason = error.strerror if isinstance(error, OSError) else None
        raise WebhookFailed(f"{host} cannot be reached: {reason or type(error).__name__}") from None
    except HTTPException as error:
        raise WebhookFailed(f"{host} does not speak HTTP: {type(error).__name__}") from None
    finally:
        connection.close()
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise WebhookFailed(
            f"{host} answered {response.status}",
            http_status=response.status,
            retry_after_s=_seconds(response.getheader("Retry-After", "")),
        )
    return int(response.status)


def _seconds(text: str) -> int:
    """Return the delay of a Retry-After header in seconds; 0 of one that names a date."""
    return min(int(text), _MOST_WAIT_S) if text.isascii() and text.isdigit() else 0
