"""Nothing is only possible in the browser: each thing a page does has a twin for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.routing import Route

from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.route_loading import page_routes
from tests.journeys.processes import Serving, export, hansard, http_exporter, serving, spans


@dataclass(frozen=True, slots=True)
class Twin:
    """A route of the API or a command that gives a program what a page gives a person."""

    api: str = ""
    command: str = ""


# What only changes the browser itself has no twin: its colours, its cookie.
OF_THE_BROWSER = {"/theme", "/times", "/messages", "/signin", "/signin/link/{code}", "/signout"}
TWINS = {
    "/": Twin("/v1/runs?q=child", "runs list"),
    "/fragments/runs": Twin("/v1/facets", "runs list"),
    "/fragments/runs/counts": Twin("/v1/facets", "runs list"),
    "/fragments/runs/more": Twin("/v1/runs?limit=1", "runs list"),
    "/fragments/groups/{group_id}": Twin("/v1/runs?group={run}", "runs list --group {run}"),
    "/fragments/compare": Twin("/v1/runs/{run}", "runs show {run}"),
    "/live/runs": Twin("/v1/runs?sort=-first_seen", "runs list"),
    "/live/runs/{run_id}": Twin("/v1/runs/{run}/steps", "runs show {run}"),
    "/runs/{run_id}": Twin("/v1/runs/{run}", "runs show {run}"),
    "/fragments/runs/{run_id}/tree": Twin("/v1/runs/{run}/steps", "runs show {run}"),
    "/fragments/runs/{run_id}/step": Twin("/v1/steps/{step}", "steps show {step}"),
    "/fragments/runs/{run_id}/minimap": Twin("/v1/runs/{run}/steps", "runs show {run}"),
    "/fragments/runs/{run_id}/jump": Twin("/v1/runs?status=error", "runs list"),
    "/steps/{step_id}": Twin("/v1/steps/{step}", "steps show {step}"),
    "/fragments/steps/{step_id}": Twin("/v1/steps/{step}/raw", "steps show {step} --raw"),
    "/steps/{step_id}/copy/{form}": Twin("/v1/steps/{step}", "steps show {step}"),
    "/steps/{step_id}/io/{part}": Twin("/v1/steps/{step}", "steps show {step}"),
    "/steps/{step_id}/context": Twin("/v1/steps/{step}", "steps show {step}"),
    "/fragments/steps/{step_id}/context": Twin("/v1/steps/{step}", "steps show {step}"),
    "/receipts": Twin("/v1/receipts?item=a", "receipts list --item a"),
    "/texts/{digest}": Twin("/v1/steps/{step}", "steps show {step}"),
    "/conversations": Twin("/v1/conversations", "runs list --conversation talk-1"),
    "/transcripts": Twin("/v1/transcripts", "transcripts list"),
    "/transcripts/{log_id}": Twin("/v1/transcripts/{talk}", "transcripts show {talk}"),
    "/transcripts/{log_id}/messages/{position}": Twin(
        "/v1/transcripts/{talk}?limit=1", "transcripts show {talk} --limit 1"
    ),
    "/approvals": Twin("/v1/approvals", "approvals list"),
    "/approvals/{approval_id}": Twin("/v1/approvals/{approval}", "approvals show {approval}"),
    "/live/approvals": Twin("/v1/approvals/{approval}?wait=0", "approvals list"),
    "/fragments/waiting": Twin("/v1/approvals?status=awaiting", "approvals list"),
    "/events": Twin("/v1/events", "events list"),
    "/events/{seq}": Twin("/v1/events?limit=1", "events list --limit 1"),
    "/fragments/events/chain": Twin("/v1/events/verify", "events verify"),
    "/diff": Twin("/v1/runs/{run}", "runs show {run}"),
    "/diff/{left}/{right}": Twin("/v1/diff/runs/{run}/{run}", "diff {run} {run}"),
    "/replay/{step_id}": Twin("/v1/replay?step={step}", "steps show {step}"),
    "/replay/{step_id}/preview": Twin("/v1/replay?step={step}", "steps show {step}"),
    "/replays/{replay_id}": Twin("/v1/replay?limit=1", "steps show {step}"),
    "/fragments/replays/{replay_id}": Twin("/v1/replay?limit=1", "steps show {step}"),
    "/memory": Twin("/v1/memory?project=shop", "memory list --project shop"),
    "/memory/{memory_id}": Twin("/v1/memory/{memory}", "memory show {memory}"),
    "/memory/{memory_id}/accept": Twin("/v1/memory/{memory}", "memory history {memory}"),
    "/memory/{memory_id}/invalidate": Twin("/v1/memory/{memory}", "memory history {memory}"),
    "/replays/{replay_id}/continue": Twin("/v1/replay?limit=1", "steps show {step}"),
    "/annotations": Twin("/v1/annotations?run={run}", "annotations list {run}"),
    "/annotations/{annotation_id}/withdraw": Twin(
        "/v1/annotations?run={run}", "annotations list {run}"
    ),
    "/tasks": Twin("/v1/tasks", "tasks list"),
    "/tasks/{task_id}": Twin("/v1/tasks?limit=1", "tasks list --state all"),
    "/memory/{memory_id}/unsupersede": Twin("/v1/memory/{memory}", "memory history {memory}"),
    "/reports": Twin("/v1/reports", "report --list"),
    "/reports/{name}": Twin("/v1/reports?limit=1", "report --list"),
    "/reports/{name}/ack": Twin("/v1/reports?limit=1", "report --list"),
    "/palette": Twin("/v1/find?q=child", "find child"),
    "/search": Twin("/v1/search?q=child", "search child"),
    "/usage": Twin("/v1/usage?by=model", "usage --by model"),
    "/overview": Twin("/v1/overview?by=model", "overview --by model"),
    "/fragments/overview": Twin("/v1/overview?since=24h", "overview --since 24h"),
    "/latency": Twin("/v1/latency?by=tool", "latency --by tool"),
    "/fragments/latency": Twin("/v1/latency", "latency"),
    "/errors": Twin("/v1/errors", "errors list"),
    "/errors/{error_id}": Twin("/v1/errors?limit=1", "errors list --limit 1"),
    "/users": Twin("/v1/users", "users list"),
    "/users/{user_id:path}": Twin("/v1/users/ana", "users show ana"),
    "/fragments/conversations/messages": Twin(
        "/v1/conversations/talk-1/messages", "conversations messages talk-1"
    ),
    "/fragments/transcripts/{log_id}": Twin("/v1/transcripts/{talk}", "transcripts show {talk}"),
    "/fragments/runs/{run_id}/breaks": Twin("/v1/runs/{run}", "runs show {run}"),
    "/fragments/values/{key}": Twin("/v1/facets/agent", "runs values agent"),
    "/views": Twin("/v1/views", "views list"),
    "/views/{name:path}": Twin("/v1/views", "views list"),
    "/views/rename": Twin("/v1/views", "views list"),
    "/views/delete": Twin("/v1/views", "views list"),
    "/notifications": Twin("/v1/notifications", "notifications list"),
    "/notifications/test": Twin("/v1/notifications", "notifications list"),
    "/notifications/{notification_id}/retry": Twin(
        "/v1/notifications?status=failed", "notifications list --status failed"
    ),
    "/metrics": Twin("/v1/ledger", "doctor"),
    "/health": Twin("/v1/ledger", "doctor"),
    "/fragments/health": Twin("/healthz", "doctor"),
}
LINKED = Twin("/v1/runs/{run}/export?format=otlp-json", "runs export {run}")


def page_paths() -> set[str]:
    routes = page_routes()
    return {route.path for route in routes if isinstance(route, Route)} - OF_THE_BROWSER


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Serving, dict[str, str]]]:
    with serving(tmp_path_factory.mktemp("data")) as server:
        assert export(
            http_exporter(server),
            spans(3, **{"gen_ai.conversation.id": "talk-1", "user.id": "ana"}),
        )
        run = json.loads(server.get("/v1/runs"))["items"][0]["run_id"]
        steps = json.loads(server.get(f"/v1/runs/{run}/steps"))["items"]
        said = hansard(
            "transcripts", "append", "talk-1", "--text", "hi", "--data", str(server.data)
        )
        assert said.returncode == 0, said.stderr
        talk = json.loads(server.get("/v1/transcripts"))["items"][0]["conversation_id"]
        with ApprovalService(DataFolder(server.data)) as store:
            asked = store.propose(Proposal("send_email", {"to": "ana"})).approval.approval_id
        memory = _remembered(server)
        ids = {"run": run, "step": steps[0]["step_id"], "talk": talk, "approval": asked}
        yield server, {**ids, "memory": memory}


def _remembered(server: Serving) -> str:
    told = ("--writer", "app", "--subject", "rounding", "--project", "shop", "--json")
    written = hansard("memory", "write", "Round once.", *told, "--data", str(server.data))
    assert written.returncode == 0, written.stderr
    return str(json.loads(written.stdout)["memory"]["memory_id"])


@pytest.mark.covers("UI-26")
def test_every_page_has_a_twin() -> None:
    assert page_paths() == set(TWINS)


@pytest.mark.covers("UI-26")
def test_each_twin_of_the_api_answers(filled: tuple[Serving, dict[str, str]]) -> None:
    server, ids = filled

    for twin in {*TWINS.values(), LINKED}:
        assert json.loads(server.get(twin.api.format_map(ids)))


@pytest.mark.parametrize("command", sorted({twin.command for twin in TWINS.values()}))
@pytest.mark.covers("UI-26")
def test_each_twin_among_the_commands_answers(
    command: str, filled: tuple[Serving, dict[str, str]]
) -> None:
    server, ids = filled
    words = command.format_map(ids).split()
    form = () if "--raw" in words else ("--json",)

    ended = hansard(*words, *form, "--data", str(server.data))

    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)


@pytest.mark.covers("UI-26")
def test_a_page_offers_as_files_what_the_api_gives(
    filled: tuple[Serving, dict[str, str]], tmp_path: Path
) -> None:
    server, ids = filled
    run = ids["run"]
    page = server.get(f"/runs/{run}").decode()

    assert f"/v1/runs/{run}/export?format=otlp-json" in page
    saved = tmp_path / "run.json"
    exported = hansard("runs", "export", run, "-o", str(saved), "--data", str(server.data))
    assert exported.returncode == 0, exported.stderr
    assert json.loads(saved.read_text()) == json.loads(
        server.get(f"/v1/runs/{run}/export?format=otlp-json")
    )
