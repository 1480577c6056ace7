"""Where `hansard payload` gets bytes: a data folder on this machine, or a server over HTTP."""

from __future__ import annotations

import hashlib
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Protocol

import apsw

from hansard_compiler.errors import HansardError, NotFoundError
from hansard_store.content.payloads import (
    PayloadState,
    get_payload,
    parse_payload_ref,
    read_unchecked,
)
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import PayloadAlteredError, StoreCorruptError
from hansard_web.cli.store import open_store

_ANSWER_S: Final = 30.0
_HTTP: Final = ("http://", "https://")


class UnreachableError(HansardError):
    """The server did not give what was asked."""

    code = "unreachable"


@dataclass(frozen=True, slots=True)
class Fetched:
    """A payload as somebody handed it out."""

    ref: str  # as asked
    stored_ref: str  # of the bytes, as their keeper says
    media_type: str
    data: bytes
    is_redacted: bool

    @property
    def state(self) -> PayloadState:
        """Hash the bytes and say whether they are those that the reference promises."""
        found = f"sha256:{hashlib.sha256(self.data).hexdigest()}"
        if found == self.ref:
            return PayloadState.INTACT
        if self.is_redacted and found == self.stored_ref:
            return PayloadState.REDACTED
        return PayloadState.ALTERED


class Source(Protocol):
    """Gives payloads by reference."""

    def fetch(self, ref: str) -> Fetched:
        """Raise NotFoundError, StoreCorruptError when the file is gone, or UnreachableError."""


@dataclass(frozen=True, slots=True)
class StoreSource:
    """The payloads of a data folder; no server is needed."""

    folder: DataFolder
    connection: apsw.Connection

    def fetch(self, ref: str) -> Fetched:
        payload = get_payload(self.connection, parse_payload_ref(ref))
        data = read_unchecked(self.folder, payload)
        is_redacted = payload.redacted is not None
        return Fetched(ref, payload.ref, payload.media_type, data, is_redacted)


@contextmanager
def store_source(folder: DataFolder) -> Iterator[StoreSource]:
    """Open a data folder's store read-only for the block."""
    connection = open_store(folder)
    try:
        yield StoreSource(folder, connection)
    finally:
        connection.close()


@dataclass(frozen=True, slots=True)
class ServerSource:
    """The payloads of a server, wherever it is."""

    address: str
    token: str | None = None

    def fetch(self, ref: str) -> Fetched:
        if not self.address.startswith(_HTTP):
            raise UnreachableError(f"{self.address!r} is no address: http://… or https://…")
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        request = urllib.request.Request(
            f"{self.address.rstrip('/')}/v1/payloads/{ref}", headers=headers
        )
        try:
            with _OPENER.open(request, timeout=_ANSWER_S) as answer:
                return _fetched(ref, answer.headers, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(ref, error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise UnreachableError(f"{self.address} does not answer: {reason}") from None

    def _refused(self, ref: str, error: urllib.error.HTTPError) -> HansardError:
        try:
            told = json.loads(error.read(100_000))["error"]
            code, message = str(told["code"]), str(told["message"])
        except (ValueError, KeyError, TypeError, OSError):
            return UnreachableError(f"{self.address} answered {error.code} and is no Hansard")
        if error.code == HTTPStatus.NOT_FOUND and code == "not_found":
            return NotFoundError("payload", ref)
        if code == PayloadAlteredError.code:
            return PayloadAlteredError(ref)
        if code == "corrupt":
            return StoreCorruptError(message)
        return UnreachableError(f"{self.address} answered {error.code}: {message}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The token is for the server that was named, and for no other."""

    def redirect_request(self, *_: object) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


def _fetched(ref: str, headers: http.client.HTTPMessage, data: bytes) -> Fetched:
    return Fetched(
        ref=ref,
        stored_ref=headers.get("Hansard-Payload", ref),
        media_type=headers.get("Content-Type", "application/octet-stream"),
        data=data,
        is_redacted=headers.get("Hansard-Redacted") == "true",
    )
