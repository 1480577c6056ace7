"""Tools that change something: proposed first, run once a person approved, with those arguments.

A client cannot approve: no tool does, and what it is given to come back with (`confirmation`) is of
use only after somebody else decided. The key of a proposal is made again from it, so nothing has to
be kept meanwhile, and a restart loses nothing.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import anyio

from hansard_compiler.calls import Json
from hansard_web.mcp.api_client import Api, Refused

_CUT_OFF_S: Final = 5.0
_NO_ANSWER: Final = frozenset({"unreachable", "no_json", "internal"})  # it may have run
_KEY: Final = "Hansard-Proposal-Key"
_CONFIRMATION: Final = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{32})")
_HOW: Final = (
    "Nothing has run. A person decides on the page /approvals or with `hansard approvals`; then "
    "call this tool again with the same arguments and this `confirmation`."
)


@dataclass(frozen=True, slots=True)
class Action:
    """What is to run, as a person is asked about it.

    `work` gets the approved action, with the `claim_id` of this run of it.
    """

    tool: str
    arguments: Json
    description: str
    work: Callable[[Json], Awaitable[Json]]
    result_key: str  # where the id of what was made stands in the answer: "replay_id"


async def confirmed(api: Api, action: Action, confirmation: str | None) -> Json:
    """Propose an action, tell how it stands, or run it: whatever its approval allows.

    Raises Refused: also for an action that was rejected or has expired.
    """
    if confirmation is None:
        return await _propose(api, action)
    match = _CONFIRMATION.fullmatch(confirmation)
    if match is None:
        raise Refused("bad_confirmation", "that is no confirmation of this server")
    key = {_KEY: api.key(match[2])}
    path = f"/v1/approvals/{match[1]}"
    approval = await api.get(path)
    if approval["tool"] != action.tool:
        raise Refused("bad_confirmation", f"that confirms {approval['tool']}, another action")
    match approval["status"]:
        case "awaiting":
            return _pending(approval, confirmation)
        case "revised":
            return _pending(await _redraft(api, path, key, action, approval), confirmation)
        case "approved":
            return await _run(api, path, key, action, approval)
    reason = approval["reason"]
    raise Refused(
        approval["status"],
        f"the action is {approval['status']}" + (f": {reason}" if reason else ""),
        {"approval_id": approval["approval_id"], "decided_by": approval["decided_by"]},
    )


async def _propose(api: Api, action: Action) -> Json:
    nonce = secrets.token_hex(16)
    made = await api.post(
        "/v1/approvals",
        {
            "tool": action.tool,
            "arguments": action.arguments,
            "description": action.description,
            "effect": "write",
            "agent": api.agent,
            "proposal_key": api.key(nonce),
        },
    )
    return _pending(made, f"{made['approval_id']}.{nonce}")


def _pending(approval: Json, confirmation: str) -> Json:
    """Tell that it waits; the key of the proposal stays here."""
    told = {name: one for name, one in approval.items() if name not in ("proposal_key", "token")}
    return {
        "status": "pending_confirmation",
        "approval_id": approval["approval_id"],
        "confirmation": confirmation,
        "how": _HOW,
        "note": approval["note"],
        "approval": told,
    }


async def _redraft(
    api: Api, path: str, key: dict[str, str], action: Action, approval: Json
) -> Json:
    """Bring an action back that was sent back with a note, unless its draft is what it was."""
    if not approval["is_redacted"] and approval["arguments"] == action.arguments:
        return approval
    body = {"arguments": action.arguments, "description": action.description, "agent": api.agent}
    return await api.post(f"{path}/repropose", body, headers=key)


async def _run(api: Api, path: str, key: dict[str, str], action: Action, approval: Json) -> Json:
    """Claim an approved action, run it, and tell how it ended."""
    claim = await api.post(f"{path}/claim", {"arguments": action.arguments}, headers=key)
    try:
        answer = await action.work({**approval, "claim_id": claim["claim_id"]})
    except Refused as refused:
        error = f"{refused.code}: {refused}"[:2_000]
        ok = None if refused.code in _NO_ANSWER else False
        await api.post(f"{path}/result", {"claim_id": claim["claim_id"], "ok": ok, "error": error})
        raise
    except (Exception, anyio.get_cancelled_exc_class()) as error:
        # Cut off: what it had done by then nobody knows. Without this the lease says so, later.
        cut_off = {"claim_id": claim["claim_id"], "ok": None, "error": type(error).__name__}
        with anyio.move_on_after(_CUT_OFF_S, shield=True), contextlib.suppress(Refused):
            await api.post(f"{path}/result", cut_off)
        raise
    ended = {"claim_id": claim["claim_id"], "ok": True}
    if isinstance(answer.get(action.result_key), str):
        ended["result_ref"] = answer[action.result_key]
    await api.post(f"{path}/result", ended)
    return {"status": "done", "approval_id": approval["approval_id"], "result": answer}
