"""`hansard payload`: bytes by reference, and whether they are what it says."""

from __future__ import annotations

import hashlib
import http.client
import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final, Protocol

import apsw
import click

from hansard_compiler.calls import Json
from hansard_compiler.errors import HansardError, NotFoundError
from hansard_store.content.payload_uses import list_payloads, unmet_payloads
from hansard_store.content.payloads import (
    PayloadState,
    get_payload,
    parse_payload_ref,
    payload_ref,
    read_unchecked,
)
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import InvalidQueryError, PayloadAlteredError, StoreCorruptError
from hansard_web.cli.base import (
    CommandGroup,
    Failed,
    Misused,
    json_option,
    print_json,
    setting_options,
    write_bytes,
)
from hansard_web.cli.store import NoStoreError, find_store, open_store
from hansard_web.cli.tables import progress
from hansard_web.ui import format as fmt

# Where `hansard payload` gets bytes: a data folder on this machine, or a server over HTTP.

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


class _Source(Protocol):
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
            with _OPENER.open(request, timeout=_ANSWER_S) as response:
                return Fetched(
                    ref=ref,
                    stored_ref=response.headers.get("Hansard-Payload", ref),
                    media_type=response.headers.get("Content-Type", "application/octet-stream"),
                    data=response.read(),
                    is_redacted=response.headers.get("Hansard-Redacted") == "true",
                )
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(ref, error) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise UnreachableError(f"{self.address} does not answer: {reason}") from None

    def _refused(self, ref: str, error: urllib.error.HTTPError) -> HansardError:
        try:
            problem = json.loads(error.read(100_000))["error"]
            code, message = str(problem["code"]), str(problem["message"])
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


_UNKNOWN: Final = "not stored here"
_SOUND: Final = frozenset({PayloadState.INTACT, PayloadState.REDACTED})


@click.group(cls=CommandGroup)
def payload() -> None:
    """Payloads: get the bytes of one, verify them."""


_server_option = click.option(
    "--server", metavar="URL", help="Ask a server over HTTP instead of reading the data folder."
)
_token_option = click.option("--token", envvar="HANSARD_TOKEN", help="Of that server.")


@payload.command()
@click.argument("ref")
@setting_options("data")
@_server_option
@_token_option
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file."
)
@json_option
def get(
    *,
    ref: str,
    data: str | None,
    server: str | None,
    token: str | None,
    output: Path | None,
    as_json: bool,
) -> None:
    """Write the bytes of a payload, to stdout or a file.

    REF is sha256:<64 hex digits>, as spans name it. With --json what it is is printed; the bytes
    then go to the file alone.

    Example: hansard payload get sha256:9f86d0… -o prompt.json
    """
    ref = _checked(ref)
    with _source(data, server, token) as source:
        found = source.fetch(ref)
    if output is not None or not as_json:
        write_bytes([found.data], output)
    if as_json:
        print_json(
            {
                "ref": found.ref,
                "stored_ref": found.stored_ref,
                "media_type": found.media_type,
                "size": len(found.data),
                "redacted": found.is_redacted,
                "state": found.state.value,
            }
        )
    elif found.is_redacted:
        click.echo("redacted at retention: these are not the bytes that were sent", err=True)


@payload.command()
@click.argument("refs", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every payload of the data folder.")
@setting_options("data")
@_server_option
@_token_option
@json_option
def verify(
    *,
    refs: Sequence[str],
    everything: bool,
    data: str | None,
    server: str | None,
    token: str | None,
    as_json: bool,
) -> None:
    """Hash the bytes again and compare them with their reference.

    intact: the bytes that were sent. redacted at retention: secrets were taken out before they
    were stored; they are what was stored then. Exit 1 when any is altered, missing or not stored.

    Example: hansard payload verify --all
    """
    if everything == bool(refs):
        raise Misused("name payloads, or --all of them")
    if everything and server is not None:
        raise Misused("--all reads the data folder; over HTTP name the payloads")
    payload_refs = [_checked(ref) for ref in refs]
    with _source(data, server, token) as source:
        unmet: list[tuple[bytes, int]] = []
        if everything and isinstance(source, StoreSource):
            payload_refs = [payload_ref(one) for one in list_payloads(source.connection)]
            unmet = unmet_payloads(source.connection)
        items = _verified(source, payload_refs)
    _tell(items, unmet, everything=everything, as_json=as_json)
    unsound = sum(item["state"] not in _SOUND for item in items)
    if unsound:
        raise Failed(f"{fmt.plural(unsound, 'payload')} of {len(items):,} cannot be had as sent")


@contextmanager
def _source(data: str | None, server: str | None, token: str | None) -> Iterator[_Source]:
    if server is not None:
        yield ServerSource(server, token)
        return
    try:
        folder = find_store(data)
    except NoStoreError as error:
        raise Failed(f"{error}; or ask a server with --server URL") from None
    with closing(open_store(folder)) as connection:
        yield StoreSource(folder, connection)


def _checked(ref: str) -> str:
    try:
        return payload_ref(parse_payload_ref(ref))
    except InvalidQueryError as error:
        raise Misused(str(error)) from None


def _verified(source: _Source, refs: Sequence[str]) -> list[Json]:
    items = []
    with progress() as tell:
        for done, ref in enumerate(refs, 1):
            items.append(_verify_one(source, ref))
            tell("payloads", done, len(refs))
    return items


def _verify_one(source: _Source, ref: str) -> Json:
    found = None
    try:
        found = source.fetch(ref)
        state = found.state.value
    except NotFoundError:
        state = _UNKNOWN
    except PayloadAlteredError:
        state = PayloadState.ALTERED.value
    except StoreCorruptError:
        state = PayloadState.MISSING.value
    stored_ref, size = (found.stored_ref, len(found.data)) if found else (None, None)
    return {"ref": ref, "state": state, "stored_ref": stored_ref, "size": size}


def _tell(
    items: Sequence[Json], unmet: Sequence[tuple[bytes, int]], *, everything: bool, as_json: bool
) -> None:
    counts = Counter(item["state"] for item in items)
    if as_json:
        missing = [{"ref": payload_ref(digest), "runs": runs} for digest, runs in unmet]
        problem: Json = {"checked": len(items), "states": dict(counts), "items": items}
        print_json(problem | ({"never_arrived": missing} if everything else {}))
        return
    for item in items:
        if not everything or item["state"] not in _SOUND:
            click.echo(f"{item['ref']}  {item['state']}")
    if everything:
        text = ", ".join(f"{count:,} {state}" for state, count in sorted(counts.items()))
        click.echo(f"{fmt.plural(len(items), 'payload')}: {text or 'nothing to verify'}")
    if unmet:
        click.echo(
            f"{fmt.plural(len(unmet), 'payload')} that runs name never arrived (--json lists them)"
        )
