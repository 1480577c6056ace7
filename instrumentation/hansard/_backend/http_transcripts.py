"""Transcripts at a server, over HTTP: the same port as in the store.

Secrets are taken out before anything is sent. A request whose answer was lost is sent again: each
message has its id, under which the server keeps it once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from itertools import islice
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from hansard._backend.http_client import BackendResponse, HttpClient, error_of
from hansard.errors import GateUnavailable, TranscriptUnavailable
from hansard_compiler.calls import Json
from hansard_compiler.canonical import canonical_json
from hansard_compiler.errors import HansardError, NotFoundError
from hansard_compiler.transcripts import errors
from hansard_compiler.transcripts.entry import CLIP_BYTES, Clean, NewMessage, cleaned, shaped
from hansard_compiler.transcripts.ids import BranchId, ConversationId, LogId, parse_log_id
from hansard_compiler.transcripts.messages import Row, StoredMessage, decode
from hansard_compiler.transcripts.views import (
    Branch,
    Conversation,
    EndStatus,
    Fold,
    Mark,
    MarkKind,
)

if TYPE_CHECKING:
    from hansard._config.settings import Settings

_TRIES: Final = 3
_PAGE: Final = 500
_AGAIN: Final = (HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS)


def transcripts_at(settings: Settings, clean: Clean | None) -> HttpTranscripts:
    """Return the transcripts of the server that telemetry goes to; raises TranscriptUnavailable."""
    try:
        return HttpTranscripts(HttpClient.of(settings), clean)
    except GateUnavailable:
        raise TranscriptUnavailable(
            "transcripts speak HTTP, and only a gRPC endpoint is set: set http_endpoint too"
        ) from None


class HttpTranscripts:
    """The transcripts of one server. Thread-safe.

    Messages that are marked come as they are shown; `raw` requests them unchanged, which needs
    a token with the scope `admin`.
    """

    def __init__(self, client: HttpClient, clean: Clean | None, *, raw: bool = False) -> None:
        self._client = client
        self._clean = clean
        self._raw = "&raw=true" if raw else ""

    def ensure(self, name: str) -> Conversation:
        """Return the conversation of this name; made where there is none."""
        return _conversation(self._post("/v1/transcripts", {"conversation": self._text(name)}))

    def conversation(self, log: LogId) -> Conversation:
        """Return the conversation of a log; raises NotFoundError."""
        return _conversation(self._about(log))

    def append(
        self, log: LogId, messages: Sequence[NewMessage], *, clip_bytes: int = CLIP_BYTES
    ) -> list[StoredMessage]:
        """Append all or none, and return them as they are stored."""
        if not messages:
            return []
        bodies = [self._body(one) for one in messages]
        body = {"messages": bodies, "clip_bytes": clip_bytes}
        return [_stored(log, one) for one in self._post(_path(log), body)["items"]]

    def _body(self, new: NewMessage) -> Json:
        message = cleaned(shaped(new.message), self._clean)
        body: Json = {
            "message": message,
            "message_id": (new.id or secrets.token_bytes(16)).hex(),
            "is_evidence": new.is_evidence,
        }
        if new.trace_id and new.span_id:
            body["step_id"] = f"{new.trace_id.hex()}-{new.span_id.hex()}"
        return body

    def messages(
        self, log: LogId, *, after: int = -1, limit: int | None = None
    ) -> list[StoredMessage]:
        """Return messages in order, those after a position."""
        items = islice(self._items(log, after=after, limit=limit), limit)
        return [_stored(log, one) for one in items]

    def _items(self, log: LogId, *, after: int, limit: int | None) -> Iterator[Json]:
        size = min(limit or 1, _PAGE) if limit is not None else _PAGE
        path = f"{_path(log)}?limit={size}&after={after}{self._raw}"
        cursor = ""
        while True:
            page = self._get(path + cursor)
            yield from page["items"]
            if page["next_cursor"] is None:
                return
            cursor = f"&cursor={page['next_cursor']}"

    def fold(
        self, log: LogId, summary: str, *, expected_head: int | None = None, actor: str = ""
    ) -> Fold:
        """Fold all messages into a summary; raises NothingToFold, HeadStale."""
        clean = self._text(summary)
        if not clean:
            raise errors.NothingToFold("the summary is empty")
        body = {"summary": clean, "expected_head": expected_head, "by": self._text(actor)}
        return _fold(log, self._post(f"{_path(log)}/fold", body, tries=1))

    def folds(self, log: LogId) -> list[Fold]:
        """Return all folds, the oldest first; the last one counts."""
        return [_fold(log, one) for one in self._about(log)["folds"]]

    def mark(
        self,
        log: LogId,
        position: int,
        kind: MarkKind,
        *,
        reason: str,
        actor: str = "",
        superseded_by: int | None = None,
    ) -> Mark:
        """Show a message as redacted or superseded from now on, or as it is again."""
        body = {
            "position": position,
            "kind": kind,
            "reason": self._text(reason),
            "by": self._text(actor),
            "superseded_by": superseded_by,
        }
        return _mark(self._post(f"{_path(log)}/redactions", body, tries=1))

    def marks(self, log: LogId) -> list[Mark]:
        """Return all marks, the oldest first."""
        return [_mark(one) for one in self._about(log)["marks"]]

    def spawn(self, parent: LogId, name: str) -> Branch:
        """Begin the log of a sub-agent at the head of its parent's."""
        return _branch(self._post(f"{_path(parent)}/branches", {"name": self._text(name)}, tries=1))

    def branch(self, branch: BranchId) -> Branch:
        """Return a sub-agent."""
        return _branch(self._about(branch)["branch"])

    def branches(self, log: LogId) -> list[Branch]:
        """Return the sub-agents that began in a log, in order."""
        return [_branch(one) for one in self._about(log)["branches"]]

    def end(self, branch: BranchId, status: EndStatus = "done") -> Branch:
        """Say that a sub-agent ended; appending to it resumes it."""
        return _branch(self._post(f"{_path(branch)}/end", {"status": status}))

    # ---- the wire

    def _text(self, text: str) -> str:
        return text if self._clean is None else self._clean(text)

    def _about(self, log: LogId) -> Json:
        return self._get(f"{_path(log)}?limit=1")

    def _get(self, path: str) -> Json:
        return self._retried(lambda: self._client.get(path), _TRIES)

    def _post(self, path: str, body: Json, *, tries: int = _TRIES) -> Json:
        """Send something; more than once only where that does nothing twice."""
        return self._retried(lambda: self._client.post(path, body), tries)

    def _retried(self, ask: Any, tries: int) -> Json:
        """Return the response's body; raises the server's error, or TranscriptUnavailable."""
        for left in reversed(range(tries)):
            try:
                response: BackendResponse = ask()
            except GateUnavailable as error:
                if not left:
                    cause = error.__cause__ or error
                    raise TranscriptUnavailable(
                        f"no transcript can be had from {self._client.base}: {cause}"
                    ) from error
                continue
            if response.is_ok:
                return response.body
            if not left or response.status not in _AGAIN:
                raise _error(response)
        raise AssertionError("the last try returns or raises")


