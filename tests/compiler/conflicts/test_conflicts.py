"""Contradictions: found by structure, settled by trust and then time, never silently."""

from __future__ import annotations

from typing import Any

import pytest

from hansard_compiler.compile.engine import CompileResult
from tests.compiler.compiling import compiled, item, reasons

_OLD, _NEW = "2026-03-01T12:00:00Z", "2026-03-03T12:00:00Z"


def _memory(item_id: str, content: Any, trust: float = 0.5, at: str = _OLD, **more: Any) -> Any:
    return item(item_id, "memory", content, trust_score=trust, created_at=at, **more)


def _loser(result: CompileResult) -> Any:
    return next(one for one in result.receipts if one.decision == "exclude")


@pytest.mark.covers("CP-08", "CP-09", "TS-03")
def test_the_more_trusted_item_is_believed_and_the_loser_points_to_it() -> None:
    items = [
        _memory("main", "The default branch is main.", 0.9),
        _memory("trunk", "The default branch is trunk.", 0.4, _NEW),
    ]

    result = compiled(items)

    assert reasons(result) == {"main": "within_budget", "trunk": "conflict_lost"}
    assert _loser(result).related_item_id == "main"
    assert _loser(result).note == "differ in value; trust 0.4 against 0.9"
    assert "trunk" in result.context().excluded_items
    assert result.trail("main")[4]["reason"] == "conflict_won"


@pytest.mark.covers("CP-08", "TS-03")
def test_of_equally_trusted_items_the_fresher_is_believed() -> None:
    items = [
        _memory("old", "The request timeout is 30 seconds.", at=_OLD),
        _memory("new", "The request timeout is 45 seconds.", at=_NEW),
    ]

    result = compiled(items)

    assert reasons(result) == {"old": "conflict_lost", "new": "within_budget"}
    assert _loser(result).note == "differ in number; 172800 s apart"


@pytest.mark.covers("CP-08", "CP-60")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The deploy region is eu-west-1.", "The deploy region is us-east-2."),
        ("Uploads are limited to 10 MB per file.", "Uploads are limited to 25 MB per file."),
        ("Retries stop after 3 attempts.", "Retries stop after five attempts."),
        ("The export endpoint must not be cached.", "The export endpoint must be cached."),
        ("Feature flags are enabled in staging.", "Feature flags are disabled in staging."),
        ("Refunds above 200 euro never need a manager.", "Refunds above 200 euro need a manager."),
    ],
)
def test_texts_that_cannot_both_hold_are_found(one: str, other: str) -> None:
    result = compiled([_memory("a", one, 0.9), _memory("b", other, 0.2)])

    assert reasons(result)["b"] == "conflict_lost"


@pytest.mark.covers("CP-60")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The default branch is main.", "The release branch is stable."),
        ("The request timeout is 30 seconds.", "The request timeout is 0.5 minutes."),
        ("The service is written in Go.", "The service is deployed weekly."),
        ("Uploads are limited to 10 MB.", "Downloads are limited to 25 MB."),
        ("Python 3.11 is supported.", "Python 3.12 is supported."),
        ("The default branch is main.", "The default branch is main."),
    ],
)
def test_texts_that_may_both_hold_are_left_alone(one: str, other: str) -> None:
    result = compiled([_memory("a", one), _memory("b", other, scope={})])

    assert "conflict_lost" not in reasons(result).values()


@pytest.mark.covers("CP-08")
def test_structured_facts_contradict_by_key() -> None:
    fact = {"subject": "Database", "attribute": "engine"}
    items = [
        _memory("a", {**fact, "value": "postgres"}, 0.9),
        _memory("b", {**fact, "value": "mysql"}, 0.5),
        _memory("c", {**fact, "value": "Postgres "}, 0.1),
        _memory("d", {**fact, "attribute": "version", "value": "16"}, 0.1),
    ]

    assert reasons(compiled(items)) == {
        "a": "within_budget", "b": "conflict_lost", "c": "within_budget", "d": "within_budget",
    }  # fmt: skip


def _fact(item_id: str, value: str, **more: Any) -> Any:
    stated = {"subject": "gateway", "attribute": "port", "value": value}
    beside = {name: more.pop(name) for name in ("metadata", "tags", "scope") if name in more}
    return item(item_id, "memory", {**stated, **more}, **beside)


