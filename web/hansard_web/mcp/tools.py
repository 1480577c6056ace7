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
from hansard_web.mcp.api_client import ApiClient, ApiRefused

# Tools that look something up.

_TEXT_TYPES: Final = ("text/", "application/json", "application/x-ndjson", "application/xml")


def get(path: str, **renamed: str) -> Do:
    """Return a tool that asks a route: arguments named in the path stand there, others are sent."""
    in_path = {name for _, name, _, _ in Formatter().parse(path) if name}

    async def do(api: ApiClient, arguments: given.Arguments) -> Json:
        fields = arguments.model_dump()
        query = {
            renamed.get(name, name): one for name, one in fields.items() if name not in in_path
        }
        return await api.get(path.format(**fields), **query)

    return do


async def search_memory(api: ApiClient, arguments: given.SearchMemory) -> Json:
    body = arguments.model_dump(exclude={"namespace", "run_id"}, exclude_none=True)
    whose = arguments.namespace.model_dump(exclude_none=True)
    of_run = {"of_run": arguments.run_id, "run_id": arguments.run_id} if arguments.run_id else {}
    return await api.post("/v1/memory/read", {**body, "namespace": whose, **of_run})


async def explain_item(api: ApiClient, arguments: given.ExplainItem) -> Json:
    """Tell what the compile of a step did, and with one item; without one, what is derived."""
    step = await api.get(f"/v1/steps/{arguments.step_id}")
    receipts = step["receipts"]
    if arguments.item is not None:
        receipts = [one for one in receipts if arguments.item in _names(one)]
    explanation = {name: step[name] for name in ("schema_version", "step_id", "run_id", "context")}
    return {**explanation, "receipts": receipts}


def _names(receipt: Json) -> tuple[Any, ...]:
    source = receipt["source"] or ""
    return receipt["item_id"], source, source.partition(" ")[2]


async def diff(api: ApiClient, arguments: given.Diff) -> Json:
    only = {"only": "changes", "limit": 100} if arguments.of == "runs" else {}
    return await api.get(f"/v1/diff/{arguments.of}/{arguments.left}/{arguments.right}", **only)


async def check_policy(api: ApiClient, arguments: given.CheckPolicy) -> Json:
    return await api.post("/v1/policy/explain", arguments.model_dump(exclude_none=True))


async def get_payload(api: ApiClient, arguments: given.GetPayload) -> Json:
    """Tell what a payload is, by its head; of a large one only that is read."""
    head = await api.head_of(f"/v1/payloads/{arguments.ref}", most=4 * arguments.characters + 4)
    size = head.headers.get("content-range", "").rpartition("/")[2]
    media_type = head.headers.get("content-type", "application/octet-stream")
    is_text = media_type.startswith(_TEXT_TYPES) or media_type.partition(";")[0].endswith("+json")
    text = head.content.decode("utf-8", "replace")[: arguments.characters] if is_text else None
    size_bytes = int(size) if size.isdecimal() else len(head.content)
    return {
        "ref": arguments.ref,
        "stored_ref": head.headers.get("hansard-payload"),
        "media_type": media_type,
        "size_bytes": size_bytes,
        "is_redacted": head.headers.get("hansard-redacted") == "true",
        "beginning": text,
        "is_complete": text is not None and len(text.encode()) >= size_bytes,
    }


async def get_approval(api: ApiClient, arguments: given.GetApproval) -> Json:
    return await api.get(f"/v1/approvals/{arguments.approval_id}", wait=arguments.wait_s or None)


# Tools that change something or send something: each through the gate.

# Tools that change something: proposed first, run once a person approved, with those arguments.
#
# A client cannot approve: no tool does, and what it is given to come back with (`confirmation`) is
# of use only after somebody else decided. The key of a proposal is made again from it, so nothing
# has to be stored meanwhile, and a restart loses nothing.

_CUT_OFF_S: Final = 5.0
_NO_ANSWER: Final = frozenset({"unreachable", "no_json", "internal"})  # it may have run
_KEY: Final = "Hansard-Proposal-Key"
_CONFIRMATION: Final = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{32})")
_HOW: Final = (
    "Nothing has run. A person decides on the page /approvals or with `hansard approvals`; then "
    "call this tool again with the same arguments and this `confirmation`."
)


@dataclass(frozen=True, slots=True)
class ToolAction:
    """What is to run, as a person is asked about it.

    `work` gets the approved action, with the `claim_id` of this run of it.
    """

    tool: str
    arguments: Json
    description: str
    work: Callable[[Json], Awaitable[Json]]
    result_key: str  # where the id of what was made stands in the answer: "replay_id"


