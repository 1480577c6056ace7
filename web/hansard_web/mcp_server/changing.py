"""Tools that change something or send something: each through the gate."""

from __future__ import annotations

from hansard_compiler.calls import Json
from hansard_web.mcp_server import arguments as given
from hansard_web.mcp_server.asking import Api, Refused
from hansard_web.mcp_server.gated import Action, confirmed

_BY = "mcp"


async def replay(api: Api, asked: given.Replay) -> Json:
    """Replay: a preview and an answer from the recording send nothing, and need no approval."""
    body = asked.model_dump(exclude={"wait_s", "confirmation", "preview"}, exclude_none=True)
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
    said = f"Replay the model call {asked.step_id} ({kind}{times}): sends it to its provider"
    action = Action("hansard.replay", body, said, work, "replay_id")
    return await confirmed(api, action, asked.confirmation)


async def remember_fact(api: Api, asked: given.RememberFact) -> Json:
    """Write memory in the name of the person who approves exactly this content."""
    await _need(api, "/v1/memory/write")
    fact = asked.model_dump(exclude={"confirmation"}, exclude_none=True)
    if not fact["namespace"]:
        raise Refused("bad_arguments", "namespace: name a project, a user or an agent")

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
    """Say that a memory does not hold; it stays, with the reason."""
    await _need(api, "/v1/memory/invalidate")
    told = (await api.get(f"/v1/memory/{asked.memory_id}"))["memory"]
    end = {"memory_id": told["memory_id"], "reason": asked.reason}

    async def work(approval: Json) -> Json:
        by = str(approval["decided_by"] or _BY)[:256]
        return await api.post("/v1/memory/invalidate", {**end, "by": by})

    said = f"Take back the memory about {told['subject']}: {asked.reason}"
    action = Action("hansard.invalidate_memory", end, said[:20_000], work, "memory_id")
    return await confirmed(api, action, asked.confirmation)


async def _need(api: Api, path: str) -> None:
    """Refuse a caller whose token will not do before a person is asked for nothing.

    An empty body is refused by the route, after the token was judged.
    """
    try:
        await api.post(path, {})
    except Refused as refused:
        if refused.status in (401, 403):
            raise