@pytest.mark.covers("CP-08")
@pytest.mark.parametrize(
    "attribute",
    [
        "author", "authors", "phone", "phones", "temperature", "balance", "dose", "seats", "tag",
        "allergy", "member", "database", "email", "children", "home phone", "account balance",
    ],
)  # fmt: skip
def test_facts_of_what_a_thing_has_several_of_or_what_is_measured_are_kept(attribute: str) -> None:
    items = [_fact(name, value, attribute=attribute) for name, value in (("a", "x1"), ("b", "y2"))]

    assert "conflict_lost" not in reasons(compiled(items)).values()


@pytest.mark.covers("CP-08")
@pytest.mark.parametrize("beside", ["content", "metadata", "scope"])
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("environment", ("prod", "dev")), ("tenant", ("acme", "beta")), ("region", ("eu", "us")),
        ("version", ("one", "two")), ("order", (1, 2)), ("service", ("mailer", "biller")),
        ("of", ("one thing", "another")), ("id", (17, 18)),
    ],
)  # fmt: skip
def test_facts_of_two_records_are_kept(beside: str, name: str, values: Any) -> None:
    texts = [str(one) if beside == "scope" else one for one in values]
    items = [
        _fact(item_id, value, **({name: one} if beside == "content" else {beside: {name: one}}))
        for item_id, value, one in zip("ab", ("8080", "9090"), texts, strict=True)
    ]

    assert "conflict_lost" not in reasons(compiled(items)).values()


@pytest.mark.parametrize(
    "items",
    [
        [_fact("a", "8080", tags=["prod"]), _fact("b", "9090", tags=["dev"])],
        [_fact("a", "8080"), _fact("b", "8081"), _fact("c", "8082")],
        [
            _fact(name, value, subject="the patient", attribute="blood group")
            for name, value in (("a", "A"), ("b", "B"))
        ],
    ],
    ids=["tags", "a list of three", "a subject without a name"],
)
def test_doubtful_facts_are_kept_and_marked(items: list[Any]) -> None:
    result = compiled(items)

    assert "conflict_lost" not in reasons(result).values()


@pytest.mark.parametrize("attribute", ["port", "height", "interval of its flashes", "default size"])
def test_what_a_thing_has_one_of_is_settled_where_its_owner_states_it(attribute: str) -> None:
    items = [
        _fact(item_id, value, attribute=attribute) for item_id, value in (("a", "10"), ("b", "15"))
    ]

    assert sorted(reasons(compiled(items)).values()) == ["conflict_lost", "within_budget"]


def test_the_same_fact_with_two_values_is_settled() -> None:
    items = [_fact("a", "8080", metadata={"note": "x"}), _fact("b", "9090", metadata={"note": "x"})]

    assert sorted(reasons(compiled(items)).values()) == ["conflict_lost", "within_budget"]


@pytest.mark.covers("CP-60")
def test_a_later_correction_replaces_what_it_corrects_unless_it_is_much_less_trusted() -> None:
    def turn(trust: float, at: str) -> dict[str, str]:
        return reasons(
            compiled(
                [
                    _memory("said", "The staging port is 8080.", 0.8),
                    _memory("fix", "Correction: the staging port is 9090.", trust, at),
                ]
            )
        )

    assert turn(0.6, _NEW) == {"said": "superseded", "fix": "within_budget"}
    assert turn(0.4, _NEW) == {"said": "within_budget", "fix": "conflict_lost"}
    assert turn(0.6, "2026-02-01T12:00:00Z") == {"said": "within_budget", "fix": "conflict_lost"}


@pytest.mark.covers("CP-29")
def test_what_may_not_be_dropped_never_loses() -> None:
    items = [
        item("rule", "constraint", "The output must not be cached.", trust_score=0.1),
        _memory("note", "The output must be cached.", 1.0, _NEW),
        item("other", "constraint", "The output must be cached.", trust_score=0.9),
    ]

    result = compiled(items)

    assert reasons(result) == {
        "rule": "hard_constraint", "note": "conflict_lost", "other": "hard_constraint",
    }  # fmt: skip
    assert "conflict_open" in [result.trail(one)[4]["reason"] for one in ("rule", "other")]


