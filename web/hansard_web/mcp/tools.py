"""The tools, in the order that clients list them."""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final, TypeAlias

import anyio

from hansard_compiler.calls import Json
from hansard_web.mcp import arguments as given
from hansard_web.mcp.api_client import Api, Refused

# Tools that look something up.

_TEXT_TYPES: Final = ("text/", "application/json", "application/x-ndjson", "application/xml")


def get(path: str, **renamed: str) -> Do:
    """Return a tool that asks a route: arguments named in the path stand there, others are sent."""
    in_path = {name for _, name, _, _ in Formatter().parse(path) if name}

    async def do(api: Api, asked: given.Arguments) -> Json:
        told = asked.model_dump()
        query = {renamed.get(name, name): one for name, one in told.items() if name not in in_path}
        return await api.get(path.format(**told), **query)

    return do


async def search_memory(api: Api, asked: given.SearchMemory) -> Json:
    body = asked.model_dump(exclude={"namespace", "run_id"}, exclude_none=True)
    whose = asked.namespace.model_dump(exclude_none=True)
    of_run = {"of_run": asked.run_id, "run_id": asked.run_id} if asked.run_id else {}
    return await api.post("/v1/memory/read", {**body, "namespace": whose, **of_run})


async def explain_item(api: Api, asked: given.ExplainItem) -> Json:
    """Tell what the compile of a step did, and with one item; without one, what is derived."""
    step = await api.get(f"/v1/steps/{asked.step_id}")
    receipts = step["receipts"]
    if asked.item is not None:
        receipts = [one for one in receipts if asked.item in _names(one)]
    told = {name: step[name] for name in ("schema_version", "step_id", "run_id", "context")}
    return {**told, "receipts": receipts}


def _names(receipt: Json) -> tuple[Any, ...]:
    source = receipt["source"] or ""
    return receipt["item_id"], source, source.partition(" ")[2]


async def diff(api: Api, asked: given.Diff) -> Json:
    only = {"only": "changes", "limit": 100} if asked.of == "runs" else {}
    return await api.get(f"/v1/diff/{asked.of}/{asked.left}/{asked.right}", **only)


async def check_policy(api: Api, asked: given.CheckPolicy) -> Json:
    return await api.post("/v1/policy/explain", asked.model_dump(exclude_none=True))


async def get_payload(api: Api, asked: given.GetPayload) -> Json:
    """Tell what a payload is, by its head; of a large one only that is read."""
    told = await api.head_of(f"/v1/payloads/{asked.ref}", most=4 * asked.characters + 4)
    size = told.headers.get("content-range", "").rpartition("/")[2]
    media_type = told.headers.get("content-type", "application/octet-stream")
    is_text = media_type.startswith(_TEXT_TYPES) or media_type.partition(";")[0].endswith("+json")
    text = told.content.decode("utf-8", "replace")[: asked.characters] if is_text else None
    size_bytes = int(size) if size.isdecimal() else len(told.content)
    return {
        "ref": asked.ref,
        "stored_ref": told.headers.get("hansard-payload"),
        "media_type": media_type,
        "size_bytes": size_bytes,
        "is_redacted": told.headers.get("hansard-redacted") == "true",
        "beginning": text,
        "is_complete": text is not None and len(text.encode()) >= size_bytes,
    }


async def get_approval(api: Api, asked: given.GetApproval) -> Json:
    return await api.get(f"/v1/approvals/{asked.approval_id}", wait=asked.wait_s or None)


# Tools that change something or send something: each through the gate.

# Tools that change something: proposed first, run once a person approved, with those arguments.
#
# A client cannot approve: no tool does, and what it is given to come back with (`confirmation`) is
# of use only after somebody else decided. The key of a proposal is made again from it, so nothing
# has to be kept meanwhile, and a restart loses nothing.

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


_BY = "mcp"
_GOES_ON = ("diverged", "waiting", "failed")  # states of a fork


