"""Policy rules that were altered in the database decide nothing, also after a restart."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

import apsw
import pytest
from starlette.testclient import TestClient

from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.audit.sealer import seal
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import PolicyAlteredError
from hansard_store.verification.integrity import verify_store
from hansard_web.health.checks import Level, check_policy
from tests.signing import add_token, bearer
from tests.store.by_hand import triggers_dropped
from tests.web.conftest import MakeClient
from tests.web.principals.conftest import folder_of

Json = dict[str, Any]
ASK: Final[Json] = {"tool": {"name": "rm", "effect": "write", "arguments": {"path": "build"}}}
ALTERED: Final = {
    "an effect": "UPDATE policy_rule_set SET document = replace(document, 'deny', 'allow')",
    "a rule set removed": "DELETE FROM policy_rule_set WHERE policy = 2",
    "the version removed": "DELETE FROM policy_version WHERE id = 2",
    "all versions removed": "DELETE FROM policy_version",
    "a version made up": (
        "INSERT INTO policy_version SELECT 3, time_ns, source, actor, 'x' FROM policy_version"
        " WHERE id = 1"
    ),
}


def rules(effect: str) -> Json:
    rule = {"id": "writes", "name": "writes", "effect": effect}
    return {"schema_version": 1, "name": "mine", "version": "1", "rules": [rule]}


def put(client: TestClient, effect: str) -> Json:
    admin = bearer(add_token(folder_of(client), f"ana-{effect}", "admin"))
    version = client.get("/v1/policy/rules").json()["version"]
    body = {"rule_sets": [rules(effect)], "version": version}
    answer = client.put("/v1/policy/rules", json=body, headers=admin)
    assert answer.status_code == 200, answer.text
    made: Json = answer.json()
    return made


def alter(folder: DataFolder, sql: str) -> None:
    with closing(apsw.Connection(str(folder.database))) as plain, triggers_dropped(plain):
        plain.pragma("foreign_keys", False)
        plain.execute(sql)
        assert plain.changes()


@pytest.mark.parametrize("sealed", [False, True], ids=["fresh", "sealed"])
@pytest.mark.parametrize("altered", ALTERED)
def test_altered_rules_decide_nothing_until_they_are_put_again(
    make_client: MakeClient, altered: str, sealed: bool
) -> None:
    first = make_client()
    put(first, "allow")
    put(first, "deny")
    assert first.post("/v1/policy/check", json=ASK).json()["effect"] == "deny"
    folder = folder_of(first)
    if sealed:
        with closing(open_for_maintenance(folder)) as connection:
            assert seal(connection, folder.key())
    alter(folder, ALTERED[altered])

    restarted = make_client()
    checked = restarted.post("/v1/policy/check", json=ASK)
    asked = restarted.post("/v1/approvals", json={"tool": "rm", "arguments": {"path": "build"}})

    assert (checked.status_code, checked.json()["error"]["code"]) == (503, "policy_altered")
    assert (asked.status_code, asked.json()["error"]["code"]) == (503, "policy_altered")
    with closing(open_for_maintenance(folder)) as connection:
        seal(connection, folder.key())
    named = {one.table for one in verify_store(folder).findings}
    assert named & {"policy_version", "policy_rule_set"}, named
    assert restarted.get("/v1/approvals").json()["items"] == []


def test_a_program_with_the_store_at_hand_is_refused_and_health_and_doctor_name_it(
    make_client: MakeClient,
) -> None:
    client = make_client()
    put(client, "deny")
    folder = folder_of(client)
    before = client.get("/health").text
    alter(folder, ALTERED["an effect"])

    with ApprovalService(folder) as program, pytest.raises(PolicyAlteredError):
        program.propose(Proposal("rm", {"path": "build"}))
    restarted = make_client()

    assert "Policy checks and proposals are refused" not in before
    assert "Policy checks and proposals are refused" in restarted.get("/health").text
    [named] = check_policy(folder)
    assert (named.level, named.what) == (Level.FAIL, "policy")


def test_rules_that_are_put_again_are_in_force(make_client: MakeClient) -> None:
    first = make_client()
    put(first, "deny")
    alter(folder_of(first), ALTERED["an effect"])
    restarted = make_client()
    assert restarted.post("/v1/policy/check", json=ASK).status_code == 503

    put(restarted, "deny")

    assert restarted.post("/v1/policy/check", json=ASK).json()["effect"] == "deny"


ALSO_THE_VERSION: Final = "UPDATE policy_version SET actor = 'eve' WHERE id = 1"
BACK: Final = "UPDATE policy_version SET actor = {} WHERE id = 1"


def test_a_running_server_decides_nothing_by_rules_that_are_altered_with_their_version(
    make_client: MakeClient,
) -> None:
    client = make_client()
    put(client, "deny")
    folder = folder_of(client)
    before = client.post("/v1/policy/check", json=ASK).json()["effect"]
    [version] = client.get("/v1/policy/versions").json()["items"]

    alter(folder, ALTERED["an effect"])
    alter(folder, ALSO_THE_VERSION)
    altered = client.post("/v1/policy/check", json=ASK)
    alter(folder, BACK.format(f"'{version['actor']}'"))
    again = client.post("/v1/policy/check", json=ASK)

    assert before == "deny"
    assert (altered.status_code, altered.json()["error"]["code"]) == (503, "policy_altered")
    assert (again.status_code, again.json()["error"]["code"]) == (503, "policy_altered")


@pytest.mark.parametrize(
    "document",
    ["'no JSON'", "'7'", """'{"rules": 1}'""", "CAST(x'ff' AS TEXT)", "'\"shipped:nothing\"'"],
)
def test_rules_altered_into_what_is_none_are_named_and_can_be_put_again(
    make_client: MakeClient, document: str
) -> None:
    first = make_client()
    put(first, "deny")
    alter(folder_of(first), f"UPDATE policy_rule_set SET document = {document}")
    client = make_client()

    checked = client.post("/v1/policy/check", json=ASK)
    shown = client.get("/v1/policy/rules").json()
    put(client, "deny")

    assert (checked.status_code, checked.json()["error"]["code"]) == (503, "policy_altered")
    assert "altered by something other than Hansard" in shown["problem"]
    assert client.post("/v1/policy/check", json=ASK).json()["effect"] == "deny"
