"""A report sent to an address: one POST of JSON, which ends in time and is not repeated."""

from __future__ import annotations

import json
from collections.abc import Sequence
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final
from urllib.parse import urlsplit

from hansard_collector.timed_response import TimedResponse
from hansard_compiler.errors import HansardError

TIMEOUT_S: Final = 5.0  # to be reached, and as long again to answer
_MOST_CHARS: Final = 30_000  # chat programs refuse 40,000
_MOST_ANSWER_BYTES: Final = 64 << 10
_CONNECTIONS: Final = {"http": HTTPConnection, "https": HTTPSConnection}


class ReportNotSent(HansardError):
    """The address did not take a report. The message names its host alone: the rest is a secret."""

    code = "report_delivery_failed"


def send_report(
    address: str, *, name: str, text: str, recipients: Sequence[str], timeout_s: float = TIMEOUT_S
) -> None:
    """Send a report; `text` is what chat programs show of a message. Raises ReportNotSent.

    No redirect is followed: an address that is set permits no other.
    """
    told = {"text": text[:_MOST_CHARS], "report": name, "recipients": list(recipients)}
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        raise ReportNotSent("the address is none") from None
    host = str(parts.hostname)
    connection = _CONNECTIONS[parts.scheme](host, port, timeout=timeout_s)
    connection.response_class = TimedResponse
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    headers = {"Content-Type": "application/json", "User-Agent": "hansard"}
    try:
        connection.request("POST", path, json.dumps(told).encode(), headers)
        response = connection.getresponse()
        response.read(_MOST_ANSWER_BYTES)
    except TimeoutError:
        raise ReportNotSent(f"{host} did not answer within {timeout_s:g} s") from None
    except (OSError, ValueError) as error:  # a ValueError: no host, or none that can be encoded
        reason = error.strerror if isinstance(error, OSError) else None
        raise ReportNotSent(f"{host} cannot be reached: {reason or type(error).__name__}") from None
    except HTTPException as error:
        raise ReportNotSent(f"{host} does not speak HTTP: {type(error).__name__}") from None
    finally:
        connection.close()
    if not HTTPStatus.OK <= response.status < HTTPStatus.MULTIPLE_CHOICES:
        raise ReportNotSent(f"{host} answered {response.status}")