async def replay(api: Api, asked: given.Replay) -> Json:
    """Replay: a preview and an answer from the recording send nothing, and need no approval."""
    unused = set() if asked.live else {"live", "max_turns", "max_usd"}
    body = asked.model_dump(
        exclude={"wait_s", "confirmation", "preview", *unused}, exclude_none=True
    )
    if asked.preview:
        return await api.post("/v1/replay/preview", body)
    if asked.recorded:
        return await api.post("/v1/replay", {**body, "wait_s": asked.wait_s})
    # What cannot be replayed, or not by this token, is refused before a person is asked.
    await api.post("/v1/replay", {**body, "preview": True})

    async def work(_: Json) -> Json:
        return await api.post("/v1/replay", {**body, "wait_s": asked.wait_s})

    kind = asked.mode or ("mutated" if asked.mutations else "exact")
    times = "" if asked.n == 1 else f", {asked.n} times"
    how = f"live, {_bounds(asked)}" if asked.live else f"{kind}{times}"
    said = f"Replay the model call {asked.step_id} ({how}): sends it to its provider"
    action = Action("hansard.replay", body, said, work, "replay_id")
    return await confirmed(api, action, asked.confirmation)


async def continue_replay(api: Api, asked: given.ContinueReplay) -> Json:
    """Have a fork that stopped go on live, from exactly where a person saw it stand."""
    path = f"/v1/replay/{asked.replay_id}"
    told = await api.get(path, comparison="false")
    if told["state"] not in _GOES_ON or told["continuation"] is None:
        raise Refused(
            "not_replayable", f"the replay is {told['state']}: it does not go on",
            {"reason": "not_waiting"},
        )  # fmt: skip
    await _need(api, f"{path}/continue", {"max_turns": 0})
    results = [one.model_dump() for one in asked.results]
    bounds = {"max_turns": asked.max_turns, "max_usd": asked.max_usd}
    body = {"results": results, "after": told["continuation"]["step_id"], **bounds}

    async def work(approval: Json) -> Json:
        by = str(approval["decided_by"] or _BY)[:200]
        return await api.post(f"{path}/continue", {**body, "by": by, "wait_s": asked.wait_s})

    ids = ", ".join(one.call_id for one in asked.results)
    with_results = f" with results for {ids}" if ids else ""
    said = (
        f"Go on live with replay {told['short_id']}{with_results}, {_bounds(asked)}: asks the model"
    )
    action = Action(
        "hansard.continue_replay", {"replay_id": told["replay_id"], **body}, said[:20_000], work,
        "replay_id",
    )  # fmt: skip
    return await confirmed(api, action, asked.confirmation)


def _bounds(asked: given.Replay | given.ContinueReplay) -> str:
    return f"up to {asked.max_turns} live turns for at most ${asked.max_usd:g}"


async def remember_fact(api: Api, asked: given.RememberFact) -> Json:
    """Write memory in the name of the person who approves exactly this content."""
    await _need(api, "/v1/memory/write")
    fact = asked.model_dump(exclude={"confirmation"}, exclude_none=True)
    if not fact["namespace"]:
        raise Refused("invalid_arguments", "namespace: name a project, a user or an agent")

    async def work(approval: Json) -> Json:
        written_by = {
            "writer": "human_approved_summary",
            "approval_id": approval["approval_id"],
            "by": str(approval["decided_by"] or _BY)[:256],
        }
        told = await api.post("/v1/memory/write", {**fact, **written_by})
        return {**told, "memory_id": told["memory"]["memory_id"]}

    said = f"Remember as {asked.memory_type} about {asked.subject[:200]}: {asked.content[:2_000]}"
    action = Action("hansard.remember_fact", fact, said, work, "memory_id")
    return await confirmed(api, action, asked.confirmation)


async def invalidate_memory(api: Api, asked: given.InvalidateMemory) -> Json:
    """Say that a memory does not hold; it stays, with the reason.

    The decision is that of who approves it: the caller's token need not decide, or be there.
    """
    path = "/v1/memory/invalidate/approved"
    await _need(api, path)
    told = (await api.get(f"/v1/memory/{asked.memory_id}"))["memory"]
    end = {"memory_id": told["memory_id"], "reason": asked.reason}

    async def work(approval: Json) -> Json:
        run = {"approval_id": approval["approval_id"], "claim_id": approval["claim_id"]}
        return await api.post(path, {**end, **run})

    said = f"Take back the memory about {told['subject']}: {asked.reason}"
    action = Action("hansard.invalidate_memory", end, said[:20_000], work, "memory_id")
    return await confirmed(api, action, asked.confirmation)


async def _need(api: Api, path: str, refused_body: Json | None = None) -> None:
    """Refuse a caller whose token will not do before a person is asked for nothing.

    A body that cannot be meant, an empty one as a rule, is refused by the route, after the token
    was judged.
    """
    try:
        await api.post(path, refused_body or {})
    except Refused as refused:
        if refused.status in (401, 403):
            raise


