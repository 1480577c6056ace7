"""Tools that change something or send something: each through the gate."""

from __future__ import annotations

from hansard_compiler.calls import Json
from hansard_web.mcp import arguments as given
from hansard_web.mcp.api_client import Api, Refused
from hansard_web.mcp.gated_tools import Action, confirmed

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
