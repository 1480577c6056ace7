"""Annotations: what is written, replaced, withdrawn, found again, and what is refused."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hansard_collector.derivation.rebuild import rebuild
from hansard_compiler.errors import NotFoundError
from hansard_compiler.models.annotations import Withdraw
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.annotations.errors import (
    AnnotationNotCurrent,
    AnnotationRefused,
    InvalidAnnotation,
    SecretInName,
    TextNotRetained,
    TooMany,
)
from hansard_store.annotations.queries import (
    annotation_json,
    annotations_in_run,
    count_pruned,
    ended_on,
    known_names,
    list_annotations,
    mark_conditions,
    marked_targets,
    read_scores,
    read_tags,
    standing_on,
)
from hansard_store.annotations.rows import MOST_ENDED, Annotation, AnnotationTarget
from hansard_store.annotations.service import MOST_OF_TARGET, AnnotationService
from hansard_store.database.connections import open_for_maintenance
from hansard_store.database.readers import open_reader
from hansard_store.database.sql_console import read_sql
from hansard_store.errors import InvalidCursorError, InvalidQueryError
from hansard_store.maintenance.backup import back_up
from hansard_store.maintenance.deletion import delete_run
from hansard_store.runs.filters import RunFilter
from hansard_store.runs.queries import changed_runs, get_run, last_change, list_runs, run_facets
from hansard_store.verification.integrity import verify_store
from tests.store.maker import NOW, StoreMaker, span_id, trace_id
from tests.store.plans import QueryPlans

SECRET = "sk-ant-api03-" + "Zk9" * 31
RUN = trace_id("r").hex()
STEP = f"{RUN}-{span_id('a').hex()}"
OTHER = trace_id("other").hex()
Say = Callable[..., Annotation]


@pytest.fixture
def marked(store: StoreMaker) -> StoreMaker:
    """Two runs: one of two steps, one of one."""
    store.span("a", run="r")
    store.span("b", "a", run="r")
    store.span("c", run="other")
    return store


@pytest.fixture
def book(marked: StoreMaker) -> Iterator[AnnotationService]:
    made = AnnotationService(marked.folder)
    yield made
    made.close()


@pytest.fixture
def say(book: AnnotationService) -> Say:
    """Annotate the run `r`, unless told otherwise."""

    def write(kind: str, by: str = "noor", **told: Any) -> Annotation:
        place = {} if "step_id" in told or "run_id" in told else {"run_id": RUN}
        return book.write_json({"kind": kind, **place, **told}, by=by)

    return write


def score(value: float | None = 0.5, label: str | None = None, **more: Any) -> dict[str, Any]:
    return {"name": "correctness", "score": {"value": value, "label": label}, **more}


def states(store: StoreMaker, run: str = "r") -> list[tuple[str, float | None, str]]:
    return [(one.row.kind, one.row.value, one.state) for one in every(store, run)]


def every(store: StoreMaker, run: str = "r") -> list[Annotation]:
    """Return what was ever said of a run itself, in order."""
    target = AnnotationTarget(trace_id(run))
    said = (*standing_on(store.db, target, limit=100), *ended_on(store.db, target, limit=100))
    return sorted(said, key=lambda one: one.id)


def test_an_annotation_says_who_when_and_by_which_kind_of_judge(
    marked: StoreMaker, say: Say
) -> None:
    before = time.time_ns()
    told = annotation_json(say("score", **score(0.9, "pass", explanation="all there")))

    assert told["score"] == {"value": 0.9, "label": "pass"}
    assert (told["name"], told["explanation"], told["text"]) == ("correctness", "all there", None)
    assert (told["author"], told["source"], told["origin"]) == ("noor", "human", "api")
    assert before <= int(told["created_ns"]) <= time.time_ns()
    assert (told["run_id"], told["step_id"], told["state"]) == (RUN, None, "current")
    assert annotation_json(say("note", step_id=STEP, text="x"))["step_id"] == STEP


def test_a_newer_score_of_one_author_replaces_the_older_and_both_are_kept(
    marked: StoreMaker, say: Say
) -> None:
    say("score", **score(0.2))
    say("score", **score(0.9))
    say("score", by="iris", **score(0.4))
    say("score", source="llm", **score(0.7))
    say("score", **{**score(0.1), "name": "tone"})

    assert states(marked) == [
        ("score", 0.2, "replaced"),
        ("score", 0.9, "current"),
        ("score", 0.4, "current"),
        ("score", 0.7, "current"),
        ("score", 0.1, "current"),
    ]


@pytest.mark.parametrize("step_id", [None, STEP])
def test_of_what_is_replaced_again_and_again_the_newest_are_kept_and_the_others_counted(
    marked: StoreMaker, say: Say, step_id: str | None
) -> None:
    place = {"step_id": step_id} if step_id else {}
    for number in range(MOST_ENDED + 6):
        say("score", **score(number), **place)

    target = AnnotationTarget(trace_id("r"), span_id("a") if step_id else b"")
    ended = ended_on(marked.db, target, limit=1_000)
    assert [one.row.value for one in (ended[0], ended[-1])] == [MOST_ENDED + 4, 5]
    assert [one.row.value for one in standing_on(marked.db, target, limit=9)] == [MOST_ENDED + 5]
    assert (len(ended), count_pruned(marked.db, target)) == (MOST_ENDED, 5)
    assert count_pruned(marked.db, AnnotationTarget(trace_id("r")), with_steps=True) == 5
    assert count_pruned(marked.db, AnnotationTarget(trace_id("other")), with_steps=True) == 0


def test_what_people_took_back_is_not_pushed_out_by_what_programs_replace(
    marked: StoreMaker, book: AnnotationService, say: Say
) -> None:
    note = say("note", text="of another run")
    book.withdraw(note.annotation_id or "", Withdraw(reason="wrong run"), by="noor")
    for number in range(MOST_ENDED + 3):
        say("score", **score(number))
    for number in range(MOST_ENDED + 2):  # and that is bounded for itself
        tag = say("tag", tag=f"t{number % 7}")
        book.withdraw(tag.annotation_id or "", Withdraw(), by="noor")

    ended = ended_on(marked.db, AnnotationTarget(trace_id("r")), limit=1_000)
    assert len(ended) == 2 * MOST_ENDED
    assert count_pruned(marked.db, AnnotationTarget(trace_id("r"))) == 2 + 3


def test_what_stands_word_for_word_is_not_written_again(marked: StoreMaker, say: Say) -> None:
    first = say("score", **score(0.2, explanation="why"))
    tag = say("tag", tag="Needs  Review")

    assert say("score", **score(0.2, explanation="why")).annotation_id == first.annotation_id
    assert say("tag", by="iris", tag="needs-review").annotation_id == tag.annotation_id
    assert tag.row.name == "needs-review"
    say("note", text="twice")
    say("note", text="twice")
    assert len(states(marked)) == 4


def test_what_is_withdrawn_stays_with_who_did_it_and_why(
    marked: StoreMaker, book: AnnotationService, say: Say
) -> None:
    note = say("note", text="wrong run")
    assert note.annotation_id is not None

    gone = annotation_json(
        book.withdraw(note.annotation_id[-8:], Withdraw(reason="mistake"), by="iris")
    )

    assert gone["state"] == "withdrawn"
    assert (gone["ended"]["by"], gone["ended"]["reason"]) == ("iris", "mistake")
    assert gone["text"] == "wrong run"
    with pytest.raises(AnnotationNotCurrent, match="was withdrawn already"):
        book.withdraw(note.annotation_id, Withdraw(), by="noor")
    with pytest.raises(NotFoundError):
        book.withdraw("ab" * 16, Withdraw(), by="noor")
    assert list_annotations(marked.db, limit=10).items == ()
    assert len(list_annotations(marked.db, with_ended=True, limit=10).items) == 1


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"kind": "tag", "tag": "<b>"}, "a tag has 1 to 64 letters"),
        ({"kind": "tag", "tag": "a" * 65}, "a tag has 1 to 64 letters"),
        ({"kind": "note"}, "a note needs text"),
        ({"kind": "note", "text": "  "}, "text: "),
        ({"kind": "note", "text": "x" * 16_385}, "text: "),
        ({"kind": "note", "text": "x", "tag": "y"}, "a note has no tag"),
        ({"kind": "score", **score(None)}, "a value, a label, or both"),
        ({"kind": "score", **score(float("nan"))}, "score.value: "),
        ({"kind": "score", **score(1e13)}, "score.value: "),
        ({"kind": "score", **{**score(), "name": "a>b"}}, "none of : < > ="),
        ({"kind": "score", **{**score(), "name": "n" * 65}}, "name: "),
        ({"kind": "score", **score(expected="x" * 65_537)}, "expected: "),
        ({"kind": "praise"}, "kind: "),
        ({"kind": "tag", "tag": "x", "step_id": STEP}, "and not both"),
        ({"kind": "tag", "tag": "x", "colour": "red"}, "colour: "),
    ],
)
def test_what_does_not_fit_is_refused_in_words(
    book: AnnotationService, told: dict[str, Any], problem: str
) -> None:
    with pytest.raises(InvalidAnnotation) as refused:
        book.write_json({"run_id": RUN, **told})

    assert problem in str(refused.value)
    assert "xxxx" not in str(refused.value)


def test_only_what_is_stored_can_be_annotated_and_only_so_often(
    marked: StoreMaker, say: Say
) -> None:
    for place in ({"run_id": "0" * 32}, {"step_id": f"{RUN}-{'0' * 16}"}):
        with pytest.raises(NotFoundError):
            say("tag", tag="x", **place)
    for number in range(MOST_OF_TARGET):
        say("tag", tag=f"t{number}")
    with pytest.raises(TooMany, match="500 annotations"):
        say("tag", tag="one-more")
    say("tag", tag="t1")
    say("tag", step_id=STEP, tag="elsewhere")


def test_secrets_are_cut_out_before_anything_is_stored(marked: StoreMaker, say: Say) -> None:
    note = annotation_json(say("note", text=f"it used {SECRET} twice", expected=SECRET))
    say("score", by=SECRET, **score(explanation=SECRET))

    assert note["text"].startswith("it used ‹redacted:")
    assert len(note["removed"]) == 1
    for refused in ({"tag": SECRET.lower()}, {"tag": SECRET}):
        with pytest.raises(AnnotationRefused):
            say("tag", **refused)
    with pytest.raises(SecretInName, match="label looks like a secret"):
        say("score", **score(None, label=SECRET[:64]))
    for file in marked.folder.path.iterdir():
        if file.is_file():
            assert SECRET.encode() not in file.read_bytes()


def test_without_content_there_are_tags_and_bare_scores_alone(marked: StoreMaker) -> None:
    bare = AnnotationService(marked.folder, RetentionMode.METADATA_ONLY)

    bare.write_json({"run_id": RUN, "kind": "tag", "tag": "x"})
    bare.write_json({"run_id": RUN, "kind": "score", **score(1, "pass")})
    for told in ({"kind": "note", "text": "x"}, {"kind": "score", **score(explanation="x")}):
        with pytest.raises(TextNotRetained):
            bare.write_json({"run_id": RUN, **told})
    bare.close()
    assert [kind for kind, _, _ in states(marked)] == ["tag", "score"]


def test_a_full_store_keeps_what_it_is_told(marked: StoreMaker) -> None:
    full = AnnotationService(marked.folder, RetentionMode.FULL_PAYLOADS)
    note = full.write_json({"run_id": RUN, "kind": "note", "text": SECRET}, by="noor")
    full.close()

    assert note.row.text == SECRET


# ---- finding runs


def names(store: StoreMaker, **wanted: tuple[str, ...]) -> str:
    found = RunFilter(
        tag=read_tags(wanted.get("tag", ())), score=read_scores(wanted.get("score", ()))
    )
    return " ".join(item.name for item in list_runs(store.db, found, now_ns=NOW).items)


def test_runs_are_found_by_tags_and_scores_of_them_and_their_steps(
    marked: StoreMaker, book: AnnotationService, say: Say
) -> None:
    say("tag", tag="golden")
    say("tag", step_id=STEP, tag="odd")
    say("tag", run_id=OTHER, tag="golden")
    say("score", **score(0.9, "pass"))
    say("score", run_id=OTHER, **score(0.3, "fail"))
    gone = say("tag", tag="gone")
    assert gone.annotation_id is not None

    book.withdraw(gone.annotation_id, Withdraw(), by="noor")

    assert names(marked, tag=("golden",)) == "c a"
    assert names(marked, tag=("golden", "odd")) == "a"
    assert names(marked, tag=("Golden",), score=("correctness>=0.5",)) == "a"
    assert names(marked, score=("correctness",)) == "c a"
    assert names(marked, score=("correctness:fail",)) == "c"
    assert names(marked, score=("correctness<0.5", "correctness>0.2")) == "c"
    assert names(marked, score=("correctness=0.9",)) == "a"
    assert names(marked, tag=("gone",)) == ""
    facets = run_facets(marked.db, RunFilter(), now_ns=NOW).counts["tag"]
    assert [(one.value, one.runs) for one in facets] == [("golden", 2), ("odd", 1)]
    assert known_names(marked.db, "tag", limit=9) == ["golden", "odd"]


@pytest.mark.parametrize("text", ["", "a>", "a>x", ">1", "a:", "a>=0.5>1"])
def test_a_score_that_cannot_be_meant_is_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError):
        read_scores((text,))
    with pytest.raises(InvalidQueryError):
        read_tags(("<",))
    with pytest.raises(InvalidQueryError, match="8 is most"):
        read_tags(tuple("abcdefghi"))


def test_no_query_reads_a_whole_table(marked: StoreMaker, plans: QueryPlans, say: Say) -> None:
    say("tag", tag="golden")
    say("score", **score(0.9))
    wanted = RunFilter(tag=("golden",), score=read_scores(("correctness>0.5",)))
    conditions = mark_conditions(wanted.tag, wanted.score)

    with plans.watch(marked.db):
        list_runs(marked.db, wanted, now_ns=NOW)
        run_facets(marked.db, wanted, now_ns=NOW)
        marked_targets(marked.db, conditions, limit=5)
        standing_on(marked.db, AnnotationTarget(trace_id("r")), limit=5)
        ended_on(marked.db, AnnotationTarget(trace_id("r")), limit=5)
        annotations_in_run(marked.db, trace_id("r"), limit=5)
        list_annotations(marked.db, kind="tag", name="golden", limit=5)
        known_names(marked.db, "score", limit=5)

    assert plans.scans() == []


def test_a_run_shows_its_own_score_else_the_mean_of_its_steps(marked: StoreMaker, say: Say) -> None:
    second = f"{RUN}-{span_id('b').hex()}"
    say("score", step_id=STEP, **score(0.2, "fail"))
    say("score", step_id=second, **score(0.6, "pass"))
    say("note", step_id=STEP, text="x")
    say("tag", step_id=STEP, tag="z")
    say("tag", tag="a")

    (of_steps,) = (marks := get_run(marked.db, RUN, now_ns=NOW).marks).scores
    assert (of_steps.value, of_steps.label, of_steps.count) == (pytest.approx(0.4), None, 2)
    assert (marks.tags, marks.note_count) == (("a", "z"), 1)
    say("score", **score(1))
    (own,) = get_run(marked.db, RUN, now_ns=NOW).marks.scores
    assert (own.value, own.count) == (1, 1)


def test_open_lists_hear_of_an_annotation_and_the_run_keeps_its_version(
    marked: StoreMaker, say: Say
) -> None:
    seen = last_change(marked.db)
    version = get_run(marked.db, RUN, now_ns=NOW).version

    say("tag", tag="golden")

    (news,) = changed_runs(marked.db, since_change=seen, now_ns=NOW)
    assert (news.run_id, news.marks.tags, news.version) == (RUN, ("golden",), version)


def test_pages_joined_are_the_whole_list(marked: StoreMaker, say: Say) -> None:
    for number in range(5):
        say("tag", tag=f"t{number}", **({"step_id": STEP} if number % 2 else {}))
    found: list[str] = []
    cursor = None
    while True:
        page = list_annotations(marked.db, limit=2, cursor=cursor)
        found += [one.row.name for one in page.items]
        if (cursor := page.next_cursor) is None:
            break

    assert found == ["t4", "t3", "t2", "t1", "t0"]
    of_run = list_annotations(marked.db, target=AnnotationTarget(trace_id("r")), limit=9).items
    assert [one.row.name for one in of_run] == ["t4", "t2", "t0"]
    with_steps = list_annotations(
        marked.db, target=AnnotationTarget(trace_id("r")), with_steps=True, limit=9
    ).items
    assert len(with_steps) == 5
    with pytest.raises(InvalidCursorError):
        list_annotations(marked.db, limit=2, cursor="x")


def test_marked_things_come_each_once_whatever_the_page(marked: StoreMaker, say: Say) -> None:
    for place in ({"run_id": RUN}, {"step_id": STEP}, {"run_id": OTHER}):
        for tag in ("a", "b"):
            say("tag", tag=tag, **place)
    found: list[AnnotationTarget] = []
    while some := marked_targets(marked.db, (), after=found[-1] if found else None, limit=1):
        found += some

    assert len(found) == len(set(found)) == 3
    only = marked_targets(marked.db, mark_conditions(("a", "b"), ()), run=trace_id("r"), limit=9)
    assert only == [AnnotationTarget(trace_id("r")), AnnotationTarget(trace_id("r"), span_id("a"))]


# ---- what becomes of them with the store


def test_a_deleted_run_takes_its_annotations_and_nobody_elses(marked: StoreMaker, say: Say) -> None:
    say("tag", tag="x")
    say("note", step_id=STEP, text="y")
    say("tag", run_id=OTHER, tag="z")
    connection = open_for_maintenance(marked.folder)

    delete_run(connection, trace_id("r"), reason="by hand")

    left = connection.execute("SELECT name FROM annotation").fetchall()
    connection.close()
    assert left == [("z",)]
    with pytest.raises(NotFoundError):
        say("tag", tag="late")


def test_a_rebuild_and_a_backup_keep_what_people_said(
    marked: StoreMaker, say: Say, tmp_path: Path
) -> None:
    say("note", step_id=STEP, text="kept")
    say("score", **score(0.1))
    say("score", **score(0.2))
    rows = "SELECT * FROM annotation ORDER BY id"
    before = marked.db.execute(rows).fetchall()

    rebuild(marked.folder)
    back_up(marked.folder, tmp_path / "copy")

    assert marked.db.execute(rows).fetchall() == before
    copy = open_reader(type(marked.folder)(tmp_path / "copy"))
    assert copy.execute(rows).fetchall() == before
    copy.close()
    assert verify_store(marked.folder).findings == []


def test_what_one_store_exported_another_restores_with_its_history(
    marked: StoreMaker, book: AnnotationService, say: Say, tmp_path: Path
) -> None:
    say("score", **score(0.2, explanation="first"))
    say("score", **score(0.9, "pass", expected="42"))
    say("tag", step_id=STEP, tag="x")
    say("note", text=f"said {SECRET}")
    told = [json.loads(json.dumps(annotation_json(one))) for one in every(marked)] + [
        annotation_json(one) for one in annotations_in_run(marked.db, trace_id("r"), limit=9)
    ]
    there = StoreMaker(tmp_path / "there")
    there.span("a", run="r")
    other = AnnotationService(there.folder, origin="import")

    first = [other.restore(one) for one in told]
    again = [other.restore(one) for one in told]

    assert sum(first) == 4
    assert not any(again)
    columns = (
        "annotation_id, kind, name, value, label, text, expected, author, created_ns, ended_ns"
    )
    rows = f"SELECT {columns}, ended, ended_by, removed FROM annotation ORDER BY annotation_id"
    assert there.db.execute(rows).fetchall() == marked.db.execute(rows).fetchall()
    ended = {"ns": "1", "by": SECRET, "reason": SECRET}
    leak = {**told[0], "annotation_id": "cd" * 16, "state": "withdrawn", "ended": ended}
    assert other.restore(leak)
    (kept,) = there.db.execute("SELECT ended_by || ended_reason FROM annotation WHERE ended_ns = 1")
    assert SECRET not in kept[0]
    for broken in ({}, {**told[0], "annotation_id": "zz"}, {**told[0], "kind": "x"}):
        with pytest.raises(InvalidAnnotation):
            other.restore(broken)
    with pytest.raises(NotFoundError):
        other.restore({**told[0], "annotation_id": "ab" * 16, "run_id": OTHER})
    other.close()
    there.close()


@pytest.mark.parametrize(
    "broken",
    [
        {"created_ns": "9" * 30},
        {"created_ns": "-1"},
        {"created_ns": 1.5e300},
        {"state": "withdrawn", "ended": {"ns": "9" * 30}},
        {"state": "withdrawn", "ended": ["x"]},
        {"text": "half \ud800"},
        {"author": "half \ud800"},
    ],
)
def test_an_export_that_somebody_broke_is_refused_in_words(
    book: AnnotationService, say: Say, broken: dict[str, Any]
) -> None:
    told = annotation_json(say("note", text="odd"))

    with pytest.raises(InvalidAnnotation):
        book.restore({**told, "annotation_id": "ab" * 16, **broken})


def test_an_export_brings_no_secret_as_what_was_removed(
    marked: StoreMaker, book: AnnotationService, say: Say
) -> None:
    told = annotation_json(say("note", text=f"said {SECRET}"))
    own = {"annotation_id": "ab" * 16, "removed": [SECRET, *told["removed"], "x"]}
    ended = {"ns": "5", "by": "half \ud800", "reason": None}

    assert book.restore({**told, **own, "state": "withdrawn", "ended": ended})

    [kept] = ended_on(marked.db, AnnotationTarget(trace_id("r")), limit=9)
    assert list(kept.row.removed) == told["removed"]
    assert kept.row.ended_by == "half ?"


def test_no_history_hides_what_stands(marked: StoreMaker, say: Say) -> None:
    said = say("note", text="as a person sees it")
    for number in range(12):
        say("score", by="loop", **score(number / 100))

    standing = standing_on(marked.db, AnnotationTarget(trace_id("r")), limit=2)

    assert [one.row.kind for one in standing] == ["score", "note"]
    assert standing[1].annotation_id == said.annotation_id
    assert len(ended_on(marked.db, AnnotationTarget(trace_id("r")), limit=99)) == 11


@pytest.mark.parametrize("by", ["x" * 257, "half \ud800"])
def test_who_says_it_has_bounds_too(book: AnnotationService, say: Say, by: str) -> None:
    note = say("note", text="odd")
    assert note.annotation_id

    with pytest.raises(InvalidAnnotation, match="by: "):
        say("note", by=by, text="odd")
    with pytest.raises(InvalidAnnotation, match="by: "):
        book.withdraw_json(note.annotation_id, {"by": by})


def test_annotations_are_a_view_for_sql(marked: StoreMaker, say: Say) -> None:
    say("tag", step_id=STEP, tag="x")
    say("tag", tag="y")

    found = read_sql(marked.folder, "SELECT step_id, name FROM annotations ORDER BY name")

    assert found.rows == [(STEP, "x"), (None, "y")]
