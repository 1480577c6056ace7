"""The server that telemetry goes to, over its HTTP API: it decides, remembers and replays."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from hansard._backend.http_client import BackendResponse, HttpClient, credential, error_of
from hansard._backend.protocol import Parts, checked
from hansard._gate.arguments import Json
from hansard._gate.redaction import Veil
from hansard._runtime import recorder as _state
from hansard._runtime.data_folder import Keys, key_or_random, read_or_make_key
from hansard.errors import (
    CallRefused,
    DecisionConflict,
    DecisionRefused,
    GateError,
    GateUnavailable,
    InvalidArguments,
    MemoryRefused,
    MemoryUnavailable,
    PolicyDenied,
    ReplayUnavailable,
    UnknownApproval,
)
from hansard_compiler.canonical import canonical_json
from hansard_compiler.errors import NotFoundError
from hansard_compiler.retention_modes import RetentionMode

if TYPE_CHECKING:
    from hansard._config.settings import Settings
    from hansard_compiler.redaction.redactor import Redactor
    from hansard_compiler.transcripts.ports import Transcripts

KEY_HEADER: Final = "Hansard-Proposal-Key"
_APPROVALS: Final = "/v1/approvals"
_MOST_WAIT_S: Final = 60.0
_REPLAY: Final = "/v1/replay"
_REPLAY_WAIT_S: Final = 50.0  # of one request; a replay may take many
_IDS: Final = frozenset({"run_id", "step_id", "memory_id", "source_run_id", "source_step_ids"})


class HttpBackend(Parts):
    """One server as a Backend."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        super().__init__(lambda: HttpDecisions(settings), lambda: HttpMemory(settings))

    def transcripts(self, redactor: Redactor) -> Transcripts:
        from hansard._backend.http_transcripts import transcripts_at

        is_full = self._settings.retention is RetentionMode.FULL_PAYLOADS
        clean = None if is_full else lambda text: redactor.redact_text(text).text
        return transcripts_at(self._settings, clean)

    def make_replay(self, body: Json, timeout_s: float, *, goes_on: str | None = None) -> Json:
        """Have the server make a replay, and ask until it ends or time is up."""
        route = _REPLAY if goes_on is None else f"{_REPLAY}/{goes_on}/continue"
        what = ("step", str(body["step_id"])) if goes_on is None else ("replay", goes_on)
        try:
            client = HttpClient.of(self._settings)
            try:
                found = _replayed(client.post(route, body), *what)
                until_s = time.monotonic() + timeout_s
                while found["state"] == "running" and time.monotonic() < until_s:
                    path = f"{_REPLAY}/{found['replay_id']}?wait={_REPLAY_WAIT_S:.0f}"
                    found = _replayed(client.get(path, wait_s=_REPLAY_WAIT_S), *what)
            finally:
                client.close()
        except GateUnavailable as error:
            message = f"no replay can be made by {self._settings.endpoint}: {error}"
            raise ReplayUnavailable(message) from error
        return found


# ---- approvals


class HttpDecisions:
    """The approvals of a server; threads may share it.

    Secrets in arguments stay in this process. Of what was proposed here the keys are stored in the
    data folder, so that a program may run it after a restart.
    """

    is_local = False

    def __init__(self, settings: Settings) -> None:
        self._http = HttpClient.of(settings)
        self._keys = Keys(settings.data)
        self._veil = Veil.of(settings.retention, key_or_random(settings.data))

    def propose(self, proposal: Json) -> Json:
        # With a key of our own choice the same proposal, sent twice, is one.
        key = f"hpk_{secrets.token_urlsafe(24)}"
        body = self._body({**proposal, "proposal_key": key})
        response = self._http.post(_APPROVALS, body, is_repeatable=True)
        return self._with_key(_taken(response, tool=str(proposal.get("tool"))))

    def _with_key(self, made: Json) -> Json:
        if isinstance(made.get("proposal_key"), str):
            self._keys.keep(str(made.get("approval_id")), made["proposal_key"])
        return made

    def approval(
        self, approval_id: str, *, key: str | None = None, wait_s: float = 0, revision: int = 0
    ) -> Json:
        wait_s = min(wait_s, _MOST_WAIT_S)
        key = key or self._keys.find(approval_id)  # a token that only sends reads its own by it
        query = {"wait": f"{wait_s:g}", "revision": revision} if wait_s else {}
        response = self._http.get(
            _address(approval_id) + (f"?{urlencode(query)}" if query else ""),
            wait_s=wait_s,
            headers={KEY_HEADER: key} if key else {},
        )
        return checked(_taken(response))

    def approvals(self, **filters: str | int | None) -> list[Json]:
        query = urlencode({name: value for name, value in filters.items() if value is not None})
        body = _taken(self._http.get(f"{_APPROVALS}?{query}"))
        items = body.get("items")
        if not isinstance(items, list):
            raise GateUnavailable("the server answered something that is no list of approvals")
        return [checked(one) for one in items]

    def decide(self, approval_id: str, verb: str, body: Json) -> Json:
        if verb != "repropose":
            return self._decided(f"{_address(approval_id)}/{verb}", body)
        key = self._keys.find(approval_id)
        headers = {KEY_HEADER: key} if key else {}
        at = f"{_address(approval_id)}/{verb}"
        return _taken(self._http.post(at, self._body(body), headers=headers))

    def claim(self, approval_id: str, body: Json) -> Json:
        key = body.get("proposal_key") or self._keys.find(approval_id)
        request = self._body({"arguments": body["arguments"], "proposal_key": key})
        claim = _taken(self._http.post(f"{_address(approval_id)}/claim", request))
        if not isinstance(claim.get("claim_id"), str) or not claim["claim_id"]:
            raise GateUnavailable("the server answered a claim with something that is none")
        return claim

    def report_result(self, approval_id: str, body: Json) -> Json:
        message = {**_without_nulls(body), "ok": body["ok"]}  # null is an outcome: unknown
        if self._veil.mode is RetentionMode.METADATA_ONLY:
            message.pop("result_digest", None)
        ended = _taken(self._http.post(f"{_address(approval_id)}/result", message))
        self._keys.forget(approval_id)
        return ended

    def undo(self, approval_id: str, body: Json) -> Json:
        return self._with_key(self._decided(f"{_address(approval_id)}/undo", body))

    def _decided(self, address: str, body: Json) -> Json:
        """Send a decision with its own token, never with that of the program."""
        fields = {name: value for name, value in body.items() if name != "token"}
        headers = credential(body.get("token"))
        response = self._http.post(address, _without_nulls(fields), headers=headers, own=False)
        code, message, details = error_of(response)
        if code == "name_reserved" or (response.status in (401, 403) and code != "blocked"):
            raise DecisionRefused(code, message, details)
        return _taken(response)

    def note(self, event: Json) -> None:
        _taken(self._http.post("/v1/events", self._body(event)))

    def _body(self, message: Json) -> Json:
        """Return what leaves the process."""
        body = _without_nulls(message)
        if isinstance(body.get("arguments"), Mapping):
            body["arguments"] = self._veil.arguments(body["arguments"])
        for name in ("description", "text"):
            if name in body:
                body[name] = self._veil.text(body[name])
        return _without_nulls(body)

    def close(self) -> None:
        self._http.close()


