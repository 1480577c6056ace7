"""Tools that look something up."""

from __future__ import annotations

from typing import Any, Final

from hansard_compiler.calls import Json
from hansard_web.mcp import arguments as given
from hansard_web.mcp.api_client import Api

_TEXT_TYPES: Final = ("text/", "application/json", "application/x-ndjson", "application/xml")


async def search_memory(api: Api, asked: given.SearchMemory) -> Json:
    body = asked.model_dump(exclude={"namespace", "run_id"}, exclude_none=True)
    whose = asked.namespace.model_dump(exclude_none=True)
    of_run = {"of_run": asked.run_id, "run_id": asked.run_id} if asked.run_id else {}
    return await api.post("/v1/memory/read", {**body, "namespace": whose, **of_run})


async def find_receipts(api: Api, asked: given.FindReceipts) -> Json:
    return await api.get("/v1/receipts", **asked.model_dump())


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


async def search_text(api: Api, asked: given.SearchText) -> Json:
    return await api.get("/v1/search", **asked.model_dump())


async def list_runs(api: Api, asked: given.ListRuns) -> Json:
    return await api.get("/v1/runs", **asked.model_dump())


async def get_run(api: Api, asked: given.OfRun) -> Json:
    return await api.get(f"/v1/runs/{asked.run_id}")


async def list_steps(api: Api, asked: given.ListSteps) -> Json:
    return await api.get(f"/v1/runs/{asked.run_id}/steps", after=asked.after, limit=asked.limit)


async def get_step(api: Api, asked: given.OfStep) -> Json:
    return await api.get(f"/v1/steps/{asked.step_id}")


async def diff(api: Api, asked: given.Diff) -> Json:
    only = {"only": "changes", "limit": 100} if asked.of == "runs" else {}
    return await api.get(f"/v1/diff/{asked.of}/{asked.left}/{asked.right}", **only)


async def check_policy(api: Api, asked: given.CheckPolicy) -> Json:
    return await api.post("/v1/policy/explain", asked.model_dump(exclude_none=True))


async def get_replay(api: Api, asked: given.GetReplay) -> Json:
    return await api.get(f"/v1/replay/{asked.replay_id}", wait=asked.wait_s)


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


async def list_transcripts(api: Api, asked: given.ListTranscripts) -> Json:
    return await api.get("/v1/transcripts", **asked.model_dump())


async def get_transcript(api: Api, asked: given.GetTranscript) -> Json:
    query = asked.model_dump(exclude={"transcript_id"})
    return await api.get(f"/v1/transcripts/{asked.transcript_id}", **query)


async def list_approvals(api: Api, asked: given.ListApprovals) -> Json:
    return await api.get("/v1/approvals", **asked.model_dump())


async def get_approval(api: Api, asked: given.GetApproval) -> Json:
    return await api.get(f"/v1/approvals/{asked.approval_id}", wait=asked.wait_s or None)


async def query_sql(api: Api, asked: given.QuerySql) -> Json:
    return await api.get("/v1/sql", q=asked.sql, limit=asked.limit)
