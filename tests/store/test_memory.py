"""Memory: what supersedes what, what is read, what is recorded, and what is never lost."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard_compiler.compile.models import MemoryRecord, parse
from hansard_compiler.errors import AmbiguousIdError, NotFoundError
from hansard_compiler.models.memory import AcceptMemory, EndMemory
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.audit.events import verify_events
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.transactions import transaction
from hansard_store.maintenance.deletion import delete_run
from hansard_store.maintenance.garbage import purge as purge_store
from hansard_store.memory.access_log import accesses_in, accesses_of, reads_by_day
from hansard_store.memory.errors import InvalidMemory, MemoryNotRetained, NotCurrent, TooLarge
from hansard_store.memory.queries import MemoryFilter, facets, list_memories
from hansard_store.memory.rows import find_number, get_memory, versions_of
from hansard_store.memory.service import open_memory
from hansard_store.verification.integrity import verify_store
from tests.store.by_hand import failing
from tests.store.maker import StoreMaker, trace_id
from tests.store.memory_maker import NOW, OTHER_RUN, PROJECT, RUN, SECOND, STEP, MemoryMaker

SECRET = "sk-proj-" + "T9xQz7LmW2vRk4NbY8cJ1hGd5sFp3aKe6uVi0oXw"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[MemoryMaker]:
    maker = MemoryMaker(tmp_path / "data")
    yield maker
    maker.close()


# ---- durable memory


@pytest.mark.covers("ME-01", "ME-05", "ME-07", "ME-16", "TS-09")
def test_the_five_sorts_are_kept_with_all_they_tell_and_survive_a_restart(
    memory: MemoryMaker,
) -> None:
    sorts = ("preference", "constraint", "fact", "session_summary", "decision")
    for sort in sorts:
        memory.write(
            {"value": sort},
            memory_type=sort,
            subject=f"a {sort}",
            confidence=0.95,
            freshness_ts="2026-03-04T12:00:00Z",
            expires_at="2100-01-01T00:00:00Z",
            tags=["b", "a"],
            scope={"environment": "ci"},
            metadata={"from": "CONVENTIONS.md"},
            by="mender",
        )
    memory.book.close()

    again = open_memory(memory.folder.path, retention=RetentionMode.REDACTED_PAYLOADS)
    answer = again.read_json({"namespace": PROJECT, "scope": {"environment": "ci"}})
    again.close()

    assert {one["memory_type"] for one in answer["items"]} == set(sorts)
    first = answer["items"][-1]
    assert (first["subject"], first["content"]) == ("a preference", {"value": "preference"})
    assert (first["confidence"], first["tags"]) == (0.95, ["a", "b"])
    assert first["freshness_at"] == "2026-03-04T12:00:00.000000000Z"
    assert first["expires_at"] == "2100-01-01T00:00:00.000000000Z"
    assert (first["written_by"], first["writer"]) == ("mender", "app")
    assert (first["source_run_id"], first["source_step_ids"]) == (RUN, [STEP])
    assert first["metadata"] == {"from": "CONVENTIONS.md"}
    for record in answer["memory_records"]:
        assert parse(MemoryRecord, record).source_run_id == RUN


@pytest.mark.covers("ME-06")
def test_the_same_subject_in_two_namespaces_does_not_collide(memory: MemoryMaker) -> None:
    memory.write("for quillbook")
    memory.write("for crm", namespace={"project": "crm"})
    memory.write("for noor in quillbook", namespace={**PROJECT, "user": "noor"})

    assert memory.contents() == ["for quillbook"]
    assert memory.contents(namespace={"project": "crm"}) == ["for crm"]
    mine = memory.contents(namespace={**PROJECT, "user": "noor"})
    assert sorted(mine) == ["for noor in quillbook", "for quillbook"]


@pytest.mark.covers("ME-06")
@pytest.mark.parametrize("part", ["project", "user", "agent"])
@pytest.mark.parametrize("text", [None, "rounding"])
def test_what_one_project_user_or_agent_keeps_no_other_reads(
    memory: MemoryMaker, part: str, text: str | None
) -> None:
    others = {"project": "quillbook", "user": "noor", "agent": "clerk"}
    del others[part]
    for name in ("one", "two"):
        memory.write(f"rounding of {name}", namespace={**others, part: name})
    memory.write("rounding of all", namespace=others)

    for name in ("one", "two"):
        found = memory.contents(namespace={**others, part: name}, text=text)
        assert sorted(found) == ["rounding of all", f"rounding of {name}"]
    assert memory.contents(namespace={**others, part: "three"}, text=text) == ["rounding of all"]
    assert memory.contents(namespace=others, text=text) == ["rounding of all"]


def test_a_newer_record_supersedes_and_the_older_one_is_read_only_in_history(
    memory: MemoryMaker,
) -> None:
    old = memory.write("CI runs Python 3.10")
    new = memory.write("CI runs Python 3.12")

    assert (new["outcome"], new["superseded"]) == ("current", [old["memory"]["memory_id"]])
    assert memory.contents() == ["CI runs Python 3.12"]
    assert memory.contents(text="which Python does CI run?") == ["CI runs Python 3.12"]
    hidden = memory.read(hidden=True)
    assert [one["state"] for one in hidden] == ["current", "superseded"]
    assert hidden[1]["superseded_by"] == new["memory"]["memory_id"]
    number = find_number(memory.connection, new["memory"]["memory_id"])
    line = get_memory(memory.connection, new["memory"]["memory_id"], now_ns=NOW).line
    versions = versions_of(memory.connection, line, now_ns=NOW)
    assert [one.version for one in versions] == [2, 1]
    assert versions[0].id == number


@pytest.mark.parametrize("confidence", [0.49, 0.1])
def test_a_much_less_trusted_record_waits_for_a_person(
    memory: MemoryMaker, confidence: float
) -> None:
    old = memory.write("Totals are rounded once.", confidence=0.8)
    new = memory.write("Totals are rounded twice.", confidence=confidence)

    assert (new["outcome"], new["current_memory_id"]) == ("review", old["memory"]["memory_id"])
    assert new["memory"]["contests"] == old["memory"]["memory_id"]
    assert memory.contents() == ["Totals are rounded once."]

    accepted = memory.book.accept(AcceptMemory(memory_id=new["memory"]["memory_id"], by="noor"))

    assert (accepted.state, accepted.contests) == ("current", None)
    assert memory.contents() == ["Totals are rounded twice."]
    with pytest.raises(NotCurrent):
        memory.book.accept(AcceptMemory(memory_id=new["memory"]["memory_id"], by="noor"))


def test_a_little_less_trust_supersedes_and_so_does_any_after_the_old_one_expired(
    memory: MemoryMaker,
) -> None:
    memory.write("one", confidence=0.8, ttl_s=10)
    assert memory.write("two", confidence=0.5, ttl_s=10)["outcome"] == "current"
    memory.now_ns += 11 * SECOND

    assert memory.write("three", confidence=0.1)["outcome"] == "current"


def test_the_same_said_again_is_fresher_and_no_second_record(memory: MemoryMaker) -> None:
    first = memory.write(freshness_ts="2026-01-01T00:00:00Z")
    again = memory.write()

    assert again["outcome"] == "repeat"
    assert again["memory"]["memory_id"] == first["memory"]["memory_id"]
    assert again["memory"]["freshness_ns"] == str(NOW)
    assert len(memory.read(hidden=True)) == 1
    rival = memory.write("other", confidence=0.1)
    assert memory.write("other", confidence=0.1)["outcome"] == "repeat"
    assert memory.rows("SELECT count(*) FROM memory") == [(2,)]
    assert rival["outcome"] == "review"


def test_what_is_told_as_of_an_earlier_time_does_not_supersede(memory: MemoryMaker) -> None:
    memory.write("new", freshness_ts="2026-03-04T12:00:00Z")

    late = memory.write("old", freshness_ts="2026-03-01T12:00:00Z")

    assert (late["outcome"], late["memory"]["state"]) == ("superseded", "superseded")
    assert memory.contents() == ["new"]


def test_a_clock_that_is_set_back_does_not_make_a_new_record_old(memory: MemoryMaker) -> None:
    memory.write("before")
    memory.now_ns -= 3600 * SECOND

    after = memory.write("after")

    assert after["outcome"] == "current"
    assert after["memory"]["freshness_ns"] == str(NOW)
    assert memory.contents() == ["after"]


def test_attributes_keep_facts_about_one_subject_apart(memory: MemoryMaker) -> None:
    memory.write("Python 3.12", subject="CI", attribute="version")
    memory.write("nightly", subject="ci ", attribute="schedule")
    memory.write("Python 3.13", subject="ci", attribute="Version")

    assert sorted(memory.contents()) == ["Python 3.13", "nightly"]
    assert memory.contents(subject="CI", text="nightly") == []
    assert memory.contents(subject="ci ") == ["nightly"]


def test_a_write_that_replaces_one_is_refused_when_that_one_has_changed(
    memory: MemoryMaker,
) -> None:
    old = memory.write("one", subject="the old name")["memory"]["memory_id"]
    memory.write("two", subject="the new name", replaces=old[:12])

    assert memory.contents() == ["two"]
    with pytest.raises(NotCurrent) as refused:
        memory.write("three", replaces=old)
    assert refused.value.details["state"] == "superseded"
    assert memory.contents() == ["two"]


# ---- expiry, invalidation, purge


@pytest.mark.covers("ME-17")
def test_what_is_past_its_time_is_not_read_and_gc_says_how_much(memory: MemoryMaker) -> None:
    memory.write("soon gone", ttl_s=60)
    memory.write("stays", subject="other")
    memory.now_ns += 60 * SECOND

    assert memory.contents() == ["stays"]
    assert [one["state"] for one in memory.read(hidden=True)] == ["current", "expired"]
    assert memory.book.expire_due() == 1
    assert memory.book.expire_due() == 0
    assert memory.contents() == ["stays"]
    assert [one["state"] for one in memory.read(hidden=True)] == ["current", "expired"]


@pytest.mark.covers("ME-18")
def test_what_is_invalidated_is_not_read_and_stays_with_its_reason(memory: MemoryMaker) -> None:
    memory.write("first")
    memory_id = memory.write("second")["memory"]["memory_id"]

    gone = memory.invalidate(memory_id, reason=f"leaked {SECRET}")

    assert memory.contents() == []  # the one before does not come back
    assert (gone["state"], gone["content"]) == ("invalidated", "second")
    assert gone["ended"]["by"] == "noor"
    assert gone["ended"]["reason"].startswith("leaked ‹redacted:")
    with pytest.raises(NotCurrent):
        memory.invalidate(memory_id)


def test_what_a_person_took_back_does_not_return_because_a_program_says_it_again(
    memory: MemoryMaker,
) -> None:
    memory_id = memory.write("Use round().")["memory"]["memory_id"]
    memory.invalidate(memory_id)

    again = memory.write("Use round().")
    other = memory.write("Use to_cents().")

    assert (again["outcome"], again["memory"]["contests"]) == ("review", memory_id)
    assert other["outcome"] == "current"
    assert memory.contents() == ["Use to_cents()."]


def test_a_purge_leaves_no_byte_but_who_and_why(memory: MemoryMaker) -> None:
    memory_id = memory.write("the canary sings", subject="canary", tags=["canarytag"])["memory"][
        "memory_id"
    ]
    memory.read(text="canary")

    purged = memory.book.purge(EndMemory(memory_id=memory_id, reason="asked for", by="noor"))
    memory.connection.close()
    memory.book.close()
    connection = open_for_maintenance(memory.folder, secure=True)
    purge_store(connection)
    connection.close()

    assert (purged.state, purged.content, purged.subject) == ("purged", None, "")
    assert purged.content_hmac.startswith("hmac-sha256:")
    files = [path.read_bytes() for path in memory.folder.path.rglob("*") if path.is_file()]
    assert [word for word in (b"canary", b"sings") for file in files if word in file.lower()] == []
    assert verify_store(memory.folder).is_sound


# ---- working memory


@pytest.mark.covers("ME-02", "ME-04")
def test_the_last_write_to_a_slot_is_current_and_the_ones_before_are_history(
    memory: MemoryMaker,
) -> None:
    slots = ["task_summary", "plan", "open_questions", "temporary_facts", "tool_outputs",
             "artifacts"]  # fmt: skip
    for slot in slots:
        memory.work(slot, f"first {slot}", confidence=0.9)
        memory.work(slot, f"then {slot}", confidence=0.1)

    items = memory.read(namespace={}, run_id=RUN)

    assert {one["slot"]: one["content"] for one in items} == {one: f"then {one}" for one in slots}
    (plan,) = memory.read(namespace={}, run_id=RUN, slots=["plan"])
    line = get_memory(memory.connection, plan["memory_id"], now_ns=NOW).line
    history = versions_of(memory.connection, line, now_ns=NOW)
    assert [one.content for one in history] == ["then plan", "first plan"]
    assert memory.rows("SELECT count(*) FROM memory_access WHERE kind = 'write'") == [(12,)]


@pytest.mark.covers("ME-03")
def test_working_memory_is_of_its_run_and_chain(memory: MemoryMaker) -> None:
    memory.work("plan", "the run's plan")
    memory.work("task_summary", "the run's task")
    memory.work("plan", "the chain's plan", chain=STEP)

    def seen(**asked: Any) -> dict[str, str]:
        found = memory.read(namespace={}, **asked)
        return {one["slot"]: one["content"] for one in found}

    assert seen(run_id=RUN) == {"plan": "the run's plan", "task_summary": "the run's task"}
    chained = {"plan": "the chain's plan", "task_summary": "the run's task"}
    assert seen(run_id=RUN, chain=STEP) == chained
    assert seen(run_id=OTHER_RUN) == {}
    assert seen(run_id=OTHER_RUN, of_run=RUN)["plan"] == "the run's plan"
    assert memory.contents(run_id=RUN) == []  # durable memory has none of it


# ---- what is recorded


@pytest.mark.covers("ME-19", "ME-20")
def test_every_read_and_write_is_recorded_with_its_run_and_step(memory: MemoryMaker) -> None:
    memory_id = memory.write(agent="mender")["memory"]["memory_id"]
    reader = f"{OTHER_RUN}-{'34' * 8}"
    memory.read(step_id=reader)
    memory.read(step_id=reader, text="nothing of the kind")

    number = find_number(memory.connection, memory_id)
    touched = accesses_of(memory.connection, [number], limit=10)
    in_run = accesses_in(memory.connection, bytes.fromhex(OTHER_RUN))

    assert [(one.kind, one.step_id) for one in touched] == [("read", reader), ("write", STEP)]
    assert touched[1].agent == "mender"
    assert [(one.kind, one.memory_id) for one in in_run] == [("read", None), ("read", memory_id)]
    assert reads_by_day(memory.connection, [number], now_ns=NOW)[-1] == 1
    found = get_memory(memory.connection, memory_id[-8:], now_ns=NOW)
    assert (found.reads, found.last_read_ns) == (1, NOW)


def test_every_change_has_one_event_and_no_event_has_content(memory: MemoryMaker) -> None:
    memory_id = memory.write("hushhush", subject="a quiet subject")["memory"]["memory_id"]
    memory.write("hushhush", subject="a quiet subject")
    low = memory.write("otherwise", subject="a quiet subject", confidence=0.1)["memory"]
    memory.book.accept(AcceptMemory(memory_id=low["memory_id"], by="noor", reason="quietly"))
    memory.invalidate(low["memory_id"], reason="quietly")
    memory.book.purge(EndMemory(memory_id=memory_id, reason="quietly", by="noor"))
    memory.write("brief", subject="x", ttl_s=1)
    memory.now_ns += 2 * SECOND
    memory.book.expire_due()

    rows = memory.rows("SELECT type, action, actor, subject, body FROM event ORDER BY seq")

    assert [(one[1], one[2]) for one in rows] == [
        ("memory.write", "agent"), ("memory.repeat", "agent"), ("memory.write", "agent"),
        ("memory.accept", "me"), ("memory.invalidate", "me"), ("memory.purge", "me"),
        ("memory.write", "agent"), ("memory.expire", "system"),
    ]  # fmt: skip
    assert {one[0] for one in rows} == {"memory.written", "memory.invalidated"}
    assert rows[0][3] == f"memory:{memory_id}"
    assert "hush" not in str(rows)
    assert "quiet" not in str(rows)
    assert verify_events(memory.connection).is_sound


def test_a_write_that_fails_leaves_neither_record_nor_event(memory: MemoryMaker) -> None:
    with failing("BEFORE INSERT ON event"), pytest.raises(Exception, match="fault"):
        memory.write()

    for table in ("memory", "memory_body", "memory_access", "event"):
        assert memory.rows(f"SELECT count(*) FROM {table}") == [(0,)]


# ---- secrets and retention


def test_secrets_are_cut_out_before_anything_is_written(memory: MemoryMaker) -> None:
    told = memory.write(
        {"note": f"use {SECRET}", "deep": [SECRET]},
        subject=f"key {SECRET}",
        tags=[SECRET],
        metadata={"k": SECRET},
        namespace={"project": SECRET},
        by=SECRET,
        agent=SECRET,
    )
    memory.read(namespace={"project": SECRET}, agent=SECRET)
    memory.book.close()
    memory.connection.close()

    assert told["memory"]["content"]["note"].startswith("use ‹redacted:")
    assert told["memory"]["removed"]
    files = [path.read_bytes() for path in memory.folder.path.rglob("*") if path.is_file()]
    assert not any(SECRET.encode() in file for file in files)


def test_a_store_that_keeps_no_content_refuses_memory(tmp_path: Path) -> None:
    strict = MemoryMaker(tmp_path / "data", RetentionMode.METADATA_ONLY)

    with pytest.raises(MemoryNotRetained):
        strict.write()
    with pytest.raises(MemoryNotRetained):
        strict.work("plan", "x")

    assert strict.rows("SELECT count(*) FROM memory") == [(0,)]
    strict.close()


# ---- what is refused


@pytest.mark.covers("ME-10")
@pytest.mark.parametrize(
    ("told", "place"),
    [
        ({"writer": None}, "writer"),
        ({"writer": "model"}, "writer"),
        ({"namespace": {}}, "WriteMemory"),
        ({"subject": None}, "WriteMemory"),
        ({"memory_type": "working"}, "WriteMemory"),
        ({"slot": "plan"}, "WriteMemory"),
        ({"content": ""}, "content.constrained-str"),
        ({"content": "\ud800"}, "content.constrained-str"),
        ({"confidence": 1.5}, "confidence"),
        ({"confidence": float("nan")}, "confidence"),
        ({"run_id": "no id"}, "run_id"),
        ({"step_id": f"{OTHER_RUN}-{'1' * 16}"}, "WriteMemory"),
        ({"ttl_s": 5, "expires_at": "2100-01-01T00:00:00Z"}, "WriteMemory"),
        ({"trust": 1}, "trust"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(
    memory: MemoryMaker, told: dict[str, Any], place: str
) -> None:
    with pytest.raises(InvalidMemory) as refused:
        memory.write(**told)

    assert place in [one["at"] for one in refused.value.problems]
    assert memory.rows("SELECT count(*) FROM memory") == [(0,)]


def test_a_record_that_is_too_large_is_refused_with_the_numbers(memory: MemoryMaker) -> None:
    with pytest.raises(TooLarge) as refused:
        memory.write("x" * 70_000)

    details = refused.value.details
    assert details["found_bytes"] > details["most_bytes"] == 65_536


def test_a_read_must_say_whose_memory(memory: MemoryMaker) -> None:
    with pytest.raises(InvalidMemory):
        memory.read(namespace={})


def test_ids_are_found_by_their_beginning(memory: MemoryMaker) -> None:
    for wrong in ("abc", "zz" * 8, "00" * 16):
        with pytest.raises(NotFoundError):
            memory.invalidate(wrong) if len(wrong) == 32 else get_memory(
                memory.connection, wrong, now_ns=NOW
            )
    rows = [(bytes([7] * 15 + [last]), bytes([last])) for last in (1, 2)]
    memory.write()
    with transaction(memory.connection):
        for memory_id, key in rows:
            memory.connection.execute(
                "INSERT INTO memory SELECT id + ?, ?, ?, line, version, memory_type, project, user,"
                " agent, trace_id, chain, slot, 'superseded', confidence, freshness_ns, expires_ns,"
                " created_ns, writer, written_by, source_trace, source_steps, approval_id,"
                " superseded_by, contests, ended_ns, ended_by, ended_reason, content_hmac, reads,"
                " last_read_ns, ended_method, written_method, written_principal"
                " FROM memory WHERE id = 1",
                (key[0], memory_id, key),
            )
    with pytest.raises(AmbiguousIdError):
        get_memory(memory.connection, "07070707", now_ns=NOW)


# ---- deletion of runs


def test_deleting_a_run_keeps_durable_memory_and_takes_its_working_memory(
    store: StoreMaker,
) -> None:
    run = trace_id("one").hex()
    with store.batch():
        store.span("a", run="one")
    book = open_memory(store.folder.path, retention=RetentionMode.REDACTED_PAYLOADS)
    told = {"writer": "app", "run_id": run, "content": "c"}
    kept = book.write_json({**told, "memory_type": "fact", "subject": "s", "namespace": PROJECT})[
        "memory"
    ]
    working = book.write_json({**told, "memory_type": "working", "slot": "plan"})["memory"]
    assert not kept["source_run_deleted"]

    connection = open_for_maintenance(store.folder)
    delete_run(connection, trace_id("one"), reason="by hand")

    (found,) = book.read_json({"namespace": PROJECT})["items"]
    assert (found["memory_id"], found["source_run_deleted"]) == (kept["memory_id"], True)
    with pytest.raises(NotFoundError):
        get_memory(connection, working["memory_id"], now_ns=NOW)
    assert connection.execute("SELECT count(*) FROM memory_body").get == 1
    assert verify_store(store.folder).is_sound
    connection.close()
    book.close()


# ---- lists


def test_lists_are_narrowed_and_read_page_by_page(memory: MemoryMaker) -> None:
    for number in range(7):
        memory.write(
            f"fact {number}",
            memory_type="fact",
            subject=f"s{number}",
            tags=["odd"] if number % 2 else [],
            confidence=number / 10,
            namespace={"project": "crm" if number == 6 else "quillbook"},
        )
    memory.work("plan", "x")
    connection = memory.connection

    def ids(**wanted: Any) -> list[str]:
        found: list[str] = []
        cursor = None
        while True:
            page = list_memories(
                connection, MemoryFilter(**wanted), now_ns=NOW, limit=2, cursor=cursor
            )
            found += [one.subject for one in page.items]
            cursor = page.next_cursor
            if cursor is None:
                return found

    assert ids(layer="durable") == [f"s{number}" for number in range(6, -1, -1)]
    assert ids(tag="odd") == ["s5", "s3", "s1"]
    assert ids(project="crm") == ["s6"]
    assert ids(min_confidence=0.4, layer="durable") == ["s6", "s5", "s4"]
    assert ids(text="fact 3") == ["s3"]
    assert ids(run=bytes.fromhex(RUN), memory_type="working") == ["plan"]
    assert ids(writer="app", state="superseded") == []
    counts = facets(connection, now_ns=NOW)
    assert (counts.states, counts.types) == ({"current": 8}, {"fact": 7, "working": 1})
    assert counts.projects == {"quillbook": 6, "crm": 1}


@settings(max_examples=30)
@given(
    writes=st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.floats(0, 1)), max_size=12
    )
)
def test_whatever_is_written_one_record_of_a_subject_is_current(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[str, int, float]]
) -> None:
    memory = MemoryMaker(tmp_path_factory.mktemp("memory"))
    for subject, value, confidence in writes:
        memory.write(f"value {value}", subject=subject, confidence=confidence)

    current = memory.read()
    memory.close()

    assert sorted(one["subject"] for one in current) == sorted({one[0] for one in writes})


# ---- many at once


def _write_many(path: str, name: str, count: int) -> None:
    book = open_memory(Path(path), retention=RetentionMode.REDACTED_PAYLOADS)
    for number in range(count):
        book.write_json(
            {
                "writer": "app", "memory_type": "fact", "subject": "shared", "namespace": PROJECT,
                "attribute": "last", "content": f"{name} {number}",
            }
        )  # fmt: skip
    book.close()


@pytest.mark.slow
@pytest.mark.covers("ME-22")
def test_two_processes_and_two_threads_write_to_one_subject_and_lose_nothing(
    memory: MemoryMaker,
) -> None:
    spawn = multiprocessing.get_context("spawn")
    path = str(memory.folder.path)
    workers: list[Any] = [
        spawn.Process(target=_write_many, args=(path, f"process {number}", 350))
        for number in range(2)
    ]
    workers += [
        threading.Thread(target=_write_many, args=(path, f"thread {number}", 150))
        for number in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    rows = memory.rows("SELECT count(*), count(DISTINCT version), max(version) FROM memory")
    assert rows == [(1000, 1000, 1000)]
    assert len(memory.read()) == 1
    assert memory.rows("SELECT count(*), max(seq) FROM event") == [(1000, 1000)]
    assert memory.rows("SELECT count(*) FROM memory_access") == [(1001,)]
    assert verify_events(memory.connection).is_sound


# ---- records that do not say which attribute they are about


def test_two_facts_of_one_subject_without_an_attribute_stand_beside_each_other(
    memory: MemoryMaker,
) -> None:
    about = {"subject": "Ada", "memory_type": "preference", "attribute": ""}

    dark = memory.write("dark mode", **about)
    metric = memory.write("metric units", **about)
    again = memory.write("dark mode", **about)

    assert [one["outcome"] for one in (dark, metric, again)] == ["current", "current", "repeat"]
    assert (metric["superseded"], metric["conflicts"]) == ([], [])
    assert sorted(memory.contents(subject="ada")) == ["dark mode", "metric units"]


def test_a_contradiction_is_looked_for_and_named_in_the_answer(memory: MemoryMaker) -> None:
    about = {"subject": "staging", "attribute": "", "memory_type": "fact"}

    first = memory.write("The staging database runs in Frankfurt am Main now.", **about)
    timeout = memory.write("The request timeout is 30 seconds.", **about)
    other = memory.write("The request timeout is 45 seconds.", **about)
    doubtful = memory.write("The deadline is Friday.", **about)
    late = memory.write("The deadline is Monday.", **about)

    assert first["conflicts"] == timeout["conflicts"] == doubtful["conflicts"] == []
    named = {"difference": "number", "is_certain": True}
    assert other["conflicts"] == [{"memory_id": timeout["memory"]["memory_id"], **named}]
    assert [one["is_certain"] for one in late["conflicts"]] == [False]
    assert len(memory.contents(subject="staging")) == 5


def test_what_contradicts_a_record_that_is_trusted_much_more_waits_for_a_person(
    memory: MemoryMaker,
) -> None:
    about = {"subject": "staging", "attribute": "", "memory_type": "fact"}
    sure = memory.write("The request timeout is 30 seconds.", confidence=0.9, **about)

    unsure = memory.write("The request timeout is 45 seconds.", confidence=0.5, **about)

    assert unsure["outcome"] == unsure["memory"]["state"] == "review"
    assert (
        unsure["current_memory_id"] == unsure["memory"]["contests"] == sure["memory"]["memory_id"]
    )
    assert memory.contents(subject="staging") == ["The request timeout is 30 seconds."]


def test_what_was_taken_back_without_an_attribute_does_not_return(memory: MemoryMaker) -> None:
    gone = memory.write("dark mode", subject="Ada", attribute="")["memory"]["memory_id"]
    memory.invalidate(gone)

    again = memory.write("dark mode", subject="Ada", attribute="")

    assert again["outcome"] == "review"


# ---- reading in other words


@pytest.mark.covers("CP-59")
@pytest.mark.parametrize(
    ("scorer", "text", "found"),
    [
        ("embeddings", "When do I get my money back?", "Refunds are paid to the card."),
        ("embeddings", "In which city do we work?", "The office is in Oslo."),
        ("pieces", "How do I unsubscribe?", "The subscription ends in May."),
        ("bm25", "Where is the subscription?", "The subscription ends in May."),
    ],
)
def test_a_question_in_other_words_finds_its_record(
    memory: MemoryMaker, scorer: str, text: str, found: str
) -> None:
    for number, content in enumerate(
        ["Refunds are paid to the card.", "The keys are replaced by Ana.",
         "The subscription ends in May.", "Cats sleep all day.", "The office is in Oslo."]
    ):  # fmt: skip
        memory.write(content, subject=content.split()[1], attribute=str(number))

    assert memory.contents(text=text, scorer=scorer)[0] == found


def test_an_unknown_scorer_is_refused_by_name(memory: MemoryMaker) -> None:
    with pytest.raises(InvalidMemory, match="expected one of bm25, pieces, embeddings"):
        memory.read(text="x", scorer="tfidf")