async def confirmed(api: ApiClient, action: ToolAction, confirmation: str | None) -> Json:
    """Propose an action, tell how it stands, or run it: whatever its approval allows.

    Raises Refused: also for an action that was rejected or has expired.
    """
    if confirmation is None:
        return await _propose(api, action)
    match = _CONFIRMATION.fullmatch(confirmation)
    if match is None:
        raise ApiRefused("bad_confirmation", "that is no confirmation of this server")
    key = {_KEY: api.key(match[2])}
    path = f"/v1/approvals/{match[1]}"
    approval = await api.get(path)
    if approval["tool"] != action.tool:
        raise ApiRefused("bad_confirmation", f"that confirms {approval['tool']}, another action")
    match approval["status"]:
        case "awaiting":
            return _pending(approval, confirmation)
        case "revised":
            return _pending(await _redraft(api, path, key, action, approval), confirmation)
        case "approved":
            return await _run(api, path, key, action, approval)
    reason = approval["reason"]
    raise ApiRefused(
        approval["status"],
        f"the action is {approval['status']}" + (f": {reason}" if reason else ""),
        {"approval_id": approval["approval_id"], "decided_by": approval["decided_by"]},
    )


async def _propose(api: ApiClient, action: ToolAction) -> Json:
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
    fields = {name: one for name, one in approval.items() if name not in ("proposal_key", "token")}
    return {
        "status": "pending_confirmation",
        "approval_id": approval["approval_id"],
        "confirmation": confirmation,
        "how": _HOW,
        "note": approval["note"],
        "approval": fields,
    }


async def _redraft(
    api: ApiClient, path: str, key: dict[str, str], action: ToolAction, approval: Json
) -> Json:
    """Bring an action back that was sent back with a note, unless its draft is what it was."""
    if not approval["is_redacted"] and approval["arguments"] == action.arguments:
        return approval
    body = {"arguments": action.arguments, "description": action.description, "agent": api.agent}
    return await api.post(f"{path}/repropose", body, headers=key)


async def _run(
    api: ApiClient, path: str, key: dict[str, str], action: ToolAction, approval: Json
) -> Json:
    """Claim an approved action, run it, and tell how it ended."""
    claim = await api.post(f"{path}/claim", {"arguments": action.arguments}, headers=key)
    try:
        result = await action.work({**approval, "claim_id": claim["claim_id"]})
    except ApiRefused as refused:
        error = f"{refused.code}: {refused}"[:2_000]
        ok = None if refused.code in _NO_ANSWER else False
        await api.post(f"{path}/result", {"claim_id": claim["claim_id"], "ok": ok, "error": error})
        raise
    except (Exception, anyio.get_cancelled_exc_class()) as error:
        # Cut off: what it had done by then nobody knows. Without this the lease says so, later.
        cut_off = {"claim_id": claim["claim_id"], "ok": None, "error": type(error).__name__}
        with anyio.move_on_after(_CUT_OFF_S, shield=True), contextlib.suppress(ApiRefused):
            await api.post(f"{path}/result", cut_off)
        raise
    ended = {"claim_id": claim["claim_id"], "ok": True}
    if isinstance(result.get(action.result_key), str):
        ended["result_ref"] = result[action.result_key]
    await api.post(f"{path}/result", ended)
    return {"status": "done", "approval_id": approval["approval_id"], "result": result}


_BY = "mcp"
_GOES_ON = ("diverged", "waiting", "failed")  # states of a fork


async def replay(api: ApiClient, arguments: given.Replay) -> Json:
    """Replay: a preview and an answer from the recording send nothing, and need no approval."""
    unused = set() if arguments.live else {"live", "max_turns", "max_usd"}
    body = arguments.model_dump(
        exclude={"wait_s", "confirmation", "preview", *unused}, exclude_none=True
    )
    if arguments.preview:
        return await api.post("/v1/replay/preview", body)
    if arguments.recorded:
        return await api.post("/v1/replay", {**body, "wait_s": arguments.wait_s})
    # What cannot be replayed, or not by this token, is refused before a person is asked.
    await api.post("/v1/replay", {**body, "preview": True})

    async def work(_: Json) -> Json:
        return await api.post("/v1/replay", {**body, "wait_s": arguments.wait_s})

    kind = arguments.mode or ("mutated" if arguments.mutations else "exact")
    times = "" if arguments.n == 1 else f", {arguments.n} times"
    how = f"live, {_bounds(arguments)}" if arguments.live else f"{kind}{times}"
    description = f"Replay the model call {arguments.step_id} ({how}): sends it to its provider"
    action = ToolAction("hansard.replay", body, description, work, "replay_id")
    return await confirmed(api, action, arguments.confirmation)


