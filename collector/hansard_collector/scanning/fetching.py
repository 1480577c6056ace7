"""One GET over HTTP that ends: in time however slowly it drips, and within a number of bytes."""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

from hansard_collector.scanning.errors import BadAnswer, SourceDown
from hansard_collector.timed_response import TimedResponse
from hansard_compiler.errors import ConfigError

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "hansard"}
_CONNECTIONS = {"http": HTTPConnection, "https": HTTPSConnection}


def check_address(address: str) -> str:
    """Return an address that can be fetched from, without a slash at its end."""
    try:
        parts = urlsplit(address)
        is_place = parts.scheme in _CONNECTIONS and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number
        is_place = False
    is_plain = address.isascii() and address.isprintable() and not set(address) & set(" ?#@")
    if not is_place or not is_plain:
        raise ConfigError(f"{address!r} is no address of a source; expected https://… or http://…")
    return address.rstrip("/")


def fetch(url: str, *, timeout_s: float, most_bytes: int) -> bytes:
    """Return the body at an address.

    It has `timeout_s` to be reached, and as long again to answer the whole. Follows no redirect:
    whoever permits one address has not permitted another. Raises SourceDown or BadAnswer.
    """
    parts = urlsplit(url)
    host = str(parts.hostname)
    connection = _CONNECTIONS[parts.scheme](host, parts.port, timeout=timeout_s)
    connection.response_class = TimedResponse
    try:
        connection.request("GET", parts.path, headers=_HEADERS)
        return _body(connection.getresponse(), host, most_bytes=most_bytes)
    except TimeoutError:
        raise SourceDown(f"{host} did not answer within {timeout_s:g} s") from None
    except OSError as error:
        raise SourceDown(f"{host} cannot be reached: {error}") from None
    except HTTPException as error:
        raise BadAnswer(f"{host} does not speak HTTP: {type(error).__name__}") from None
    finally:
        connection.close()


def _body(response: HTTPResponse, host: str, *, most_bytes: int) -> bytes:
    status = response.status
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or status == HTTPStatus.TOO_MANY_REQUESTS:
        raise SourceDown(f"{host} answered {status}")
    if status != HTTPStatus.OK:
        raise BadAnswer(f"{host} answered {status}; expected 200")
    body = response.read(most_bytes + 1)
    if len(body) > most_bytes:
        raise BadAnswer(f"{host} answered more than {most_bytes:,} bytes")
    return body
