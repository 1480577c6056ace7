"""Who may write what: the two stores apart, the facade between them and everybody else."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from hansard_store.approvals.service import ApprovalService
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from tests.store.accounts import account, proposal

ROOT = Path(__file__).parents[2]
STORE = ROOT / "store" / "hansard_store"
# What writes approvals or events. Of these only the facade is for others.
INSIDE = {
    "approvals.claim_rows", "approvals.claims", "approvals.decisions", "approvals.proposals",
    "approvals.unit_of_work", "audit.clock", "audit.log", "audit.sealer",
}  # fmt: skip


def module_file(name: str) -> Path:
    return STORE / f"{name.replace('.', '/')}.py"


def imports(path: Path) -> set[str]:
    """Return the modules of the store that a file imports, as PACKAGE.MODULE in a package."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("hansard_store."):
            module = str(node.module).removeprefix("hansard_store").removeprefix(".")
            within = {f"{module}.{one.name}".removeprefix(".") for one in node.names}
            found |= {one for one in (*within, module) if module_file(one).exists()}
    return found


def reached(name: str, seen: frozenset[str] = frozenset()) -> set[str]:
    """Return every module of the store that one leads to."""
    found: set[str] = set()
    for one in imports(module_file(name)) - seen:
        found |= {one} | reached(one, seen | {one, name})
    return found


@pytest.mark.covers("CF-15")
def test_the_audit_log_and_the_approvals_do_not_know_each_other() -> None:
    of_log = reached("audit.events")
    rows = [module_file("approvals.rows"), module_file("approvals.claim_rows")]
    of_approvals = set[str]().union(*map(imports, rows))

    assert of_log
    assert of_approvals
    assert not {one for one in of_log if one.startswith("approvals.")}
    assert not of_approvals & {
        f"audit.{one}" for one in ("events", "event_types", "hash_chain", "log")
    }
    source = "".join(one.read_text(encoding="utf-8") for one in rows)
    assert " event " not in source.replace("audit log", "")


@pytest.mark.covers("CF-19")
def test_nobody_outside_writes_past_the_facade() -> None:
    outside = [
        path
        for folder in ("web", "collector", "instrumentation")
        for path in (ROOT / folder).rglob("*.py")
    ]

    assert all(module_file(one).exists() for one in INSIDE)
    past = {str(path.relative_to(ROOT)): imports(path) & INSIDE for path in outside}

    assert {name: found for name, found in past.items() if found} == {}


@pytest.mark.covers("CF-19")
def test_the_facade_has_a_verb_for_everything(tmp_path: Path) -> None:
    verbs = {name for name in dir(ApprovalService) if not name.startswith("_")}

    assert verbs >= {
        "propose", "propose_batch", "repropose", "approve", "approve_batch", "reject", "revise",
        "expire_due", "claim", "finish", "recover", "settle_outcome", "undo", "token",
        "approval", "approvals", "memories",
        "events", "head", "verify", "history", "message_in", "message_out",
        "tool_called", "tool_returned", "blocked", "failed", "receipt", "close",
    }  # fmt: skip


@pytest.mark.covers("CF-34")
def test_the_tables_of_the_record_are_there_and_no_generic_one_is(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "data")
    open_for_ingest(folder).close()
    connection = open_reader(folder)
    tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()

    assert tables >= {
        "span", "span_record", "span_link", "resource", "event", "approval", "text",
        "transcript_message", "payload", "payload_use",
    }  # fmt: skip
    assert not {one for one in tables if one.startswith(("kv", "key_value"))}


@pytest.mark.covers("ST-01")
def test_the_record_can_be_read_with_sql_under_the_names_people_ask_for(tmp_path: Path) -> None:
    with account(tmp_path) as desk:
        found = desk.propose(proposal()).approval.approval_id
        connection = open_reader(desk.folder)
        for view in (
            "runs", "steps", "context_items", "memory_records", "compilation_requests",
            "compilation_results", "tool_events", "policy_events", "replay_runs",
        ):  # fmt: skip
            assert connection.execute(f"SELECT * FROM {view}").fetchall() == []
        pending = connection.execute("SELECT approval_id, status FROM pending_actions").fetchall()
        connection.close()

    assert pending == [(found, "awaiting")]
