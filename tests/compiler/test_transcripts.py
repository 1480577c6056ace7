"""What becomes of a message on its way into a transcript, and what is read out of one."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.calls import Message, TextPart, ToolCallPart
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.transcripts import messages as transcript_models
from hansard_compiler.transcripts.cost import break_even_turns, count_tokens, resume_cost
from hansard_compiler.transcripts.entry import NewMessage, clipped, enter
from hansard_compiler.transcripts.errors import InvalidMessage, UndecodableMessage
from hansard_compiler.transcripts.ids import ConversationId
from hansard_compiler.transcripts.messages import Row, StoredMessage, decode
from hansard_compiler.transcripts.summary_check import check_fold

LOG = ConversationId(bytes(16))
REDACTOR = Redactor(b"k" * 32)


def clean(text: str) -> str:
    return REDACTOR.redact_text(text).text


def entered(given: Any) -> dict[str, Any]:
    entry = enter(NewMessage(given), clean)
    return {"role": entry.role, **json.loads(entry.content)}


def stored(given: Any) -> StoredMessage:
    entry = enter(NewMessage(given), clean)
    return decode(LOG, Row(entry.id, 0, entry.role, entry.content, 1, 1, None, None))


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "parts": [{"type": "text", "text": text}]}


@pytest.mark.covers("TR-06")
@pytest.mark.parametrize(
    "given",
    [
        {"role": "user", "content": "hi"},
        {"role": "user", "parts": [{"type": "text", "text": "hi"}]},
        Message("user", (TextPart("hi"),)),
    ],
)
def test_one_message_has_one_form(given: Any) -> None:
    assert entered(given) == user("hi")


def test_a_call_and_its_result_keep_their_ids_and_values() -> None:
    call = entered(Message("assistant", (ToolCallPart("c1", "find", {"a": [1, None]}),)))
    result = entered({"role": "tool", "id": "c1", "content": {"rows": 10**30}})

    assert call["parts"][0]["arguments"] == {"a": [1, None]}
    assert result["parts"][0] == {"type": "tool_result", "id": "c1", "content": {"rows": 10**30}}


@pytest.mark.covers("TR-06")
@pytest.mark.parametrize(
    "given",
    [
        {"role": "system", "content": "be nice"},
        {"role": "user"},
        {"content": "whose?"},
        {"role": "user", "content": ["a"]},
        {"role": "user", "content": "a", "more": 1},
        {"role": "user", "parts": []},
        {"role": "user", "parts": [{"type": "tool_call", "name": "x"}]},
        {"role": "tool", "parts": [{"type": "text", "text": "x"}]},
        {"role": "tool", "id": "c", "content": object()},
        {"role": "tool", "id": "c", "content": 10**5000},
        {"role": "user", "content": "x" * 5_000_000},
        [{"role": "user", "content": "x"}, {"role": "tool", "id": "c", "content": "x"}],
        "x",
    ],
)
def test_what_is_no_message_is_refused_without_its_content(given: Any) -> None:
    with pytest.raises(InvalidMessage) as refused:
        enter(NewMessage(given), clean)

    assert "be nice" not in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_message_nested_without_end_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InvalidMessage):
        enter(NewMessage({"role": "tool", "id": "c", "content": deep}), clean)


def test_what_json_cannot_say_is_written_so_that_it_can() -> None:
    found = entered({"role": "tool", "id": "c", "content": [math.nan, "half \ud800", "pair 😀"]})

    assert found["parts"][0]["content"] == [{"$float": "nan"}, "half \ufffd", "pair 😀"]
    assert json.dumps(found, ensure_ascii=False).encode()


SAID = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@pytest.mark.covers("TR-07")
@given(SAID)
def test_what_was_stored_is_stored_unchanged_again(content: Any) -> None:
    first = enter(NewMessage({"role": "tool", "id": "c", "content": content}), clean)
    message = decode(LOG, Row(first.id, 0, first.role, first.content, 1, 1, None, None))
    again = enter(NewMessage(message.body), clean)

    assert again.content == first.content


@pytest.mark.covers("TR-18")
@given(st.text(alphabet="ab‹›é😀\n", min_size=0, max_size=4_000), st.integers(1_024, 2_048))
def test_a_clip_keeps_beginning_and_end_and_never_grows(text: str, limit: int) -> None:
    size = len(text.encode())
    if size <= limit:
        return
    shown, kept = clipped(text, size, "sha256:" + "0" * 64, limit=limit)
    head, mark = shown.split("\n‹clipped: ", 1)

    assert kept <= limit
    assert text.startswith(head)
    assert text.endswith(mark.split("›\n", 1)[1])
    assert f"{size - kept:,} of {size:,} bytes" in mark


def test_a_clip_does_not_cut_a_mark_of_redaction_in_two() -> None:
    mark = "‹redacted:openai:0123456789ab›"
    for shift in range(0, 60, 3):
        text = "a" * (768 - shift) + mark + "b" * 4_000 + mark + "c" * (256 - shift)
        shown, _ = clipped(text, len(text.encode()), "sha256:0", limit=1_024)
        pieces = shown.replace(mark, "")
        assert pieces.count("‹") == pieces.count("›") == 1  # that of the clip


@pytest.mark.covers("TR-26")
def test_an_older_version_is_brought_up_to_date_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(transcript_models.UPGRADES, 0, lambda old: {"parts": [
        {"type": "text", "text": old["text"]}]})  # fmt: skip
    row = Row(bytes(16), 3, "user", '{"text":"from before"}', 1, 0, None, None)

    assert decode(LOG, row).body == user("from before")
    assert decode(LOG, row).content == row.content  # the row itself stays


def test_an_upgrade_that_cannot_read_a_row_is_that_rows_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(transcript_models.UPGRADES, 0, lambda old: old["gone"])
    with pytest.raises(UndecodableMessage) as refused:
        decode(LOG, Row(bytes(16), 3, "user", "{}", 1, 0, None, None))

    assert refused.value.position == 3


# ---- what a summary lost

TALK = [
    (0, user("Refactor the billing module. Don't touch the public API.")),
    (1, {"role": "assistant", "parts": [{"type": "text", "text": "I must keep `invoice.total`."}]}),
    (2, user("The limit is 40 requests per minute, never more. Send it to ada@example.org.")),
    (3, {"role": "tool", "parts": [{"type": "tool_result", "content": "You must obey this."}]}),
    (4, user("thanks, that looks fine")),
]  # fmt: skip
GOOD = (
    "Task: refactoring of the billing module; the public API stays untouched and invoice.total is "
    "kept. Never more than 40 requests per minute (limit). The result is sent to ada@example.org."
)


@pytest.mark.covers("TR-27")
def test_a_summary_that_repeats_everything_lost_nothing() -> None:
    found = check_fold(TALK, GOOD)

    assert found.lost == ()
    assert found.sentences == 5


@pytest.mark.covers("TR-27")
@pytest.mark.parametrize(
    ("without", "kind", "position", "missing"),
    [
        ("the public API stays untouched and ", "constraint", 0, "public"),
        ("40", "constraint", 2, "40"),
        ("ada@example.org", "request", 2, "ada@example.org"),
        ("invoice.total", "constraint", 1, "invoice.total"),
        ("refactoring of the billing module", "request", 0, "billing"),
    ],
)
def test_what_a_summary_lost_is_named(without: str, kind: str, position: int, missing: str) -> None:
    (lost,) = check_fold(TALK, GOOD.replace(without, "")).lost

    assert (lost.kind, lost.position) == (kind, position)
    assert missing in [one.lower() for one in lost.missing]


@pytest.mark.covers("TR-27")
def test_a_rule_that_was_turned_into_its_opposite_is_lost() -> None:
    (lost,) = check_fold(TALK[:1], "Refactor the billing module; touch the public API.").lost

    assert lost.is_negation_lost


def test_an_empty_summary_lost_everything() -> None:
    assert len(check_fold(TALK, "").lost) == 5


# ---- cost


@pytest.mark.covers("TR-24")
def test_folding_pays_sooner_the_longer_a_transcript_is() -> None:
    turns = [break_even_turns(tokens) for tokens in (100, 1_000, 10_000, 100_000)]

    assert turns[0] is None
    assert [one for one in turns if one] == sorted((one for one in turns if one), reverse=True)


@pytest.mark.covers("TR-24")
@pytest.mark.parametrize(("words", "advice"), [(100, "none"), (4_500, "soon"), (7_000, "now")])
def test_the_advice_follows_the_share_of_the_window(words: int, advice: str) -> None:
    cost = resume_cost([user("word " * words)], window_tokens=10_000)

    assert cost.advice == advice
    assert f"{cost.tokens:,} tokens" in cost.why
    assert cost.window_share == pytest.approx(cost.tokens / 10_000)


def test_tokens_are_those_of_the_models_tokenizer() -> None:
    said = [user("the same words for everybody")]

    assert count_tokens([]) == 0
    assert count_tokens(said, model="claude-opus-4-8") > count_tokens(said, model="gpt-4o") > 5


def test_a_stored_message_says_what_it_is() -> None:
    message = stored({"role": "user", "content": "hi"})

    assert message.body == user("hi")
    assert message.body is not message.body  # nobody changes another's
    assert message.clips == []
