"""Decisions kept by a server, over its HTTP API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from hansard.gating.arguments import Json
from hansard.gating.errors import (
    BadArguments,
    CallRefused,
    DecisionConflict,
    GateError,
    GateUnavailable,
    PolicyDenied,
)
from hansard.gating.http_client import Answer, HttpClient, error_of
from hansard.gating.port import checked

if TYPE_CHECKING:
    from hansard.config import Settings

KEY_HEADER: Final = "Hansard-Proposal-Key"
_APPROVALS: Final = "/v1/approvals"
_MOST_WAIT_S: Final = 60.0


class HttpDecisions:
    """The server that telemetry goes to; threads may share it."""

    is_local = False

    def __init__(self, settings: Settings) -> None:
        self._http = HttpClient.of(settings)

    def propose(self, proposal: Json) -> Json:
        body = {key: value for key, value in proposal.items() if value is not None}
        return _taken(self._http.post(_APPROVALS, body), tool=str(proposal.get("tool")))

    def approval(
        self, approval_id: str, *, key: str | None = None, wait_s: float = 0, revision: int = 0
    ) -> Json:
        wait_s = min(wait_s, _MOST_WAIT_S)
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
        body = {key: value for key, value in body.items() if value is not None}
        return _taken(self._http.post(f"{_address(approval_id)}/{verb}", body))

    def claim(self, approval_id: str, body: Json) -> Json:
        key = body.get("proposal_key")
        asked = {"arguments": body["arguments"]}
        if isinstance(key, str):
            token = self.approval(approval_id, key=key).get("token")
            if isinstance(token, str):
                asked["token"] = token
        answer = _taken(self._http.post(f"{_address(approval_id)}/claim", asked))
        if not isinstance(answer.get("claim_id"), str) or not answer["claim_id"]:
            raise GateUnavailable("the server answered a claim with something that is none")
        return answer

    def tell_result(self, approval_id: str, body: Json) -> Json:
        told = {key: value for key, value in body.items() if value is not None}
        return _taken(self._http.post(f"{_address(approval_id)}/result", told))

    def note(self, event: Json) -> None:
        _taken(self._http.post("/v1/events", {k: v for k, v in event.items() if v is not None}))

    def close(self) -> None:
        self._http.close()


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
    if answer.status == 409:
        return DecisionConflict(code, message, details)
    if answer.status in (400, 404, 413, 422):
        return BadArguments(tool, message) if tool else CallRefused(tool, message)
    return GateUnavailable(f"the server answered {answer.status}: {message}")