def test_a_loser_makes_nothing_else_lose() -> None:
    items = [
        _memory("best", "The cache size is 100 MB.", 0.9),
        _memory("mid", "The cache size is 200 MB.", 0.5),
        _memory("low", "The cache size is 100 MB. It is kept in memory only.", 0.1),
    ]

    assert reasons(compiled(items)) == {
        "best": "within_budget", "mid": "conflict_lost", "low": "within_budget",
    }  # fmt: skip


def test_conflict_detection_can_be_turned_off() -> None:
    items = [
        _memory("a", "The default branch is main.", 0.9),
        _memory("b", "The default branch is trunk.", 0.4),
    ]

    result = compiled(items, compile_config={"detect_conflicts": False})

    assert set(reasons(result).values()) == {"within_budget"}


def test_a_thousand_notes_on_one_subject_are_settled() -> None:
    notes = [_memory(f"n{at}", f"The queue length is {at}.", at / 1000) for at in range(1_000)]

    result = compiled(notes, budget=10**6)

    assert [one.item_id for one in result.receipts if one.section][-1:] == ["n999"]


def _chunk(item_id: str, content: str, kind: str, **more: Any) -> Any:
    source = {"source_type": "retrieval", **more.pop("source", {})}
    return item(item_id, kind, content, source_ref=source, **more)


@pytest.mark.parametrize("kind", ["memory", "retrieval_doc"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The request timeout is 30 seconds.", "The request timeout is 60 seconds."),
        ("The default branch is main.", "The default branch is trunk."),
        ("Uploads are limited to 10 MB.", "Uploads are limited to 100 MB."),
        ("The output must not be cached.", "The output must be cached."),
    ],
)
@pytest.mark.parametrize(
    "places",
    [
        [{"source": {"uri": f"services/{name}/README.md"}} for name in ("gateway", "mailer")],
        [{"source": {"title": f"the {name} manual"}} for name in ("gateway", "mailer")],
        [{"source": {"metadata": {"service": name}}} for name in ("gateway", "mailer")],
        [{"metadata": {"service": name}} for name in ("gateway", "mailer")],
        [{"metadata": {"tenant": number}} for number in (17, 18)],
        [{"tags": [name]} for name in ("gateway", "mailer")],
    ],
    ids=["uri", "title", "metadata of the source", "metadata", "number", "tag"],
)
def test_a_setting_without_a_name_is_that_of_the_place_it_comes_from(
    places: list[Any], one: str, other: str, kind: str
) -> None:
    items = [
        _chunk(item_id, text, kind, created_at=at, **place)
        for item_id, text, at, place in zip("ab", (one, other), (_OLD, _NEW), places, strict=True)
    ]

    result = compiled(items)

    assert reasons(result) == {"a": "within_budget", "b": "within_budget"}


@pytest.mark.parametrize("kind", ["memory", "retrieval_doc"])
def test_two_chunks_of_one_document_tell_of_one_setting(kind: str) -> None:
    source = {"uri": "services/mailer/README.md"}
    items = [
        _chunk("a", "The request timeout is 30 seconds.", kind, source=source, created_at=_OLD),
        _chunk(
            "b",
            "The request timeout is 60 seconds.",
            kind,
            source={"uri": f"{source['uri']}#limits"},
            created_at=_NEW,
        ),
    ]

    assert reasons(compiled(items)) == {"a": "conflict_lost", "b": "within_budget"}


@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("services/gateway/CHANGES.md", "superseded"),
        ("services/mailer/CHANGES.md", "within_budget"),
    ],
)
def test_a_correction_without_a_name_corrects_the_documents_beside_it(
    uri: str, reason: str
) -> None:
    old = {"uri": "services/gateway/README.md"}
    said = "The request timeout is 30 seconds."
    items = [
        _chunk("a", said, "retrieval_doc", source=old, created_at=_OLD),
        _chunk(
            "b",
            "Correction: the request timeout is 60 seconds.",
            "retrieval_doc",
            source={"uri": uri},
            created_at=_NEW,
        ),
    ]

    assert reasons(compiled(items)) == {"a": reason, "b": "within_budget"}