async def continue_replay(api: ApiClient, arguments: given.ContinueReplay) -> Json:
    """Have a fork that stopped go on live, from exactly where a person saw it stand."""
    path = f"/v1/replay/{arguments.replay_id}"
    replayed = await api.get(path, comparison="false")
    if replayed["state"] not in _GOES_ON or replayed["continuation"] is None:
        raise ApiRefused(
            "not_replayable", f"the replay is {replayed['state']}: it does not go on",
            {"reason": "not_waiting"},
        )  # fmt: skip
    await _need(api, f"{path}/continue", {"max_turns": 0})
    results = [one.model_dump() for one in arguments.results]
    bounds = {"max_turns": arguments.max_turns, "max_usd": arguments.max_usd}
    body = {"results": results, "after": replayed["continuation"]["step_id"], **bounds}

    async def work(approval: Json) -> Json:
        by = str(approval["decided_by"] or _BY)[:200]
        return await api.post(f"{path}/continue", {**body, "by": by, "wait_s": arguments.wait_s})

    ids = ", ".join(one.call_id for one in arguments.results)
    with_results = f" with results for {ids}" if ids else ""
    description = (
        f"Go on live with replay {replayed['short_id']}{with_results}, {_bounds(arguments)}: "
        "asks the model"
    )
    action = ToolAction(
        "hansard.continue_replay",
        {"replay_id": replayed["replay_id"], **body},
        description[:20_000],
        work,
        "replay_id",
    )
    return await confirmed(api, action, arguments.confirmation)


def _bounds(arguments: given.Replay | given.ContinueReplay) -> str:
    return f"up to {arguments.max_turns} live turns for at most ${arguments.max_usd:g}"


async def remember_fact(api: ApiClient, arguments: given.RememberFact) -> Json:
    """Write memory in the name of the person who approves exactly this content."""
    await _need(api, "/v1/memory/write")
    fact = arguments.model_dump(exclude={"confirmation"}, exclude_none=True)
    if not fact["namespace"]:
        raise ApiRefused("invalid_arguments", "namespace: name a project, a user or an agent")

    async def work(approval: Json) -> Json:
        written_by = {
            "writer": "human_approved_summary",
            "approval_id": approval["approval_id"],
            "by": str(approval["decided_by"] or _BY)[:256],
        }
        written = await api.post("/v1/memory/write", {**fact, **written_by})
        return {**written, "memory_id": written["memory"]["memory_id"]}

    description = (
        f"Remember as {arguments.memory_type} about {arguments.subject[:200]}: "
        f"{arguments.content[:2_000]}"
    )
    action = ToolAction("hansard.remember_fact", fact, description, work, "memory_id")
    return await confirmed(api, action, arguments.confirmation)


async def invalidate_memory(api: ApiClient, arguments: given.InvalidateMemory) -> Json:
    """Say that a memory does not hold; it stays, with the reason.

    The decision is that of who approves it: the caller's token need not decide, or be there.
    """
    path = "/v1/memory/invalidate/approved"
    await _need(api, path)
    memory = (await api.get(f"/v1/memory/{arguments.memory_id}"))["memory"]
    end = {"memory_id": memory["memory_id"], "reason": arguments.reason}

    async def work(approval: Json) -> Json:
        run = {"approval_id": approval["approval_id"], "claim_id": approval["claim_id"]}
        return await api.post(path, {**end, **run})

    description = f"Take back the memory about {memory['subject']}: {arguments.reason}"
    action = ToolAction("hansard.invalidate_memory", end, description[:20_000], work, "memory_id")
    return await confirmed(api, action, arguments.confirmation)


async def _need(api: ApiClient, path: str, refused_body: Json | None = None) -> None:
    """Refuse a caller without the scope, before a person is asked in vain.

    A body that cannot be meant, an empty one as a rule, is refused by the route, after the token
    was judged.
    """
    try:
        await api.post(path, refused_body or {})
    except ApiRefused as refused:
        if refused.status in (401, 403):
            raise


Do: TypeAlias = Callable[[ApiClient, Any], Awaitable[Json]]
_GATED: Final = (
    " Nothing runs at once: it answers `pending_confirmation`, and runs when a person has approved "
    "and it is called again with the same arguments and `confirmation`."
)


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """One tool: its words for the model, what it takes, what it does."""

    name: str
    title: str
    description: str
    takes: type[given.Arguments]
    do: Do
    reads_only: bool = True


