"""Signing in: links, sessions and what ends them, failed attempts, and the commands for tokens."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from hansard_store.database.data_folder import DataFolder
from hansard_store.principals.errors import InvalidTokenName, TokenExists, UnknownToken
from hansard_store.principals.model import CLAIMED, Scope
from hansard_store.principals.service import Principals
from hansard_web.app.config import Config
from hansard_web.app.server import running
from hansard_web.cli.base import user_name
from hansard_web.principals.attempts import MOST_ADDRESSES, Attempts
from tests.journeys.processes import hansard as run_command
from tests.journeys.processes import hosting
from tests.signing import add_token, bearer, sign_in_user
from tests.store.empty import empty_store
from tests.web.forms import form_token

WIRE = {"tool": "wire_money", "arguments": {"to": "me"}, "agent": "bot"}


@pytest.fixture
def folder(tmp_path: Path) -> DataFolder:
    return empty_store(tmp_path / "data")


def browser() -> httpx2.Client:
    return httpx2.Client(follow_redirects=True)


@pytest.mark.slow
def test_the_printed_link_opens_signed_in_at_a_clean_address_until_the_server_stops(
    tmp_path: Path,
) -> None:
    with browser() as first, browser() as second:
        with hosting(tmp_path / "data") as server:
            link = f"{server.http}{server.endpoints['link']}"
            landed = first.get(link)
            again = second.get(link)
            [redirect] = landed.history
        with hosting(tmp_path / "data") as other, browser() as third:
            late = third.get(f"{other.http}{server.endpoints['link']}")
            kept = first.get(f"{other.http}/approvals")

    assert str(landed.url) == f"{server.http}/"
    assert (redirect.headers["referrer-policy"], redirect.headers["cache-control"]) == (
        "no-referrer", "no-store",
    )  # fmt: skip
    assert "Sign out" in landed.text
    assert "Sign out" in again.text
    assert late.status_code == 422
    assert "hansard open" in late.text
    assert "Sign out" in kept.text  # the session is the store's, and outlives the server


def test_the_shown_command_names_a_relative_folder_so_that_it_works_in_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with running(Config(data=Path("data"), http_port=0, grpc_port=0)) as server, browser() as one:
        page = one.get(f"{server.endpoints.http}/signin").text

    assert f"hansard open --data {tmp_path / 'data'}" in page


@pytest.mark.slow
@pytest.mark.parametrize("is_used", [False, True], ids=["unused", "used"])
def test_revoking_the_name_of_the_printed_link_ends_it_and_its_sessions(
    is_used: bool, tmp_path: Path
) -> None:
    data = ("--data", str(tmp_path / "data"))
    with hosting(tmp_path / "data") as server, browser() as before, browser() as after:
        link = f"{server.http}{server.endpoints['link']}"
        if is_used:
            assert "Sign out" in before.get(link).text
        revoked = run_command("tokens", "revoke", user_name(), *data)
        late = [after.get(link), after.get(link)]
        kept = before.get(f"{server.http}/approvals")

    assert revoked.returncode == 0
    assert [one.status_code for one in late] == [422, 422]
    assert not any("Sign out" in one.text for one in [*late, kept])


def test_a_link_for_one_use_is_used_up_and_is_of_one_server(folder: DataFolder) -> None:
    with closing(Principals(folder)) as principals:
        code = principals.add_link("ana", server="one", is_once=True)

        assert principals.use_link(code, server="two") is None
        begun = principals.use_link(code, server="one")
        assert principals.use_link(code, server="one") is None

        assert begun is not None
        assert begun.principal.name == "ana"
        assert principals.use_link("made up", server="one") is None


def test_a_revoked_token_ends_its_sessions_and_links_at_once(folder: DataFolder) -> None:
    secret = add_token(folder, "ana")
    with closing(Principals(folder)) as principals, closing(Principals(folder)) as elsewhere:
        begun = principals.sign_in(secret)
        assert begun is not None
        code = principals.add_link("ana", server="one", is_once=False)
        assert principals.of_cookie(begun.cookie) is not None

        elsewhere.revoke("ANA", by=CLAIMED)

        assert principals.of_cookie(begun.cookie) is None
        assert principals.use_link(code, server="one") is None
        assert principals.sign_in(secret) is None
        assert principals.authenticate(secret) is None


def test_a_session_of_a_configured_token_ends_with_it(folder: DataFolder) -> None:
    given = ("a-configured-secret", frozenset(Scope))
    with closing(Principals(folder, configured=[given])) as principals:
        begun = principals.sign_in("a-configured-secret")
        assert begun is not None
        assert principals.of_cookie(begun.cookie) is not None

    with closing(Principals(folder)) as without:
        assert without.of_cookie(begun.cookie) is None


def test_sessions_of_one_name_are_bounded_and_the_oldest_end(folder: DataFolder) -> None:
    with closing(Principals(folder)) as principals:
        begun = [sign_in_user(principals, "ana").cookie for _ in range(52)]

        alive = [principals.of_cookie(one) is not None for one in begun]

    assert alive == [False] * 2 + [True] * 50


@pytest.mark.parametrize(
    "name", ["", "me", "ME", "hansard", "a b", "аna", "ana:x", "x" * 65, "-ana", "ana\n"]
)
def test_a_name_that_could_be_taken_for_another_is_refused(folder: DataFolder, name: str) -> None:
    with closing(Principals(folder)) as principals, pytest.raises(InvalidTokenName):
        principals.add(name, frozenset({Scope.DECIDE}), by=CLAIMED)


def test_a_name_has_one_token_in_force_in_letters_of_either_case(folder: DataFolder) -> None:
    with closing(Principals(folder)) as principals:
        principals.add("Ana", frozenset({Scope.DECIDE}), by=CLAIMED)
        with pytest.raises(TokenExists, match="hansard tokens revoke"):
            principals.add("ana", frozenset({Scope.READ}), by=CLAIMED)
        with pytest.raises(UnknownToken, match="'kim'"):
            principals.revoke("kim", by=CLAIMED)


def test_later_failures_of_an_address_wait_longer_and_no_other_address_does() -> None:
    now_s = [0.0]
    attempts = Attempts(lambda: now_s[0])

    def fail(address: str) -> float:
        with attempts.failed(address) as wait_s:
            return wait_s

    waits = [fail("10.0.0.1") for _ in range(12)]
    other = fail("10.0.0.2")
    now_s[0] = 601.0
    after = fail("10.0.0.1")

    assert waits[:3] == [0, 0, 0]
    assert waits[3:] == sorted(waits[3:])
    assert (waits[3], waits[-1]) == (0.1, 2.0)
    assert (other, after) == (0, 0)
    found = attempts.take()
    assert found is not None
    assert (found.count, found.addresses, attempts.total) == (14, 2, 14)
    assert attempts.take() is None


def test_failures_from_many_addresses_take_bounded_memory() -> None:
    attempts = Attempts(lambda: 0.0)

    for number in range(MOST_ADDRESSES + 500):
        with attempts.failed(f"address {number}"):
            pass

    assert len(attempts._of) == MOST_ADDRESSES


@pytest.mark.slow
def test_failures_are_counted_on_health_and_the_right_token_goes_on(tmp_path: Path) -> None:
    with hosting(tmp_path / "data") as server, browser() as client:
        secret = add_token(server.data, "ana")
        made = client.post(f"{server.http}/v1/approvals", json=WIRE).json()
        path = f"{server.http}/v1/approvals/{made['approval_id']}/approve"
        wrong = [client.post(path, json={}, headers=bearer(f"wrong-{n}")) for n in range(3)]
        page = client.get(f"{server.http}/signin")
        form = {"csrf": form_token(page.text), "token": "guessed"}
        wrong.append(client.post(f"{server.http}/signin", data=form))
        right = client.post(path, json={}, headers=bearer(secret))
        health = client.get(f"{server.http}/health").text

    assert [one.status_code for one in wrong] == [401, 401, 401, 422]
    assert right.status_code == 200
    assert "failed sign-ins" in health
    assert ">4</span>" in health.partition("failed sign-ins")[2][:60]


@pytest.mark.slow
def test_tokens_are_added_listed_and_revoked_by_commands_beside_a_running_server(
    tmp_path: Path,
) -> None:
    data = ("--data", str(tmp_path / "data"))
    with hosting(tmp_path / "data") as server, browser() as client:
        secret = run_command("tokens", "add", "ana", "--scope", "decide", *data).stdout.strip()
        twice = run_command("tokens", "add", "ana", "--scope", "read", *data)
        made = client.post(f"{server.http}/v1/approvals", json=WIRE).json()
        path = f"{server.http}/v1/approvals/{made['approval_id']}/revise"
        known = client.post(path, json={"note": "less"}, headers=bearer(secret))
        revoked = run_command("tokens", "revoke", "ana", *data)
        gone = client.post(path, json={"note": "less"}, headers=bearer(secret))
        listed = run_command("tokens", "list", "--json", *data).stdout
        told = client.get(f"{server.http}/v1/events", params={"subject": "token:ana"}).json()

    assert secret.startswith("hst_")
    assert len(secret) >= 47  # 256 bits
    assert twice.returncode == 1
    assert known.status_code == 200
    assert (revoked.returncode, gone.status_code) == (0, 401)
    [one] = [each for each in json.loads(listed)["items"] if each["name"] == "ana"]
    assert (one["name"], one["scopes"], one["revoked_at"] is None) == (
        "ana", ["decide", "read"], False,
    )  # fmt: skip
    assert secret not in listed
    types = [event["type"] for event in told["items"]]
    assert types == ["token.revoked", "token.added"]
    assert {event["body"]["auth_method"] for event in told["items"]} == {"claimed"}


@pytest.mark.slow
def test_doctor_warns_where_anyone_decides(tmp_path: Path) -> None:
    empty_store(tmp_path / "data")
    (tmp_path / "data" / "hansard.toml").write_text('decide = "anyone"\ntoken = ["short-one"]\n')

    told = json.loads(run_command("doctor", "--json", "--data", str(tmp_path / "data")).stdout)

    found = {one["check"]: one for one in told}
    assert found["decide"]["level"] == "warn"
    assert 'decide = "anyone"' in found["decide"]["text"]
    assert found["token"]["level"] == "warn"