def _path(log: LogId) -> str:
    return f"/v1/transcripts/{quote(str(log))}"


def _error(response: BackendResponse) -> HansardError:
    """Return the error that the store itself would raise."""
    code, message, details = error_of(response)
    if code == errors.HeadStale.code:
        return errors.HeadStale(expected=details["expected"], found=details["found"])
    if code == errors.ResultWithoutCall.code:
        return errors.ResultWithoutCall(details["call_ids"])
    if code == errors.UndecodableMessage.code:
        why = message.partition("cannot be decoded: ")[2]
        return errors.UndecodableMessage(details["log"], details["position"], why)
    if code == NotFoundError.code:
        kind, _, identifier = message.removeprefix("no ").partition(" '")
        return NotFoundError(kind, identifier.rstrip("'"))
    if code == errors.TranscriptWithheld.code:
        return errors.TranscriptWithheld()
    if code == errors.MessageIdUsed.code:
        return errors.MessageIdUsed(message.split()[2])
    for kind_of in (errors.InvalidMessage, errors.NothingToFold):
        if code == kind_of.code:
            return kind_of(message)
    if response.status == HTTPStatus.BAD_REQUEST:
        return errors.InvalidMessage(message)
    return TranscriptUnavailable(f"the server answered {response.status} ({code}): {message}")


def _conversation(body: Mapping[str, Any]) -> Conversation:
    made = ConversationId.parse(body["conversation_id"])
    return Conversation(made, body["conversation"], int(body["created_ns"]))


def _stored(log: LogId, body: Mapping[str, Any]) -> StoredMessage:
    """Return a message from its response, validated like one of the store."""
    message = dict(body["message"])
    trace_id, _, span_id = (body["step_id"] or "").partition("-")
    row = Row(
        id=bytes.fromhex(body["message_id"]),
        position=body["position"],
        role=message.pop("role"),
        content=canonical_json(message),
        created_ns=int(body["created_ns"]),
        schema_version=body["content_version"],
        trace_id=bytes.fromhex(trace_id) or None,
        span_id=bytes.fromhex(span_id) or None,
    )
    return decode(log, row)


def _fold(log: LogId, body: Mapping[str, Any]) -> Fold:
    return Fold(log, body["position"], body["summary"], body["by"], int(body["created_ns"]))


def _mark(body: Mapping[str, Any]) -> Mark:
    return Mark(
        position=body["position"],
        kind=body["kind"],
        reason=body["reason"],
        actor=body["by"],
        created_ns=int(body["created_ns"]),
        superseded_by=body["superseded_by"],
    )


def _branch(body: Mapping[str, Any]) -> Branch:
    return Branch(
        id=BranchId.parse(body["branch_id"]),
        conversation=ConversationId.parse(body["conversation_id"]),
        parent=parse_log_id(body["parent"]),
        parent_position=body["parent_position"],
        name=body["name"],
        created_ns=int(body["created_ns"]),
        messages=body["messages"],
        ended=body["ended"],
    )