TOOLS: Final = (
    ToolEntry("search_memory", "Search memory",
         "Read what agents are to know: facts, preferences, constraints, decisions, best answers "
         "first. The read is recorded.", given.SearchMemory, search_memory),
    ToolEntry("find_receipts", "Find context receipts",
         "Find what compiles did with pieces of context, over all runs: included, excluded, "
         "compressed or redacted, why, and what it missed by.",
         given.FindReceipts, get("/v1/receipts")),
    ToolEntry("explain_item", "Why was an item in or out of a step",
         "Tell what one model call knew, and for one item (or all) why it was in the prompt or "
         "was not.", given.ExplainItem, explain_item),
    ToolEntry("search_text", "Search everything that was said",
         "Full text search over messages, arguments, results and errors of all runs.",
         given.SearchText, get("/v1/search")),
    ToolEntry("list_runs", "List runs", "List runs of agents, narrowed by what you give.",
         given.ListRuns, get("/v1/runs")),
    ToolEntry("get_run", "Get a run", "Totals, models, tokens, cost and status of one run.",
         given.OfRun, get("/v1/runs/{run_id}")),
    ToolEntry("list_steps", "List the steps of a run",
         "The steps of a run as a tree, without content.",
         given.ListSteps, get("/v1/runs/{run_id}/steps")),
    ToolEntry("get_step", "Get a step",
         "One step whole: model call, tool call, attributes, context, receipts, payloads.",
         given.OfStep, get("/v1/steps/{step_id}")),
    ToolEntry("diff", "Compare two runs or two steps",
         "Compare two steps or two runs: what differs in input, context, output, tokens and cost, "
         "and what caused it.", given.Diff, diff),
    ToolEntry("check_policy", "Check policy",
         "Tell what the rules say of a tool call or of an item, and how each rule came out. A dry "
         "run: nothing is recorded and nothing is permitted by it.",
         given.CheckPolicy, check_policy),
    ToolEntry("replay", "Replay a model call",
         "Make a recorded model call again, exactly or with changes. With `preview` or `recorded` "
         "nothing is sent. With `live` a fork goes on past the recording, within bounds. What is "
         "sent goes through the gate." + _GATED,
         given.Replay, replay, reads_only=False),
    ToolEntry("continue_replay", "Go on with a fork",
         "Have a replay that stopped go on live, past the recording: the model is asked turn by "
         "turn, within bounds. What its `continuation` needs a result for and has none is given in "
         "`results`; no tool is run." + _GATED,
         given.ContinueReplay, continue_replay, reads_only=False),
    ToolEntry("get_replay", "Get a replay", "State, result and comparison of a replay.",
         given.GetReplay, get("/v1/replay/{replay_id}", wait_s="wait")),
    ToolEntry("get_payload", "Summarise an artifact",
         "Media type, size, digest and beginning of a payload by its sha256 reference.",
         given.GetPayload, get_payload),
    ToolEntry("list_transcripts", "List transcripts", "List recorded conversations.",
         given.ListTranscripts, get("/v1/transcripts")),
    ToolEntry("get_transcript", "Get a transcript", "Read a conversation: messages, folds, marks.",
         given.GetTranscript, get("/v1/transcripts/{transcript_id}")),
    ToolEntry("list_approvals", "List approvals",
         "List actions that wait for a person, or were decided. Only people decide.",
         given.ListApprovals, get("/v1/approvals")),
    ToolEntry("get_approval", "Get an approval",
         "One approval with its drafts; `wait_s` waits for the decision of a person.",
         given.GetApproval, get_approval),
    ToolEntry("query_sql", "Query with SQL",
         "Answer one SELECT (SQLite) over documented views. Ids are hex, times nanoseconds since "
         "1970, money billionths of a US dollar.", given.QuerySql, get("/v1/sql", sql="q")),
    ToolEntry("remember_fact", "Write memory",
         "Write a fact, preference, constraint or decision into durable memory." + _GATED,
         given.RememberFact, remember_fact, reads_only=False),
    ToolEntry("invalidate_memory", "Take memory back",
         "Say that a memory does not hold; it is read no more and stays with the reason." + _GATED,
         given.InvalidateMemory, invalidate_memory, reads_only=False),
)  # fmt: skip
BY_NAME: Final = {tool.name: tool for tool in TOOLS}
