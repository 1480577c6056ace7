"""A server over a filled store, and a client that holds every answer against the document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
from jsonschema import Draft202012Validator

from hansard._config.setting import CONFIG_FILE
from hansard_store.principals.model import Scope
from hansard_store.runs.values import VALUE_KEYS
from hansard_web.app.security import is_a_decision
from hansard_web.exports.registry import NAMES
from tests.instrumentation.clients.provider import json_reply, providing
from tests.journeys.processes import demonstrating, hansard
from tests.signing import add_token, bearer
from tests.web.recorded_media import message, png, url
from tests.web.traces import Trace, said

Json = dict[str, Any]
_JSON: Final = "application/json"
_LINES: Final = "application/x-ndjson"
_TALK: Final = "c3" * 16
_SHOT: Final = "d4" * 16
_SCRIPT: Final[Json] = {"hansard_script": 1, "otherwise": {"say": "Refunded."}}


def operation_of(method: str, template: str) -> str:
    return f"{method} {template}"


def address_of(template: str, names: Mapping[str, str]) -> str:
    """Return the address of an operation with the values of its path."""
    for name, value in names.items():
        template = template.replace(f"{{{name}}}", quote(value, safe=""))
    return template


@dataclass
class Site:
    """A server, its document, and what was answered: each operation with its statuses."""

    address: str
    data: Path
    client: httpx2.Client
    document: Json
    answered: dict[str, set[int]] = field(default_factory=dict)
    ids: dict[str, list[str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def operations(self) -> Iterator[tuple[str, str, Json]]:
        """Yield method, path and description of every operation."""
        for path, methods in self.document["paths"].items():
            for method, told in methods.items():
                yield method.upper(), path, told

    def ask(
        self,
        method: str,
        template: str,
        *,
        body: Any = None,
        query: Any = None,
        headers: Mapping[str, str] | None = None,
        content: bytes | None = None,
        **names: str,
    ) -> Any:
        """Send a request and return the answer's body; what does not fit is in `wrong`."""
        path = address_of(template, names)
        more: dict[str, Any] = {} if body is None else {"json": body}
        if content is not None:
            more["content"] = content
        answer = self.client.request(method, path, params=query, headers=headers, **more)
        problems = self.problems(method, template, answer)
        self.wrong += [f"{method} {answer.request.url}: {one}" for one in problems]
        self.answered.setdefault(operation_of(method, template), set()).add(answer.status_code)
        return answer.json() if _type_of(answer) == _JSON else answer.content

    def problems(self, method: str, template: str, answer: httpx2.Response) -> list[str]:
        """Return in what an answer differs from what the document says of it."""
        status = str(answer.status_code)
        told = self.document["paths"][template][method.lower()]["responses"]
        described = told.get(status) or told.get(f"{status[0]}XX")
        if described is None:
            return [f"{status} is not documented"]
        kind, contents = _type_of(answer), described.get("content", {})
        if answer.status_code >= 500:
            return [f"{status}: {answer.text[:300]}"]
        if not contents:
            return [f"{status} has a body"] if answer.content else []
        if kind not in contents:
            # The bytes of a payload have whatever type they were stored with.
            if "application/octet-stream" in contents and answer.status_code < 400:
                return []
            return [f"{status} is {kind}, not {', '.join(contents)}"]
        schema = contents[kind].get("schema")
        if not schema or kind not in (_JSON, _LINES):
            return []
        lines = answer.content.splitlines() if kind == _LINES else [answer.content]
        return [one for line in lines for one in self.misfits(schema, json.loads(line))]

    def misfits(self, schema: Json, value: Any) -> list[str]:
        """Return where a value does not fit a schema of the document."""
        whole = {**schema, "components": self.document["components"]}
        found = Draft202012Validator(whole).iter_errors(value)
        return [f"{list(one.absolute_path)}: {one.message[-200:]}" for one in found][:3]


class _Person(httpx2.Auth):
    """Decides with a token; all else is asked without one, as agents do."""

    def __init__(self, data: Path) -> None:
        self._secret = add_token(data, "root", *Scope)

    def auth_flow(self, request: httpx2.Request) -> Iterator[httpx2.Request]:  # type: ignore[override]
        is_ours = "authorization" not in request.headers
        if is_ours and is_a_decision(request.method, request.url.path):
            request.headers.update(bearer(self._secret))
        yield request


def _type_of(answer: httpx2.Response) -> str:
    return str(answer.headers.get("content-type", "")).partition(";")[0]


