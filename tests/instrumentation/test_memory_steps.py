"""Memory from a program: embedded and over HTTP, each read and write a step, and into compiles."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard import approvals, memory
from hansard.errors import MemoryRefused, MemoryUnavailable
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.redaction.redactor import Redactor
from hansard_store.database.connections import open_for_ingest
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.signing import add_token
from tests.web.conftest import Served

SECRET = "sk-proj-" + "T9xQz7LmW2vRk4NbY8cJ1hGd5sFp3aKe6uVi0oXw"
USER = {"role": "user", "content": "How are totals rounded?"}


@contextmanager
def served(folder: DataFolder) -> Iterator[str]:
    open_for_ingest(folder).close()
    pipeline = Pipeline(folder, RetentionPolicy("redacted_payloads", Redactor(folder.key())))
    pipeline.start()
    try:
        with Served(create_app(folder, pipeline, WebSettings())) as server:
            yield server.url
    finally:
        pipeline.close()


@pytest.fixture(params=["embedded", "http"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[DataFolder]:
    """A program that keeps its memory in its own store, or at a server."""
    folder = DataFolder(tmp_path / "data")
    if request.param == "embedded":
        hansard.init(service_name="clerk", embedded=True, data=folder.path)
        yield folder
        hansard.shutdown()
        return
    with served(folder) as url:
        hansard.init(
            service_name="clerk", endpoint=url, protocol="http/protobuf", data=tmp_path / "mine"
        )
        yield folder
        hansard.shutdown()


@pytest.fixture
def unrecorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No span is recorded."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")


def remember(content: Any = "Totals are rounded once.", **more: Any) -> memory.Remembered:
    told: dict[str, Any] = {
        "writer": "app", "type": "constraint", "subject": "rounding", "project": "quillbook",
        "attribute": "when",
    }  # fmt: skip
    return memory.write(content, **{**told, **more})


def steps(folder: DataFolder) -> list[tuple[str, str]]:
    hansard.flush()
    connection = open_reader(folder)
    rows = connection.execute("SELECT name, role FROM span WHERE role = 'memory' ORDER BY id")
    found = [(str(name), str(role)) for name, role in rows]
    connection.close()
    return found


@pytest.mark.covers("ME-08", "ME-09", "ME-19", "AC-06")
def test_what_one_run_wrote_the_next_compiles_with_its_source_run(place: DataFolder) -> None:
    with hansard.start_run(agent_name="mender") as first:
        written = remember()
    with hansard.start_run(agent_name="clerk") as second:
        found = memory.candidates(project="quillbook", text="How are totals rounded?")
        compiled = second.compile_step(
            [USER], memory=found, model="m", provider="local", token_budget=500
        )

    (one,) = found
    assert (one.id, one.content) == (written.id, "Totals are rounded once.")
    assert one.fields["source_run_id"] == first.run_id
    assert one.id in compiled.selected
    assert steps(place) == [("upsert_memory", "memory"), ("search_memory", "memory")]
    connection = open_reader(place)
    rows = connection.execute(
        "SELECT kind, trace_id, span_id, agent FROM memory_access ORDER BY id"
    ).fetchall()
    spans = connection.execute(
        "SELECT trace_id, span_id FROM span WHERE role = 'memory' ORDER BY id"
    ).fetchall()
    connection.close()
    assert [(kind, agent) for kind, _, _, agent in rows] == [("write", "mender"), ("read", "clerk")]
    assert [(trace, span) for _, trace, span, _ in rows] == spans
    assert bytes.fromhex(second.run_id or "") == rows[1][1]


@pytest.mark.covers("ME-18")
def test_what_was_taken_back_is_out_of_the_next_compile_with_a_receipt(place: DataFolder) -> None:
    with hansard.start_run(agent_name="clerk") as run:
        old = remember("Totals are rounded twice.")
        token = add_token(place, "noor")  # of the person; the program has none to decide with
        gone = memory.invalidate(old, reason="it is once", by="noor", token=token)
        new = remember("Totals are rounded once.", attribute="how often")
        found = memory.candidates(project="quillbook", text="rounded")
        compiled = run.compile_step(
            [USER], memory=found, model="m", provider="local", token_budget=500
        )

    reasons = {one.item_id: one.reason.value for one in compiled.result.receipts}
    assert gone.state == "invalidated"
    assert [one.state for one in found] == ["current", "invalidated"]
    assert reasons[old.id] == "invalidated"
    assert new.id in compiled.selected
    assert [one.id for one in memory.read(project="quillbook")] == [new.id]


@pytest.mark.covers("ME-02", "ME-03", "ME-04", "AC-06")
def test_working_memory_is_the_runs_own(place: DataFolder) -> None:
    with hansard.start_run(agent_name="clerk") as run:
        notes = memory.working()
        notes["plan"] = "read"
        notes["plan"] = {"then": "write"}
        notes.set("open_questions", ["why?", 1], tags=["q"])
        with run.step("part") as step:
            chain = memory.working(chain=step)
            chain["plan"] = "the part's plan"
            assert chain["plan"] == "the part's plan"
            assert chain.get("open_questions") == ["why?", 1]
        assert notes["plan"] == {"then": "write"}
        assert sorted(notes) == ["open_questions", "plan"]
        assert [one.content for one in notes.history("plan")] == [{"then": "write"}, "read"]
        found = notes.all()
        compiled = run.compile_step(
            [USER], memory=found, model="m", provider="local", token_budget=500
        )
    with hansard.start_run(agent_name="other"):
        assert memory.working().get("plan", "nothing") == "nothing"
        assert memory.working(run.run_id)["plan"] == {"then": "write"}
        with pytest.raises(KeyError):
            memory.working()["plan"]

    assert {one.id for one in found} <= set(compiled.selected)


@pytest.mark.covers("ME-14")
def test_a_summarizer_writes_in_the_step_that_summarized_or_names_it(place: DataFolder) -> None:
    with pytest.raises(MemoryRefused) as nowhere:
        remember(writer="post_step_summarizer")
    with hansard.start_run(agent_name="mender") as run, run.step("summarize") as step:
        inside = remember(writer="post_step_summarizer")
    named = remember(
        "Totals are cents.", writer="post_step_summarizer", source_step_ids=[step.step_id]
    )

    assert nowhere.value.code == "writer_refused"
    assert inside.fields["source_run_id"] == run.run_id
    assert named.fields["source_step_ids"] == [step.step_id]


def test_what_an_approved_tool_returned_is_written_as_its_output(place: DataFolder) -> None:
    @hansard.tool(effect="write", name="read_ci")
    def read_ci(branch: str) -> dict[str, str]:
        return {"python": "3.12", "branch": branch}

    asked = read_ci("main")["approval_id"]  # type: ignore[call-overload]
    approvals.approve(asked, by="ana", token=add_token(place, "ana"))
    result = approvals.run(asked).result
    cited = {"writer": "approved_tool_output", "approval_id": asked}

    with pytest.raises(MemoryRefused) as refused:
        remember({**result, "python": "2.7"}, **cited)
    written = remember(result, **cited)

    assert refused.value.code == "writer_refused"
    assert (written.content, written.fields["approval_id"]) == (result, asked)


def test_what_is_refused_has_the_code_of_the_api(place: DataFolder) -> None:
    with pytest.raises(MemoryRefused) as unapproved:
        remember(writer="human_approved_summary")
    with pytest.raises(MemoryRefused) as unnamed:
        remember(project=None)
    first = remember()
    remember("Something else.")
    with pytest.raises(MemoryRefused) as late:
        remember("A third thing.", replaces=first.id)

    codes = [one.value.code for one in (unapproved, unnamed, late)]
    assert codes == ["writer_refused", "bad_request", "memory_not_current"]
    with pytest.raises(MemoryUnavailable, match="none is open"):
        memory.working()["plan"] = "x"


def test_secrets_leave_neither_process_nor_trace(place: DataFolder) -> None:
    with hansard.start_run(agent_name="clerk"):
        written = remember(
            {"key": SECRET}, tags=["a"], fresh_as_of=datetime(2026, 1, 2, tzinfo=UTC)
        )
        memory.read(project="quillbook", text=f"what is {SECRET}?")

    assert "‹redacted:" in str(written.content)
    assert written.fields["freshness_at"].startswith("2026-01-02")
    hansard.flush()
    files = [path.read_bytes() for path in place.path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in file for file in files)


def test_memory_works_where_nothing_is_recorded(tmp_path: Path, unrecorded: None) -> None:
    hansard.init(service_name="x", embedded=True, data=tmp_path)
    try:
        written = remember()
        assert [one.id for one in memory.read(project="quillbook")] == [written.id]
        assert written.fields["source_run_id"] is None
    finally:
        hansard.shutdown()


def test_a_server_that_is_away_says_so(tmp_path: Path, unrecorded: None) -> None:
    hansard.init(
        service_name="x",
        endpoint="http://127.0.0.1:9",
        protocol="http/protobuf",
        data=tmp_path,
    )
    try:
        with pytest.raises(MemoryUnavailable):
            remember()
    finally:
        hansard.shutdown()


def test_a_program_that_keeps_no_content_remembers_nothing(
    tmp_path: Path, unrecorded: None
) -> None:
    hansard.init(service_name="x", embedded=True, data=tmp_path, retention="metadata_only")
    try:
        with pytest.raises(MemoryRefused) as refused:
            remember()
        assert refused.value.code == "memory_not_retained"
    finally:
        hansard.shutdown()


def test_threads_of_one_program_share_its_memory(tmp_path: Path, unrecorded: None) -> None:
    hansard.init(service_name="x", embedded=True, data=tmp_path)
    try:
        threads = [
            threading.Thread(
                target=remember, args=(f"note {number}",), kwargs={"subject": f"{number}"}
            )
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(memory.read(project="quillbook")) == 8
    finally:
        hansard.shutdown()
