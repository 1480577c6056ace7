"""Approvals that take several people, as HTTP, pages and the command line tell them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from starlette.testclient import TestClient

from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.errors import InvalidTokenName, TokenNameConfusable
from hansard_store.principals.model import CLAIMED, Scope, is_same, looks_like, name_key
from hansard_store.principals.service import Principals
from hansard_web.app.config import WebSettings
from tests.journeys.processes import hansard as run_command
from tests.signing import add_token, bearer, session_of, sign_in_user
from tests.store.empty import empty_store
from tests.web.approvals import ask, read, send, store_of
from tests.web.conftest import MakeClient, Served
from tests.web.principals.conftest import folder_of

WIRE: dict[str, Any] = {"tool": "wire_money", "arguments": {"to": "acme"}, "agent": "bot"}
TWO: dict[str, Any] = {**WIRE, "approvers": ["ana", "bo", "cid"], "approvals_required": 2}


def propose(client: TestClient, body: dict[str, Any] = TWO, status: int = 201) -> dict[str, Any]:
    answer = client.post("/v1/approvals", json=body)
    assert answer.status_code == status, answer.text
    told: dict[str, Any] = answer.json()
    return told


def approve(client: TestClient, approval_id: str, secret: str, **body: Any) -> Any:
    return client.post(f"/v1/approvals/{approval_id}/approve", json=body, headers=bearer(secret))


def test_the_api_counts_principals_and_refuses_everybody_else(api: TestClient) -> None:
    made = propose(api)
    people = {name: add_token(folder_of(api), name) for name in ("ana", "bo", "eve")}
    key = {"Hansard-Proposal-Key": made["proposal_key"]}
    at = f"/v1/approvals/{made['approval_id']}"

    first = approve(api, made["approval_id"], people["ana"], note="right").json()
    again = approve(api, made["approval_id"], people["ana"], by="bo")
    other = approve(api, made["approval_id"], people["eve"], by="bo")
    early = api.post(f"{at}/claim", json={"proposal_key": made["proposal_key"]})
    kept = api.get(at, headers=key).json()["token"]
    last = approve(api, made["approval_id"], people["bo"]).json()
    claimed = api.post(f"{at}/claim", json={"proposal_key": made["proposal_key"]})

    assert (made["approvals_required"], made["approvals_left"], made["approved_by"]) == (2, 2, [])
    assert (first["status"], first["approvals_left"]) == ("awaiting", 1)
    assert [(one["name"], one["method"]) for one in first["approved_by"]] == [("ana", "token")]
    assert (again.status_code, again.json()["error"]["code"]) == (409, "another_approver_required")
    assert (other.status_code, other.json()["error"]["code"]) == (403, "not_an_approver")
    assert "ana, bo, cid" in other.json()["error"]["message"]
    assert other.json()["error"]["details"]["approvers"] == ["ana", "bo", "cid"]
    assert (early.status_code, early.json()["error"]["code"]) == (409, "not_approved")
    assert kept is None
    assert (last["status"], last["decided_by"]) == ("approved", "bo")
    assert claimed.status_code == 200

    settling = {"outcome": "ran", "note": "it is on the account"}
    by_other = api.post(f"{at}/settle", json=settling, headers=bearer(people["eve"]))
    by_one = api.post(f"{at}/settle", json=settling, headers=bearer(people["ana"]))

    assert (by_other.status_code, by_other.json()["error"]["code"]) == (403, "not_an_approver")
    assert (by_one.status_code, by_one.json()["error"]["code"]) == (409, "outcome_known")


@pytest.mark.parametrize("verb", ["approve", "reject", "revise"])
def test_who_is_no_approver_is_refused_with_their_names_on_the_page_too(
    api: TestClient, verb: str
) -> None:
    approval = ask(store_of(api), approvers=())
    approval_id = propose(api, {**WIRE, "approvers": ["ana"]})["approval_id"]
    api.cookies.update(session_of(folder_of(api), "eve"))
    body = {"note": "less"} if verb == "revise" else {}

    page = read(api, f"/approvals/{approval_id}")
    csrf = read(api, f"/approvals/{approval.approval_id}").all("input", name="csrf")[0]["value"]
    data = {"csrf": csrf, "decision": verb, "note": "less"}
    by_form = api.post(f"/approvals/{approval_id}", data=data)
    by_api = api.post(f"/v1/approvals/{approval_id}/{verb}", json=body)

    assert "You are signed in as eve, and ana decide about this" in page.one("p", id="may-not").text
    assert by_form.status_code == 403
    assert "not among those who decide about this one: ana" in by_form.text
    assert (by_api.status_code, by_api.json()["error"]["code"]) == (403, "not_an_approver")
    api.cookies.clear()
    assert api.get(f"/v1/approvals/{approval_id}").json()["status"] == "awaiting"


def test_the_case_of_a_name_makes_no_other_person_of_it(api: TestClient) -> None:
    approval_id = propose(api, {**WIRE, "approvers": ["Ana"]})["approval_id"]

    assert approve(api, approval_id, add_token(folder_of(api), "ANA")).status_code == 200


@pytest.mark.parametrize("required", [4, 0, -1, 21, "two", None])
def test_what_cannot_be_approved_is_not_proposed(api: TestClient, required: Any) -> None:
    told = propose(api, {**TWO, "approvals_required": required}, status=400)

    assert told["error"]["code"] in ("invalid_proposal", "bad_request")
    assert "approvals_required" in json.dumps(told)
    assert api.get("/v1/approvals").json()["items"] == []


def test_page_and_list_say_how_many_approved_and_who_is_awaited(api: TestClient) -> None:
    approval_id = propose(api)["approval_id"]
    at = f"/approvals/{approval_id}"
    api.cookies.update(session_of(folder_of(api), "ana"))

    before = read(api, at)
    assert send(api, at, "approve", revision=1, note="invoice 7").status_code == 303
    after = read(api, at)
    again = send(api, at, "approve", revision=1)
    api.cookies.clear()
    api.cookies.update(session_of(folder_of(api), "bo"))
    other = read(api, at)
    send(api, at, "approve", revision=1)
    done = read(api, at)

    text = "1 of 2 approved, by ana; 1 more needed"
    assert "It takes 2 people. 0 of 2 approved; 2 more needed." in before.text
    assert text in after.one("article", class_="ask").text
    assert text in after.one("a", class_="inbox-item").text
    assert not after.all("button", value="approve")
    assert after.all("button", value="reject")
    assert "You approved this draft" in after.text
    assert again.status_code == 409
    assert "counts once: you approved draft 1 already" in again.text
    assert other.all("button", value="approve")
    assert "approved it, 1 of 2" in other.text
    assert "invoice 7" in [one.text for one in other.all("p", class_="drafts-note")]
    assert "Approved by ana and bo" in done.text


def test_anyone_who_decides_gives_a_name_where_several_are_needed(make_client: MakeClient) -> None:
    client = make_client(WebSettings(decide="anyone"))
    client.auth = None
    approval_id = propose(client, {**WIRE, "approvals_required": 2})["approval_id"]
    at = f"/approvals/{approval_id}"

    assert read(client, at).one("input", name="by")["required"] == ""
    told = [send(client, at, "approve", revision=1, by=name).status_code for name in ("a", "A")]
    send(client, at, "approve", revision=1, by="b")

    assert told == [303, 409]
    assert client.get(f"/v1/approvals/{approval_id}").json()["status"] == "approved"


def test_anyone_also_decides_about_what_they_requested(make_client: MakeClient) -> None:
    client = make_client(WebSettings(decide="anyone"))
    secret = add_token(folder_of(client), "bot", *Scope)
    made = client.post("/v1/approvals", json=WIRE, headers=bearer(secret)).json()

    assert approve(client, made["approval_id"], secret).status_code == 200


@pytest.mark.slow
def test_the_command_line_tells_it_and_counts_for_what_no_server_asked(
    tmp_path: Path,
) -> None:
    from hansard_store.approvals.records import Proposal
    from hansard_store.approvals.service import ApprovalService

    def run(*arguments: str) -> Any:
        return run_command("approvals", *arguments, HANSARD_DATA=str(tmp_path / "data"))

    with ApprovalService(DataFolder(tmp_path / "data")) as desk:
        made = desk.propose(Proposal("wire", {"to": "acme"}, approvals_required=2)).approval
    short = made.approval_id[-8:]

    first = run("approve", short, "--by", "ana", "--note", "right")
    again = run("approve", short, "--by", "Ana")
    listed, shown = run("list"), run("show", short)
    last = run("approve", short, "--by", "bo")

    assert "1 of 2 approved, by ana (claimed); 1 more needed, each of another" in first.stdout
    assert again.returncode == 1
    assert "counts once" in again.stderr
    assert "1 of 2 approved" in listed.stdout
    assert "1 of 2 approved, by ana (claimed); 1 more needed" in shown.stdout
    assert "action.approval_added by me ana" in shown.stdout
    assert "2 of 2 approved, by ana (claimed) and bo (claimed)" in last.stdout


@pytest.mark.slow
def test_a_shell_cannot_be_the_second_person_of_what_came_through_a_server(
    api: TestClient,
) -> None:
    approval_id = propose(api)["approval_id"]
    approve(api, approval_id, add_token(folder_of(api), "ana"))

    told = run_command(
        "approvals", "approve", approval_id, "--by", "bo", HANSARD_DATA=str(folder_of(api).path)
    )

    assert told.returncode != 0
    assert "a decision needs a token" in told.stderr
    assert api.get(f"/v1/approvals/{approval_id}").json()["approvals_left"] == 1


# ---- names


@pytest.fixture
def principals(tmp_path: Path) -> Iterator[Principals]:
    with closing(Principals(empty_store(tmp_path / "data"))) as made:
        yield made


@pytest.mark.parametrize(
    ("one", "other"),
    [("alice", "a1ice"), ("alice", "aIice"), ("Alice", "AIice"), ("rosa", "r0sa"),
     ("carmen", "carrnen"), ("bob", "B0B"), ("wim", "vvim")],
)  # fmt: skip
def test_two_tokens_that_read_alike_cannot_both_be_made(
    principals: Principals, one: str, other: str
) -> None:
    scopes = frozenset({Scope.DECIDE})
    principals.add(one, scopes, by=CLAIMED)

    with pytest.raises(TokenNameConfusable, match="could not be distinguished"):
        principals.add(other, scopes, by=CLAIMED)
    principals.revoke(one, by=CLAIMED)
    principals.add(other, scopes, by=CLAIMED)


@pytest.mark.parametrize(
    "name",
    ["rne", "c1aimed", "N0NE", "Hansard", "ro\u200bsa", "\u202easor", "rosa\r\nx: y", "роса"],
)
def test_a_name_that_is_taken_for_a_word_of_the_record_or_hides_something_is_no_name(
    principals: Principals, name: str
) -> None:
    with pytest.raises(InvalidTokenName):
        principals.add(name, frozenset({Scope.DECIDE}), by=CLAIMED)


def test_a_link_of_a_user_whose_name_reads_like_a_token_is_of_another_name(
    principals: Principals,
) -> None:
    principals.add("r0ot", frozenset({Scope.DECIDE}), by=CLAIMED)

    assert sign_in_user(principals, "root").principal.name == "user-root"


@pytest.mark.parametrize(
    ("one", "other"),
    [("ana", "ANA"), ("ana", "an\u200ba"), ("ana", "\u202eana"), ("ana", "  ana "),
     ("José", "Jose\u0301"), ("ana", "ａｎａ"), ("straße", "STRASSE")],
)  # fmt: skip
def test_names_are_the_same_however_they_are_written(one: str, other: str) -> None:
    assert is_same(one, other)
    assert looks_like(one, other)
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(("one", "other"), [("ana", "anna"), ("jose", "josé"), ("lan", "ian")])
def test_names_of_two_people_stay_two(one: str, other: str) -> None:
    assert not is_same(one, other)
    assert not looks_like(one, other)


# ---- in a real browser


def _signed_in(browser: Browser, served: Served, name: str) -> Page:
    cookies = session_of(served.app.state.site.folder, name)
    context = browser.new_context()
    context.add_cookies([
        {"name": key, "value": value, "url": served.url} for key, value in cookies.items()
    ])  # fmt: skip
    return context.new_page()


@pytest.mark.usefixtures("runs")
def test_two_people_approve_in_two_browsers_and_a_double_click_counts_once(
    browser: Browser, served: Served
) -> None:
    store = store_of(TestClient(served.app))
    made = ask(store, approvers=(), approvals_required=2, agent="front-desk")
    at = f"{served.url}/approvals/{made.approval_id}"
    ana, bo = _signed_in(browser, served, "ana"), _signed_in(browser, served, "bo")
    ana.goto(at)
    bo.goto(at)

    ana.evaluate("document.querySelector('.ask-approve').form.noValidate = true")
    ana.dblclick("button.ask-approve")
    ana.get_by_text("1 of 2 approved, by ana; 1 more needed").first.wait_for()
    bo.get_by_text("1 of 2 approved, by ana; 1 more needed").first.wait_for()
    half = store.approval(made.approval_id)
    bo.keyboard.press("a")
    bo.keyboard.press("Enter")
    bo.get_by_text("Approved by ana and bo").first.wait_for()

    assert (half.status, half.approvals_left) == ("awaiting", 1)
    whole = store.approval(made.approval_id)
    assert [(one.name, one.method) for one in whole.approved_by] == [
        ("ana", "session"), ("bo", "session"),
    ]  # fmt: skip
    for page in (ana, bo):
        page.context.close()