@contextmanager
def serving_filled(data: Path) -> Iterator[Site]:
    """Run a demo's server with more of everything in its store, and a receiver of what it sends."""
    with (
        _receiving(data),
        demonstrating(data) as story,
        httpx2.Client(
            base_url=story.address, auth=_Person(data), timeout=240, trust_env=False
        ) as client,
    ):
        document = client.get("/openapi.json", follow_redirects=True).json()
        site = Site(story.address, data, client, document)
        fill(site)
        look(site)
        yield site


@contextmanager
def _receiving(data: Path) -> Iterator[None]:
    """Take all notifications of the server that will run over a folder."""
    with providing() as receiver:
        receiver.answer = lambda _: json_reply({})
        data.mkdir()
        settings = f'outbound = "on"\nnotify = ["{receiver.address}/hook"]\n'
        (data / CONFIG_FILE).write_text(settings)
        yield


# ---- every operation that writes


def fill(site: Site) -> None:
    """Ask every operation that writes for what it does."""
    _runs(site)
    _policy(site)
    _approvals(site)
    _memory(site)
    _transcripts(site)
    _annotations(site)
    _payloads(site)
    _reports(site)
    _replays(site)
    _talk(site)
    _media(site)
    _views(site)
    _errors(site)
    _notifications(site)


def _runs(site: Site) -> None:
    told = {"agent_name": "clerk", "domain": "support", "user_goal": "Refund order 7"}
    run_id = site.ask("POST", "/v1/runs/start", body=told)["run_id"]
    step = {"name": "answer", "inputs": [{"role": "user", "content": "Refund order 7."}]}
    step_id = site.ask("POST", "/v1/runs/{run_id}/steps", body=step, run_id=run_id)["step_id"]
    for number in range(7):
        call = {"run_id": run_id, "name": "pay", "call_id": f"c{number}", "arguments": {"id": 7}}
        site.ask("POST", "/v1/tools/call", body=call)
        result = {"run_id": run_id, "call_id": f"c{number}", "error": "the bank is closed"}
        site.ask("POST", "/v1/tools/result", body=result)
    asked = {
        "run_id": run_id, "step_id": step_id, "provider": "scripted", "model": "scripted-1",
        "token_budget": 2000, "response_reserve": 200,
    }  # fmt: skip
    compiled = site.ask("POST", "/v1/compile", body=asked)
    call = {"run_id": run_id, "compilation_id": compiled["compilation_id"], "script": _SCRIPT}
    site.ask("POST", "/v1/model/call", body=call)
    site.ask("POST", "/v1/runs/{run_id}/end", body={"output": "Done."}, run_id=run_id)
    site.ids["own_run"] = [run_id]
    found = hansard("detect", "--data", str(site.data))
    assert found.returncode == 0, found.stderr
    [task, *_] = site.ask("GET", "/v1/tasks")["items"]
    decided = {"decision": "approve", "note": "call them"}
    site.ask("POST", "/v1/tasks/{task_id}/decide", body=decided, task_id=task["task_id"])


def _policy(site: Site) -> None:
    rules = site.ask("GET", "/v1/policy/rules")
    body = {"rule_sets": ["shipped:support-agent"], "version": rules["version"]}
    site.ask("PUT", "/v1/policy/rules", body=body)
    asked: Json = {"tool": {"name": "refund", "effect": "write"}, "context": {"agent": "clerk"}}
    site.ask("POST", "/v1/policy/check", body=asked)
    site.ask("POST", "/v1/policy/check", body={**asked, "explain": True})
    site.ask("POST", "/v1/policy/explain", body={"item": {"id": "k", "sensitivity": "secret"}})


def _approvals(site: Site) -> None:
    at = "/v1/approvals/{approval_id}"

    def propose(**more: Any) -> Json:
        told = {"tool": "refund", "arguments": {"order": 7}, "agent": "clerk", **more}
        made: Json = site.ask("POST", "/v1/approvals", body=told)
        return made

    def act(made: Json, act: str, **body: Any) -> Json:
        key = {"Hansard-Proposal-Key": made["proposal_key"]}
        path = f"{at}/{act}"
        told: Json = site.ask("POST", path, body=body, headers=key, approval_id=made["approval_id"])
        return told

    ran = propose(undo={"tool": "charge", "arguments": {"order": 7}})
    act(ran, "approve", by="root")
    claimed = act(ran, "claim", arguments={"order": 7})
    act(ran, "result", claim_id=claimed["claim_id"], ok=True, result_ref="refund:7")
    act(ran, "undo")
    lost = propose()
    act(lost, "approve")
    claimed = act(lost, "claim")
    act(lost, "result", claim_id=claimed["claim_id"], ok=None)
    act(lost, "settle", outcome="did_not_run", note="the outbox is empty")
    sent_back = propose()
    act(sent_back, "revise", note="only half of it")
    act(sent_back, "repropose", arguments={"order": 7, "total": 6})
    act(sent_back, "reject", reason="not this order")
    batch = {"batch": [{"tool": "refund", "arguments": {"order": one}} for one in (1, 2)]}
    made = site.ask("POST", "/v1/approvals", body=batch)["items"]
    seen = {one["approval_id"]: one["revision"] for one in made}
    act(made[0], "approve", batch=True, revisions=seen)
    site.ask("POST", "/v1/events", body={"type": "tool.called", "tool": "find", "agent": "clerk"})


