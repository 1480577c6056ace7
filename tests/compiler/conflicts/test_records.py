"""What says which record is meant never drops one: numbers, names, dates, titles, scopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from bench.quality.conflicts import DATA, HALVES, KINDS, Data, Half, of_lists, of_pairs
from hansard_compiler.compile.engine import CompileResult
from tests.compiler.compiling import compiled, item, reasons

_DROPPED = {"conflict_lost", "superseded"}
_NUMBERED = (
    "Order {} was refunded to the customer by card.",
    "Ticket {} is closed.",
    "Invoice {} is due in 30 days.",
    "Server {} has 4 CPUs.",
    "Room {} is free on Monday.",
    "Patient {} takes 20 mg a day.",
    "The customer paid {} euro.",
    "The sensor reads {} degrees.",
    "The invoice number is {}.",
    "Ada's ticket number is {}.",
    "Version {} was released in May.",
    "2025-04-08T02:{}:12Z INFO worker started with 4 threads.",
    "Question {} is not answered yet.",
    "Step {} takes five minutes.",
    "In section {} the limit is 30 euro.",
)
_NAMED = (
    "{} works in the Berlin office.",
    "{} lives in Oslo.",
    "The customer is {}.",
    "Mail from {} was answered.",
    "{} leads a team of five.",
    "Project {} is on track.",
    "The key was given to {}.",
)
_NAMES = ("Ana", "Boris", "Chen", "Dora", "Emil")


def _lost(result: CompileResult) -> list[str]:
    return [one.item_id for one in result.receipts if one.reason in _DROPPED]


def _records(shape: str, values: Sequence[object], kind: str) -> list[Any]:
    return [item(f"r{at}", kind, shape.format(one)) for at, one in enumerate(values)]


@pytest.mark.covers("CP-60")
@pytest.mark.parametrize("count", [2, 5])
@pytest.mark.parametrize("kind", ["memory", "retrieval_doc"])
@pytest.mark.parametrize(
    ("shape", "values"),
    [*((shape, range(11, 16)) for shape in _NUMBERED), *((shape, _NAMES) for shape in _NAMED)],
)
def test_records_of_one_form_are_all_kept(
    shape: str, values: Sequence[object], kind: str, count: int
) -> None:
    assert _lost(compiled(_records(shape, values[:count], kind), budget=100_000)) == []


@pytest.mark.covers("CP-60")
def test_long_minutes_that_open_alike_are_all_kept() -> None:
    def minutes(number: int) -> str:
        points = (
            f"Point {at} was {'agreed' if at % number else 'put off'}." for at in range(1, 90)
        )
        return f"Meeting minutes number {number} of the platform team. " + " ".join(points)

    items = [item(f"m{number}", content=minutes(number)) for number in range(1, 9)]
    asked = item("asked", "user_msg", "What did the platform team decide?")

    result = compiled([*items, asked], budget=20_000)

    assert _lost(result) == []
    assert set(reasons(result).values()) == {"within_budget", "latest_user_request"}


@pytest.mark.covers("CP-60")
@pytest.mark.parametrize(
    ("one", "other", "more"),
    [
        ("The total is 30 euro.", "The total is 45 euro.", [{"subject": "17"}, {"subject": "18"}]),
        ("Order 17. The total fee is 30 euro.", "Order 18. The total fee is 45 euro.", [{}, {}]),
        ("Project Falcon. The owner of the plan is Ana.",
         "Project Eagle. The owner of the plan is Bo.", [{}, {}]),
    ],
)  # fmt: skip
def test_what_stands_beside_a_statement_says_whose_it_is(
    one: str, other: str, more: list[dict[str, str]]
) -> None:
    items = [
        item("a", "memory", one, metadata=more[0]),
        item("b", "memory", other, metadata=more[1]),
    ]

    assert _lost(compiled(items)) == []


def test_a_title_with_another_number_and_another_scope_are_other_records() -> None:
    def note(name: str, hours: int, **more: Any) -> Any:
        return item(name, "memory", f"The request timeout is {hours} hours.", **more)

    def titled(title: str) -> Any:
        return {"source_ref": {"source_type": "file", "title": title}}

    assert (
        _lost(compiled([note("a", 2, **titled("order 17")), note("b", 3, **titled("order 18"))]))
        == []
    )
    scopes = [{"scope": {"project": one}} for one in ("x", "y")]
    config = {"scope": {"project": "x"}}
    both = [note("a", 2, **scopes[0]), note("b", 3, **scopes[1])]
    assert _lost(compiled(both, compile_config=config)) == []


@pytest.mark.covers("CP-60")
def test_a_doubtful_contradiction_is_kept_and_its_receipts_say_so() -> None:
    items = [
        item("a", "memory", "The deadline is Friday.", trust_score=0.9),
        item("b", "memory", "The deadline is Monday.", trust_score=0.2),
    ]

    result = compiled(items)

    assert set(reasons(result).values()) == {"within_budget"}
    for one, other in (("a", "b"), ("b", "a")):
        receipt = next(found for found in result.receipts if found.item_id == one)
        assert receipt.related_item_id == other
        assert receipt.note == f"possible_conflict: may differ in value from {other}; both are kept"
        assert result.trail(one)[4]["reason"] == "possible_conflict"


def test_a_long_document_never_loses_to_one_of_its_sentences() -> None:
    text = "The request timeout is 30 seconds. " + "The queue was looked at on that day. " * 20
    items = [
        item("note", "memory", "The request timeout is 10 seconds.", trust_score=0.9),
        item("manual", content=text, trust_score=0.1),
    ]

    result = compiled(items)

    assert _lost(result) == []
    assert "possible_conflict" in str(result.receipts[1].note)


@pytest.mark.covers("CP-08")
@pytest.mark.parametrize(
    ("one", "other", "reason"),
    [
        ("2 November 2015", "2/11/2015", "within_budget"),
        ("3/4 h", "45 min", "within_budget"),
        ("30 s", "30 seconds", "within_budget"),
        ("6 October 2025, 2.30 pm", "2025-10-06 14:30", "within_budget"),
        ("Postgres", "PostgreSQL", "within_budget"),
        ("30 s", "40 seconds", "conflict_lost"),
        ("postgres", "mysql", "conflict_lost"),
        (True, False, "conflict_lost"),
    ],
)
def test_one_value_in_two_forms_is_no_contradiction(one: Any, other: Any, reason: str) -> None:
    facts = [{"subject": "Flux", "attribute": "value", "value": value} for value in (one, other)]
    items = [
        item("a", "memory", "Noted.", metadata=facts[0], trust_score=0.9),
        item("b", "memory", "Noted again.", metadata=facts[1]),
    ]

    assert reasons(compiled(items))["b"] == reason


def test_facts_without_an_attribute_are_only_marked() -> None:
    items = [
        item(name, "memory", {"subject": "Ada", "value": value})
        for name, value in (("a", "dark mode"), ("b", "metric units"))
    ]

    result = compiled(items)

    assert _lost(result) == []
    assert all("possible_conflict" in str(one.note) for one in result.receipts)


# --- labelled data ----------------------------------------------------------------------------


@pytest.mark.covers("CP-60")
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("half", HALVES)
def test_what_is_settled_in_labelled_pairs_are_contradictions(half: Half, data: Data) -> None:
    found = of_pairs(half, data)

    assert found.precision >= 0.97
    assert found.right >= 12


@pytest.mark.covers("CP-60")
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("half", HALVES)
def test_hardly_an_item_of_labelled_lists_is_dropped_wrongly(
    half: Half, kind: str, data: Data
) -> None:
    found = of_lists(half, kind, data)

    assert found.items > 1_000
    assert found.wrong < 0.005 * found.items


@pytest.mark.covers("CP-60")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Blood pressure 142/90.", "Blood pressure 128/82."),
        ("Patient 4471: temperature is 38.9 C.", "Patient 4471: temperature is 37.2 C."),
        ("The patient takes aspirin 20 mg.", "The patient takes aspirin 40 mg."),
        ("The room has 20 seats.", "The room has 24 seats."),
        ("Room 12 has 20 seats.", "Room 12 has 24 seats."),
        ("The message queue is full.", "The message queue is empty."),
        ("Runway 27 is open.", "Runway 27 is closed."),
        ("The balance of account 12 is 30 euro.", "The balance of account 12 is 90 euro."),
        ('{"sensor": "s-1", "temperature": 20}', '{"sensor": "s-1", "temperature": 24}'),
        ('{"order": 7, "item": "pen", "qty": 1}', '{"order": 7, "item": "cup", "qty": 2}'),
        ("Patient: 7\nDrug: aspirin", "Patient: 7\nDrug: ramipril"),
        ("Contract: K-1\nLine: 1\nTotal: 30", "Contract: K-1\nLine: 2\nTotal: 40"),
        ("color: red\nowner: Ana", "color: red\nowner: Bo"),
        ("Kim lives in Norway.", "Kim lives in Oslo."),
        ("The founder of Acme is Kim Lowe.", "The founder of Acme is Lee Moss."),
        ("The database of Atlas is Postgres.", "The database of Atlas is Redis."),
        ("Kim's phone is 555-1.", "Kim's phone is 555-2."),
        ("Kim's contract is signed.", "Kim's contract is not signed."),
        ("The method of request 4 is GET.", "The method of request 4 is POST."),
        ("Water is safe.", "Water is not safe."),
        ('{"id": "7", "timezone": "CET"}', '{"id": "7", "timezone": "Europe/Berlin"}'),
        ('{"id": "7", "currency": "EUR"}', '{"id": "7", "currency": "euro"}'),
        ('{"id": "7", "done": true}', '{"id": "7", "done": false}'),
        ("user: kim\nemail: a@x.org", "user: kim\nemail: b@x.org"),
        ('{"session_id": "a1", "model": "x"}', '{"session_id": "a1", "model": "y"}'),
        ('{"customer_id": 7, "currency": "EUR"}', '{"customer_id": 7, "currency": "USD"}'),
        ("The invoice is due on 4 May.", "The invoice is due on 9 June."),
        ("The owner of the car is Ana.", "The owner of the car is Bo."),
        ("The winner of the match is Rovers.", "The winner of the match is United."),
        ("The patient's blood type is A+.", "The patient's blood type is B-."),
        ("The app version is 2.1.0.", "The app version is 3.0.0."),
        ("The report is written in English.", "The report is written in German."),
        ("The car is owned by Ana.", "The car is owned by Bo."),
        ("Payment is due within 30 days.", "Payment is due within 60 days."),
        ("The left wound is infected.", "The left wound is not infected."),
        ("Patient 12 has a fever.", "Patient 12 does not have a fever."),
        ("Team Heron meets on Monday.", "Team Heron meets on Friday."),
        ("The speed limit is 30 km.", "The speed limit is 50 km."),
        ("The fee of order 12 is 3 euro.", "Order 12: express fee 5 euro."),
        ("Order 12 for Ana: fee 3 euro.", "Order 12 for Bo: fee 5 euro."),
        ("Section 4 sets a term of 30 days.", "Section 4 sets a term of 60 days."),
        ("Loan L1: interest paid 30 euro.", "Loan L1: interest paid 40 euro."),
        ("Plan P-2 has a fee of 20 euro.", "Plan P-2 has a fee of 30 euro with support."),
        ("The mean fee of order 12 is 3 euro.", "The maximum fee of order 12 is 5 euro."),
    ],
)
def test_what_may_hold_at_another_time_or_place_is_kept(one: str, other: str, kind: str) -> None:
    assert _lost(compiled([item("a", kind, one), item("b", kind, other)])) == []


@pytest.mark.covers("CP-08")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("service: billing\nport: 8080", "service: billing\nport: 9090"),
        ("- Order: 12\n- Due date: 2 May", "Order: 12\nDue date: 9 May"),
        ('{"id": "K-22", "currency": "EUR"}', '{"id": "K-22", "currency": "USD"}'),
        ('{"user": "kim", "timeZone": "CET"}', '{"time_zone": "JST", "user": "kim"}'),
        ('{"invoice": "7", "total": 1200}', '{"invoice": "7", "total": 2100}'),
        ('{"id": 7, "auto_renewal": true}', '{"id": 7, "auto_renewal": false}'),
        (
            "Loan L1 carries 3 percent interest and runs for 2 years.",
            "The interest on loan L1 is fixed at 4 percent.",
        ),
        (
            "Contract K-7: monthly fee 30 euro, 2 users",
            "The monthly fee of contract K-7 is 45 euro.",
        ),
    ],
)
def test_two_that_tell_another_value_of_one_attribute_of_one_thing_contradict(
    one: str, other: str, kind: str
) -> None:
    assert _lost(compiled([item("a", kind, one), item("b", kind, other)])) == ["b"]


@pytest.mark.parametrize(
    "text",
    ['{"a": 1e999, "b": NaN}', "{" * 500, '{"a": ' + "9" * 500 + ', "b": 1}', "a: 1\nb", '{"": 1}',
     '{"id": "\\ud800", "port": 1}', "::\n::", '{"id": [], "id": {}}'],
)  # fmt: skip
def test_a_broken_record_states_nothing(text: str) -> None:
    both = [item("a", "memory", text), item("b", "memory", f" {text}")]

    assert _lost(compiled(both)) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The customer is satisfied.", "The customer is not satisfied."),
        ("Review: the food is good.", "Review: the food is not good."),
        ("Interviewee: I like the new office.", "Interviewee: I do not like the new office."),
        ("The claim was approved.", "The claim was rejected."),
    ],
)
def test_two_who_may_speak_of_two_things_are_both_kept(one: str, other: str) -> None:
    assert _lost(compiled([item("a", "memory", one), item("b", "memory", other)])) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (
            "The bus from Oslo to Bergen takes 8 hours.",
            "The bus from Bergen to Oslo takes 9 hours.",
        ),
        ("The north gate opens at 9:00.", "The south gate opens at 10:00."),
        ("The first attempt takes 3 seconds.", "The second attempt takes 5 seconds."),
        ("Version 2 is supported.", "Version 1 is not supported."),
        ("The price of the blue chair is 30 euro.", "The price of the red chair is 40 euro."),
        ("In 2023 the budget was 30 million euro.", "In 2024 the budget was 35 million euro."),
        ("Refunds are allowed within 30 days.", "Refunds are not allowed after 30 days."),
        ("The lamp on the left is on.", "The lamp on the right is off."),
        ("Chapter one has 20 pages.", "Chapter two has 30 pages."),
        ("Ana's desk is in room 12.", "Bo's desk is in room 14."),
    ],
)
def test_what_tells_two_things_apart_is_neither_dropped_nor_marked(one: str, other: str) -> None:
    result = compiled([item("a", "memory", one), item("b", "memory", other)])

    assert _lost(result) == []
    assert [found.note for found in result.receipts] == [None, None]
