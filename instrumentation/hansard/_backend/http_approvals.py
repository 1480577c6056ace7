"""Decisions kept by a server, over its HTTP API."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from hansard._backend.approvals import checked
from hansard._backend.http_client import Answer, HttpClient, credential, error_of
from hansard._backend.proposal_keys import Keys
from hansard._gate.arguments import Json
from hansard._gate.redaction import Veil
from hansard._runtime.data_folder import read_or_make_key
from hansard.errors import (
    BadArguments,
    CallRefused,
    DecisionConflict,
    DecisionRefused,
    GateError,
    GateUnavailable,
    PolicyDenied,
    UnknownApproval,
)
from hansard_compiler.retention import RetentionMode

if TYPE_CHECKING:
    from hansard._config.settings import Settings

KEY_HEADER: Final = "Hansard-Proposal-Key"
_APPROVALS: Final = "/v1/approvals"
_MOST_WAIT_S: Final = 60.0


class HttpDecisions:
    """The server that telemetry goes to; threads may share it.

    Secrets in arguments stay in this process. Of what was proposed here the keys are kept in the
    data folder, so that a program may run it after a restart.
    """

    is_local = False

    def __init__(self, settings: Settings) -> None:
        self._http = HttpClient.of(settings)
        self._keys = Keys(settings.data)
        self._veil = Veil.of(settings.retention, _key_of(settings))

    def propose(self, proposal: Json) -> Json:
        # With a key of our own choice the same proposal, sent twice, is one.
        key = f"hpk_{secrets.token_urlsafe(24)}"
        body = self._body({**proposal, "proposal_key": key})
        answer = self._http.post(_APPROVALS, body, is_repeatable=True)
        return self._kept(_taken(answer, tool=str(proposal.get("tool"))))

    def _kept(self, made: Json) -> Json:
        if isinstance(made.get("proposal_key"), str):
            self._keys.keep(str(made.get("approval_id")), made["proposal_key"])
        return made

    def approval(
        self, approval_id: str, *, key: str | None = None, wait_s: float = 0, revision: int = 0
    ) -> Json:
        wait_s = min(wait_s, _MOST_WAIT_S)
        key = key or self._keys.find(approval_id)  # a token that only sends reads its own by it
        asked = {"wait": f"{wait_s:g}", "revision": revision} if wait_s else {}
        answer = self._http.get(
            _address(approval_id) + (f"?{urlencode(asked)}" if asked else ""),
            wait_s=wait_s,
            headers={KEY_HEADER: key} if key else {},
        )
        return checked(_taken(answer))

    def approvals(self, **filters: str | int | None) -> list[Json]:
        asked = urlencode({name: value for name, value in filters.items() if value is not None})
        answer = _taken(self._http.get(f"{_APPROVALS}?{asked}"))
        items = answer.get("items")
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
        asked = self._body({"arguments": body["arguments"], "proposal_key": key})
        answer = _taken(self._http.post(f"{_address(approval_id)}/claim", asked))
        if not isinstance(answer.get("claim_id"), str) or not answer["claim_id"]:
            raise GateUnavailable("the server answered a claim with something that is none")
        return answer

    def tell_result(self, approval_id: str, body: Json) -> Json:
        told = {**_given(body), "ok": body["ok"]}  # null is an outcome: nobody knows
        if self._veil.mode is RetentionMode.METADATA_ONLY:
            told.pop("result_digest", None)
        ended = _taken(self._http.post(f"{_address(approval_id)}/result", told))
        self._keys.forget(approval_id)
        return ended

    def undo(self, approval_id: str, body: Json) -> Json:
        return self._kept(self._decided(f"{_address(approval_id)}/undo", body))

    def _decided(self, address: str, body: Json) -> Json:
        """Send a decision with the token that was given for it, never with that of the program."""
        told = {name: value for name, value in body.items() if name != "token"}
        headers = credential(body.get("token"))
        answer = self._http.post(address, _given(told), headers=headers, own=False)
        code, message, details = error_of(answer)
        if code == "name_reserved" or (answer.status in (401, 403) and code != "blocked"):
            raise DecisionRefused(code, message, details)
        return _taken(answer)

    def note(self, event: Json) -> None:
        _taken(self._http.post("/v1/events", self._body(event)))

    def _body(self, told: Json) -> Json:
        """Return what leaves the process."""
        body = _given(told)
        if isinstance(body.get("arguments"), Mapping):
            body["arguments"] = self._veil.arguments(body["arguments"])
        for name in ("description", "text"):
            if name in body:
                body[name] = self._veil.text(body[name])
        return _given(body)

    def close(self) -> None:
        self._http.close()


def _given(told: Json) -> Json:
    return {name: value for name, value in told.items() if value is not None}


def _key_of(settings: Settings) -> bytes:
    try:
        return read_or_make_key(settings.data)
    except OSError:
        return secrets.token_bytes(32)  # marks compare within this process only


def _address(approval_id: str) -> str:
    return f"{_APPROVALS}/{quote(approval_id, safe='')}"


def _taken(answer: Answer, *, tool: str = "") -> Json:
    """Return the body of an answer that says yes; raises what any other answer means."""
    if answer.is_ok:
        return answer.body
    raise _refusal(answer, tool)


def _refusal(answer: Answer, tool: str) -> GateError:
    code, message, details = error_of(answer)
    if code == "blocked":
        return PolicyDenied(tool, message, details)
    if answer.status == 404 or code == "ambiguous_id":
        return UnknownApproval(message)
    if answer.status == 409:
        return DecisionConflict(code, message, details)
    if answer.status in (400, 413, 422):
        return BadArguments(tool, message) if tool else CallRefused(tool, message)
    return GateUnavailable(f"the server answered {answer.status}: {message}")