def _memory(site: Site) -> None:
    def write(content: str, **more: Any) -> Json:
        told = {
            "writer": "app", "memory_type": "fact", "subject": "order 7", "attribute": "state",
            "content": content, "namespace": {"project": "shop"}, **more,
        }  # fmt: skip
        made: Json = site.ask("POST", "/v1/memory/write", body=told)["memory"]
        return made

    write("It was refunded.", confidence=0.9)
    doubted = write("It was not refunded.", confidence=0.1)
    asked = {"namespace": {"project": "shop"}, "text": "refund"}
    site.ask("POST", "/v1/memory/read", body=asked)
    who = {"by": "root"}
    accepted = {"memory_id": doubted["memory_id"], **who}
    site.ask("POST", "/v1/memory/accept", body=accepted)
    superseded = {"memory_id": write("It was sent.", attribute="sent")["memory_id"], **who}
    write("It was not sent.", attribute="sent")
    site.ask("POST", "/v1/memory/unsupersede", body=superseded)
    site.ask("POST", "/v1/memory/invalidate", body={**accepted, "reason": "it was"})
    site.ask("POST", "/v1/memory/purge", body={**accepted, "reason": "asked to"})
    end = {"memory_id": write("It was lost.", subject="order 8")["memory_id"], "reason": "found"}
    told = {"tool": "hansard.invalidate_memory", "arguments": end, "agent": "clerk"}
    made = site.ask("POST", "/v1/approvals", body=told)
    named = {"approval_id": made["approval_id"]}
    key = {"Hansard-Proposal-Key": made["proposal_key"]}
    site.ask("POST", "/v1/approvals/{approval_id}/approve", body=who, **named)
    claimed = site.ask("POST", "/v1/approvals/{approval_id}/claim", body={}, headers=key, **named)
    ended = {**end, **named, "claim_id": claimed["claim_id"]}
    site.ask("POST", "/v1/memory/invalidate/approved", body=ended)


def _transcripts(site: Site) -> None:
    at = "/v1/transcripts/{log_id}"
    told = site.ask("POST", "/v1/transcripts", body={"conversation": "support-42"})
    log_id = told["conversation_id"]
    messages = [
        {"role": "user", "content": "Refund order 7."},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "refund"}]},
        {"role": "tool", "id": "c1", "content": {"ok": True}},
    ]
    body = {"messages": [{"message": one} for one in messages]}
    site.ask("POST", at, body=body, log_id=log_id)
    branch = site.ask("POST", f"{at}/branches", body={"name": "researcher"}, log_id=log_id)
    end = "/v1/transcripts/{branch_id}/end"
    site.ask("POST", end, body={"status": "done"}, branch_id=branch["branch_id"])
    mark = {"position": 0, "reason": "a card number"}
    site.ask("POST", f"{at}/redactions", body=mark, log_id=log_id)
    summary = {"summary": "Order 7 was refunded."}
    site.ask("POST", f"{at}/check", body=summary, log_id=log_id)
    site.ask("POST", f"{at}/fold", body=summary, log_id=log_id)
    site.ids["branch_id"] = [branch["branch_id"]]


def _annotations(site: Site) -> None:
    [run_id] = site.ids["own_run"]
    score = {"run_id": run_id, "name": "correctness", "score": {"value": 0.4, "label": "fail"}}
    site.ask("POST", "/v1/scores", body={**score, "source": "llm", "by": "judge-3"})
    site.ask("POST", "/v1/annotations", body={"run_id": run_id, "kind": "tag", "tag": "golden"})
    note = {"run_id": run_id, "kind": "note", "text": "look here"}
    made = site.ask("POST", "/v1/annotations", body=note)["annotation"]["annotation_id"]
    at = "/v1/annotations/{annotation_id}/withdraw"
    site.ask("POST", at, body={"reason": "of another run"}, annotation_id=made)