def _without_nulls(message: Json) -> Json:
    return {name: value for name, value in message.items() if value is not None}


def _address(approval_id: str) -> str:
    return f"{_APPROVALS}/{quote(approval_id, safe='')}"


def _taken(response: BackendResponse, *, tool: str = "") -> Json:
    """Return the body of a success response; raises the error that any other one means."""
    if response.is_ok:
        return response.body
    raise _refusal(response, tool)


def _refusal(response: BackendResponse, tool: str) -> GateError:
    code, message, details = error_of(response)
    if code == "blocked":
        return PolicyDenied(tool, message, details)
    if response.status == 404 or code == "ambiguous_id":
        return UnknownApproval(message)
    if response.status == 409:
        return DecisionConflict(code, message, details)
    if response.status in (400, 413, 422):
        return InvalidArguments(tool, message) if tool else CallRefused(tool, message)
    return GateUnavailable(f"the server answered {response.status}: {message}")


# ---- memory


class HttpMemory:
    """Memory of a server."""

    def __init__(self, settings: Settings) -> None:
        self._mode = settings.retention
        self._data = settings.data
        try:
            self._client = HttpClient.of(settings)
        except GateUnavailable as error:
            raise MemoryUnavailable(str(error)) from error

    def ask(self, verb: str, arguments: Json, *, token: str | None = None) -> Json:
        address, body = f"/v1/memory/{verb}", self._clean(verb, arguments)
        is_decision = verb == "invalidate"
        headers = credential(token) if is_decision else {}
        try:
            response = self._client.post(address, body, headers=headers, own=not is_decision)
        except GateUnavailable as error:
            raise MemoryUnavailable(str(error)) from error
        if response.is_ok:
            return response.body
        code, message, details = error_of(response)
        if response.status >= 500:
            raise MemoryUnavailable(message)
        raise MemoryRefused(code, message, details)

    def _clean(self, verb: str, arguments: Json) -> Json:
        """Return a request without secrets; where no content may leave, no memory is written."""
        if self._mode is RetentionMode.FULL_PAYLOADS:
            return arguments
        if self._mode is RetentionMode.METADATA_ONLY and verb == "write":
            raise MemoryRefused(
                "memory_not_retained",
                "retention metadata_only keeps no content: nothing is remembered",
            )
        clean: Json = {}
        for key, value in arguments.items():
            text = value if isinstance(value, str) else canonical_json(value)
            found = text if key in _IDS else self._redactor.redact_text(text).text
            if found == text:
                clean[key] = value
            else:
                clean[key] = found if isinstance(value, str) else json.loads(found)
        return clean

    @cached_property
    def _redactor(self) -> Redactor:
        from hansard_compiler.redaction.redactor import Redactor

        recorder = _state.active()
        return Redactor(read_or_make_key(self._data)) if recorder is None else recorder.redactor

    def close(self) -> None:
        self._client.close()


# ---- replays


def _replayed(response: BackendResponse, kind: str, identifier: str) -> Json:
    """Return a body, or raise the server's error."""
    if response.is_ok:
        return response.body
    from hansard_compiler.replay.errors import NotReplayable, ReplayReason

    code, message, details = error_of(response)
    if code == NotFoundError.code:
        raise NotFoundError(kind, identifier)
    if code != NotReplayable.code:
        raise ReplayUnavailable(f"the server says {code}: {message}")
    reasons = {one.value: one for one in ReplayReason}
    reason = reasons.get(str(details.pop("reason", "")), ReplayReason.INTERNAL)
    replay_id = details.pop("replay_id", None)
    refusal = NotReplayable(reason, message.removeprefix(f"{reason.meaning}: "), **details)
    refusal.replay_id = replay_id if isinstance(replay_id, str) else None
    raise refusal