Do: TypeAlias = Callable[[Api, Any], Awaitable[Json]]
_GATED: Final = (
    " Nothing runs at once: it answers `pending_confirmation`, and runs when a person has approved "
    "and it is called again with the same arguments and `confirmation`."
)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: its words for the model, what it takes, what it does."""

    name: str
    title: str
    description: str
    takes: type[given.Arguments]
    do: Do
    reads_only: bool = True


TOOLS: Final = (
    Tool("search_memory", "Search memory",
         "Read what agents are to know: facts, preferences, constraints, decisions, best answers "
         "first. The read is recorded.", given.SearchMemory, search_memory),
    Tool("find_receipts", "Find context receipts",
         "Find what compiles did with pieces of context, over all runs: included, excluded, "
         "compressed or redacted, why, and what it missed by.",
         given.FindReceipts, get("/v1/receipts")),
    Tool("explain_item", "Why was an item in or out of a step",
         "Tell what one model call knew, and for one item (or all) why it was in the prompt or "
         "was not.", given.ExplainItem, explain_item),
    Tool("search_text", "Search everything that was said",
         "Full text search over messages, arguments, results and errors of all runs.",
         given.SearchText, get("/v1/search")),
    Tool("list_runs", "List runs", "List runs of agents, narrowed by what you give.",
         given.ListRuns, get("/v1/runs")),
    Tool("get_run", "Get a run", "Totals, models, tokens, cost and status of one run.",
         given.OfRun, get("/v1/runs/{run_id}")),
    Tool("list_steps", "List the steps of a run", "The steps of a run as a tree, without content.",
         given.ListSteps, get("/v1/runs/{run_id}/steps")),
    Tool("get_step", "Get a step",
         "One step whole: model call, tool call, attributes, context, receipts, payloads.",
         given.OfStep, get("/v1/steps/{step_id}")),
    Tool("diff", "Compare two runs or two steps",
         "Compare two steps or two runs: what differs in input, context, output, tokens and cost, "
         "and what caused it.", given.Diff, diff),
    Tool("check_policy", "Check policy",
         "Tell what the rules say of a tool call or of an item, and how each rule came out. A dry "
         "run: nothing is recorded and nothing is permitted by it.",
         given.CheckPolicy, check_policy),
    Tool("replay", "Replay a model call",
         "Make a recorded model call again, exactly or with changes. With `preview` or `recorded` "
         "nothing is sent. With `live` a fork goes on past the recording, within bounds. What is "
         "sent goes through the gate." + _GATED,
         given.Replay, replay, reads_only=False),
    Tool("continue_replay", "Go on with a fork",
         "Have a replay that stopped go on live, past the recording: the model is asked turn by "
         "turn, within bounds. What its `continuation` needs a result for and has none is given in "
         "`results`; no tool is run." + _GATED,
         given.ContinueReplay, continue_replay, reads_only=False),
    Tool("get_replay", "Get a replay", "State, result and comparison of a replay.",
         given.GetReplay, get("/v1/replay/{replay_id}", wait_s="wait")),
    Tool("get_payload", "Summarise an artifact",
         "Media type, size, digest and beginning of a payload by its sha256 reference.",
         given.GetPayload, get_payload),
    Tool("list_transcripts", "List transcripts", "List recorded conversations.",
         given.ListTranscripts, get("/v1/transcripts")),
    Tool("get_transcript", "Get a transcript", "Read a conversation: messages, folds, marks.",
         given.GetTranscript, get("/v1/transcripts/{transcript_id}")),
    Tool("list_approvals", "List approvals",
         "List actions that wait for a person, or were decided. Only people decide.",
         given.ListApprovals, get("/v1/approvals")),
    Tool("get_approval", "Get an approval",
         "One approval with its drafts; `wait_s` waits for the decision of a person.",
         given.GetApproval, get_approval),
    Tool("query_sql", "Query with SQL",
         "Answer one SELECT (SQLite) over documented views. Ids are hex, times nanoseconds since "
         "1970, money billionths of a US dollar.", given.QuerySql, get("/v1/sql", sql="q")),
    Tool("remember_fact", "Write memory",
         "Write a fact, preference, constraint or decision into durable memory." + _GATED,
         given.RememberFact, remember_fact, reads_only=False),
    Tool("invalidate_memory", "Take memory back",
         "Say that a memory does not hold; it is read no more and stays with the reason." + _GATED,
         given.InvalidateMemory, invalidate_memory, reads_only=False),
)  # fmt: skip
BY_NAME: Final = {tool.name: tool for tool in TOOLS}