def _payloads(site: Site) -> None:
    data = b"the bytes"
    ref = f"sha256:{sha256(data).hexdigest()}"
    for _ in range(2):
        site.ask("PUT", "/v1/payloads/{ref}", content=data, ref=ref)
    site.ids["ref"] = [ref]


def _reports(site: Site) -> None:
    """One report is the demo's heartbeat's own; another is written here and stays unread."""
    [made, *_] = site.ask("GET", "/v1/reports")["items"]
    for _ in range(2):
        site.ask("POST", "/v1/reports/{name}/ack", body={}, name=made["name"])
    found = hansard("report", "--data", str(site.data))
    assert found.returncode == 0, found.stderr


def _replays(site: Site) -> None:
    calls = site.ask("GET", "/v1/runs", query={"agent": "coding-agent"})["items"]
    steps = site.ask("GET", "/v1/runs/{run_id}/steps", run_id=calls[-1]["run_id"])["items"]
    call = next(one["step_id"] for one in steps if one["role"] == "llm")
    asked = {"step_id": call, "recorded": True}
    site.ask("POST", "/v1/replay/preview", body=asked)
    site.ask("POST", "/v1/replay", body={**asked, "preview": True})
    site.ask("POST", "/v1/replay", body={**asked, "wait_s": 30})


def _talk(site: Site) -> None:
    """Send a conversation that is compacted, by OTLP."""
    trace = Trace(_TALK)
    trace.agent(1, duration_s=12, name="talker")
    first = [said("system", "Be brief."), said("user", "Question 1")]
    trace.chat(2, 1, first, said("assistant", "Answer 1"), 1, duration_s=0.5)
    trace.span(8, 1, "claude_code.compaction", 5, 1, trigger="auto")
    short = [first[0], said("user", "So far: one question."), said("user", "Question 2")]
    trace.chat(9, 1, short, said("assistant", "Answer 2"), 7)
    _export(site, trace)
    site.ids["compaction"] = [trace.step(8)]


