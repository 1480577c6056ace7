"""Reports over HTTP: listed, read, acknowledged by who is known."""

from __future__ import annotations

import time

import pytest

from hansard_store.reports.files import Reports
from hansard_web.app.config import AccessToken, Scope, WebSettings
from tests.web.api.conftest import Api
from tests.web.conftest import MakeClient
from tests.web.makers import RunMaker

READ, DECIDE = "r" * 32, "d" * 32


@pytest.mark.covers("DI-27")
def test_a_report_is_listed_read_and_acknowledged(api: Api) -> None:
    reports = Reports(api.folder)
    old = reports.add("# Old\n", now_ns=1_790_000_000 * 10**9).name
    new = reports.add("# New\n", now_ns=time.time_ns()).name

    listed = api.get("/v1/reports", limit=1)
    read = api.get(f"/v1/reports/{old}")["report"]
    made = api.http.post(f"/v1/reports/{old}/ack", json={"by": "kim"})
    pending = api.get("/v1/reports", pending=True)

    assert ([one["name"] for one in listed["items"]], listed["total"]) == ([new], 2)
    assert (read["text"], read["acks"], read["is_pending"]) == ("# Old\n", [], True)
    assert made.status_code == 200
    (ack,) = made.json()["report"]["acks"]
    assert (ack["who"], ack["method"]) == ("kim", "token")
    assert [one["name"] for one in pending["items"]] == [new]


@pytest.mark.parametrize("name", ["REPORT-20200101T000000Z", "key", "..%2Fkey"])
def test_what_is_no_report_is_not_found(api: Api, name: str) -> None:
    assert api.http.get(f"/v1/reports/{name}").status_code == 404
    assert api.http.post(f"/v1/reports/{name}/ack", json={}).status_code == 404


def test_acknowledging_needs_a_credential_that_may_decide(
    make_client: MakeClient, runs: RunMaker
) -> None:
    name = Reports(runs.folder).add("# New\n", now_ns=time.time_ns()).name
    tokens = (
        AccessToken(READ, frozenset({Scope.READ})),
        AccessToken(DECIDE, frozenset({Scope.DECIDE})),
    )
    client = make_client(WebSettings(tokens=tokens))

    def post(secret: str | None) -> int:
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return client.post(f"/v1/reports/{name}/ack", json={}, headers=headers).status_code

    assert [post(None), post(READ), post(DECIDE)] == [401, 403, 200]


def test_where_anyone_decides_a_name_is_needed_and_is_claimed(
    make_client: MakeClient, runs: RunMaker
) -> None:
    name = Reports(runs.folder).add("# New\n", now_ns=time.time_ns()).name
    client = make_client(WebSettings(decide="anyone"))
    client.auth = None

    nameless = client.post(f"/v1/reports/{name}/ack", json={})
    named = client.post(f"/v1/reports/{name}/ack", json={"by": "ana"})

    assert (nameless.status_code, nameless.json()["error"]["code"]) == (
        400,
        "invalid_acknowledgement",
    )
    assert named.json()["report"]["acks"][0]["method"] == "claimed"


def test_a_forged_line_and_an_altered_report_are_shown_as_such(api: Api) -> None:
    reports = Reports(api.folder)
    name = reports.add("# New\n", now_ns=time.time_ns()).name
    (api.folder.reports / f"{name}.ack").write_text(
        '{"who": "ceo", "at_ns": "1795647908885587726", "method": "token"}\n'
    )
    forged = api.get(f"/v1/reports/{name}")["report"]
    page = api.http.get(f"/reports/{name}").text
    (api.folder.reports / f"{name}.md").write_text("# All is well\n")
    altered = api.get(f"/v1/reports/{name}")["report"]
    altered_page = api.http.get(f"/reports/{name}").text

    assert (forged["record"], forged["acks"], forged["is_pending"]) == ("recorded", [], True)
    assert [one["who"] for one in forged["unrecorded_acks"]] == ["ceo"]
    assert "not recorded" in page
    assert altered["record"] == "altered"
    assert "This file was altered" in altered_page