def _export(site: Site, trace: Trace) -> None:
    answer = site.client.post(
        "/v1/traces",
        content=trace.request.SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    assert answer.status_code == 200


def _media(site: Site) -> None:
    """Send an image in a message and in what a tool returned, for a user; store it as a payload."""
    image = png()
    trace = Trace(_SHOT)
    trace.agent(1, duration_s=12, name="viewer", user__id="ana@example.com")
    sent = message({"type": "image_url", "image_url": {"url": url("image/png", image)}})
    trace.chat(2, 1, [sent], said("assistant", "A square."), 1, duration_s=0.5)
    trace.tool(3, 1, "look", "c1", 2, result=json.dumps({"shot": url("image/png", image)}))
    _export(site, trace)
    page = site.client.get(f"/runs/{_SHOT}", params={"view": "conversation"}).text
    site.ids["digest"] = sorted(set(re.findall(r"/v1/messages/([0-9a-f]+)/media/", page)))
    assert site.ids["digest"], page
    site.ids["spoken"], site.ids["shown"] = [trace.step(2)], [trace.step(3)]
    for data in (image, image + bytes(300_000)):  # the longer one is kept as a file
        ref = f"sha256:{sha256(data).hexdigest()}"
        kind = {"content-type": "image/png"}
        site.ask("PUT", "/v1/payloads/{ref}", content=data, headers=kind, ref=ref)
        site.ids["ref"].append(ref)


def _views(site: Site) -> None:
    view = {"query": "status=error&agent=clerk", "sort": "-cost_usd", "columns": "agent,cost"}
    for name in ("Failed runs", "Kept"):
        site.ask("POST", "/v1/views", body={"name": name, **view})
    site.ask("POST", "/v1/views/rename", body={"name": "Failed runs", "to": "Failed"})
    site.ask("POST", "/v1/views/delete", body={"name": "Failed"})


def _errors(site: Site) -> None:
    [error, *_] = site.ask("GET", "/v1/errors")["items"]
    for decided in ({"decision": "watch"}, {"decision": "note", "note": "the bank's"}):
        at = "/v1/errors/{error_id}/decide"
        site.ask("POST", at, body=decided, error_id=error["error_id"])


def _notifications(site: Site) -> None:
    sent = site.ask("POST", "/v1/notifications/test")["notification"]
    at = "/v1/notifications/{notification_id}/retry"
    site.ask("POST", at, notification_id=sent["id"])


# ---- every operation that reads


def look(site: Site) -> None:
    """Ask every operation that reads, lists before what they name."""
    runs = site.ask("GET", "/v1/runs", query={"limit": 500})["items"]
    site.ids["run_id"] = [one["run_id"] for one in runs]
    site.ids["table"] = list(NAMES)
    site.ids["step_id"] = []
    for run_id in site.ids["run_id"]:
        found = site.ask("GET", "/v1/runs/{run_id}/steps", query={"limit": 500}, run_id=run_id)
        site.ids["step_id"] += [one["step_id"] for one in found["items"]]
    for path, name in (
        ("/v1/approvals", "approval_id"), ("/v1/memory", "memory_id"), ("/v1/tasks", "task_id"),
        ("/v1/conversations", "conversation_id"), ("/v1/replay", "replay_id"),
        ("/v1/users", "user_id"),
    ):  # fmt: skip
        listed = site.ask("GET", path, query={"limit": 500})["items"]
        site.ids[name] = [one[name] for one in listed]
    failed = site.ask("GET", "/v1/errors", query={"state": "all"})["items"]
    site.ids["error_id"] = [one["error_id"] for one in failed]
    sent = site.ask("GET", "/v1/notifications", query={"limit": 500})["items"]
    site.ids["notification_id"] = [one["id"] for one in sent]
    site.ids["key"] = list(VALUE_KEYS)
    given = site.ask("GET", "/v1/annotations", query={"state": "all"})["items"]
    site.ids["annotation_id"] = [one["annotation_id"] for one in given if one["annotation_id"]]
    talks = site.ask("GET", "/v1/transcripts")["items"]
    site.ids["log_id"] = [one["conversation_id"] for one in talks] + site.ids["branch_id"]
    receipts = site.ask("GET", "/v1/receipts", query={"limit": 500})["items"]
    site.ids["compilation_id"] = sorted({one["compilation_id"] for one in receipts})
    site.ids["number"] = ["1"]
    reports = site.ask("GET", "/v1/reports", query={"limit": 500})["items"]
    site.ids["name"] = [one["name"] for one in reports]
    site.ids["left"] = site.ids["right"] = site.ids["run_id"][:4] + site.ids["step_id"][:12]
    for method, template, told in site.operations():
        if method == "GET":
            _read(site, template, told)


def _read(site: Site, template: str, told: Json) -> None:
    queries = {
        "/v1/find": {"q": "clerk"},
        "/v1/overview": {"q": "refund", "by": "model"},
        "/v1/search": {"q": "refund"},
        "/v1/sql": {"q": "SELECT * FROM runs"},
    }
    names = [one["name"] for one in told.get("parameters", ()) if one["in"] == "path"]
    values = [ids_for(site, template, name) for name in names]
    for chosen in zip(*values, strict=False) if names else [()]:
        site.ask(
            "GET", template, query=queries.get(template), **dict(zip(names, chosen, strict=True))
        )
        if "/media" in template:
            _parts(site, template, dict(zip(names, chosen, strict=True)))
    if template == "/v1/payloads/{ref}":
        for some in ("bytes=2-5", "bytes=999999-", "bytes=5-2", "lines=1-2", "bytes=0-1,4-5"):
            site.ask("GET", template, headers={"range": some}, ref=site.ids["ref"][-1])
    if template.endswith("/export") and names:
        for form in ("otlp-proto", "jsonl", "html"):
            site.ask("GET", template, query={"format": form}, run_id=site.ids["own_run"][0])


def _parts(site: Site, template: str, names: dict[str, str]) -> None:
    """Ask for parts of media, and for media that is there already."""
    tag = site.client.get(address_of(template, names)).headers["etag"]
    for headers in (
        {"range": "bytes=2-5"}, {"range": "bytes=999999-"}, {"range": "lines=1-2"},
        {"if-none-match": tag},
    ):  # fmt: skip
        site.ask("GET", template, headers=headers, **names)


def ids_for(site: Site, template: str, name: str) -> list[str]:
    """Return ids that are stored, for a parameter of a path."""
    if template == "/v1/diff/compaction/{step_id}":
        return site.ids["compaction"]
    if template == "/v1/transcripts/{conversation_id}/stats":
        return [one for one in site.ids["log_id"] if one.startswith("conv_")]
    if "/diff/" in template and name in ("left", "right"):
        kind = "step_id" if "/steps/" in template else "run_id"
        found = site.ids[kind][:6]
        return found if name == "left" else found[1:] + found[:1]
    if "/media/" in template and name != "digest":
        is_call = "{message}" in template
        stored = {
            "step_id": site.ids["spoken" if is_call else "shown"],
            "message": ["sent-0"],
            "part": ["0"] if is_call or "{digest}" in template else ["result"],
            "number": ["0"],
        }
        return stored[name]
    return site.ids[name]
