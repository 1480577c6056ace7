"""Transcripts, whatever keeps them: every back end passes the same suite."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hansard._backend.http_client import HttpClient
from hansard._backend.http_transcripts import HttpTranscripts
from hansard.transcripts import LocalTranscripts
from hansard_compiler.errors import NotFoundError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.entry import NewMessage
from hansard_compiler.transcripts.errors import (
    HeadStale,
    InvalidMessage,
    MessageIdUsed,
    NothingToFold,
    ResultWithoutCall,
)
from hansard_compiler.transcripts.ids import BranchId, ConversationId
from hansard_compiler.transcripts.ports import Transcripts
from hansard_compiler.transcripts.reads import active, cache_effect, check_summary, cost_of
from hansard_compiler.transcripts.views import prompt_bytes
from hansard_store.transcripts.service import open_transcripts
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.instrumentation.transcript_maker import (
    SECRET,
    assistant,
    call,
    result,
    say,
    texts,
    user,
)
from tests.store.empty import empty_store
from tests.web.conftest import Served


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Transcripts]]:
    folder = tmp_path_factory.mktemp("transcripts")
    at_server = empty_store(tmp_path_factory.mktemp("server"))
    redactor = Redactor(at_server.key())
    with Served(create_app(at_server, None, WebSettings())) as server:
        client = HttpClient(server.url, headers={}, timeout_s=10)
        yield {
            "sqlite": open_transcripts(folder, retention=RetentionMode.REDACTED_PAYLOADS),
            "in process": LocalTranscripts(),
            "http": HttpTranscripts(client, lambda text: redactor.redact_text(text).text, raw=True),
        }
        client.close()


@pytest.fixture(params=["sqlite", "in process", "http"])
def transcripts(request: pytest.FixtureRequest, kept: dict[str, Transcripts]) -> Transcripts:
    return kept[request.param]


@pytest.fixture
def talk(transcripts: Transcripts) -> ConversationId:
    return transcripts.ensure(f"talk-{secrets.token_hex(6)}").id


@pytest.mark.covers("TR-01", "TR-03", "TR-22")
def test_messages_stand_in_the_order_they_were_appended(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    stored = say(transcripts, talk, user("one"), assistant("two")) + say(
        transcripts, talk, user("three")
    )

    assert [one.position for one in stored] == [0, 1, 2]
    assert transcripts.messages(talk) == stored
    assert texts(transcripts.messages(talk, after=0, limit=1)) == ["two"]


def test_a_conversation_is_ensured_as_often_as_one_likes(transcripts: Transcripts) -> None:
    first = transcripts.ensure("again")

    assert transcripts.ensure("again").id == first.id == transcripts.conversation(first.id).id


def test_an_unknown_conversation_or_sub_agent_is_told_so(transcripts: Transcripts) -> None:
    for nobody in (ConversationId(bytes(16)), BranchId(bytes(16))):
        with pytest.raises(NotFoundError):
            transcripts.messages(nobody)
        with pytest.raises(NotFoundError):
            say(transcripts, nobody, user("hello?"))


def test_a_batch_with_a_bad_message_appends_nothing(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    with pytest.raises(InvalidMessage, match="role"):
        say(transcripts, talk, user("fine"), {"role": "system", "content": "be nice"})

    assert transcripts.messages(talk) == []


def test_a_message_sent_twice_stands_once(transcripts: Transcripts, talk: ConversationId) -> None:
    sent = NewMessage(user("once"), id=secrets.token_bytes(16))

    assert transcripts.append(talk, [sent]) == transcripts.append(talk, [sent])
    assert texts(transcripts.messages(talk)) == ["once"]
    with pytest.raises(MessageIdUsed):
        transcripts.append(talk, [NewMessage(user("other"), id=sent.id)])


@pytest.mark.covers("TR-19")
def test_a_correction_is_a_new_message_and_the_old_one_stays(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("ship on Monday"), user("correction: ship on Tuesday"))

    assert len(transcripts.messages(talk)) == 2


@pytest.mark.covers("TR-13", "TR-14", "TR-15")
def test_a_fold_narrows_the_view_and_keeps_the_record(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, *(user(f"message {n}") for n in range(200)))
    fold = transcripts.fold(talk, "two hundred messages")
    say(transcripts, talk, *(user(f"message {n}") for n in range(200, 212)))

    now = active(transcripts, talk)
    assert fold.message_position == 199
    assert len(transcripts.messages(talk)) == 212
    assert len(now.messages) == 13
    assert "two hundred messages" in now.messages[0]["parts"][0]["text"]
    assert now.messages[1]["parts"][0]["text"] == "message 200"
    assert now.head == 211


@pytest.mark.covers("TR-16")
def test_the_newest_fold_counts_and_older_ones_stay(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("a"))
    transcripts.fold(talk, "first")
    say(transcripts, talk, user("b"))
    transcripts.fold(talk, "second", actor="me")
    transcripts.fold(talk, "third")

    assert [fold.summary for fold in transcripts.folds(talk)] == [
        "first",
        "second",
        "third",
    ]
    assert [fold.message_position for fold in transcripts.folds(talk)] == [0, 1, 1]
    (only,) = active(transcripts, talk).messages
    assert only["parts"][0]["text"].endswith("third")


def test_a_fold_is_refused_where_it_would_hide_what_was_not_read(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    with pytest.raises(NothingToFold):
        transcripts.fold(talk, "of nothing")
    say(transcripts, talk, user("a"), user("b"))
    with pytest.raises(HeadStale) as moved:
        transcripts.fold(talk, "saw a only", expected_head=0)
    with pytest.raises(NothingToFold, match="empty"):
        transcripts.fold(talk, " ")

    assert (moved.value.expected, moved.value.found) == (0, 1)
    assert transcripts.folds(talk) == []


def test_a_fold_does_not_part_a_tool_call_from_its_result(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("find it"), call("c1"))
    with pytest.raises(NothingToFold, match="no result"):
        transcripts.fold(talk, "looked for it")
    assert active(transcripts, talk).open_calls == ("c1",)

    say(transcripts, talk, result("c1", "found"))
    assert transcripts.fold(talk, "found it").message_position == 2


@pytest.mark.covers("TR-18")
def test_an_oversize_result_is_clipped_once_and_kept_whole_by_reference(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    text = "".join(f"line {n}\n" for n in range(20_000))
    _, stored = say(transcripts, talk, call("c1"), result("c1", text))

    (clip,) = stored.clips
    shown = stored.body["parts"][0]["content"]
    assert clip.size_bytes == len(text)
    assert len(shown) < 33_200
    assert shown.startswith("line 0\n")
    assert shown.endswith("line 19999\n")
    assert clip.payload in shown
    assert f"{len(text):,} bytes" in shown
    assert transcripts.messages(talk)[1] == stored


def test_what_is_marked_as_evidence_is_never_clipped(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, call("c1"), call("c2"))
    (stored,) = transcripts.append(talk, [NewMessage(result("c1", "x" * 90_000), is_evidence=True)])
    assert stored.clips == []
    assert len(stored.body["parts"][0]["content"]) == 90_000
    with pytest.raises(InvalidMessage, match="bytes"):
        transcripts.append(talk, [NewMessage(result("c2", "x" * 5_000_000), is_evidence=True)])


def test_a_secret_is_gone_from_what_is_stored_and_given_back(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    long = f"{SECRET}\n" + "x" * 40_000
    say(transcripts, talk, call("c1"))
    stored = say(transcripts, talk, user(f"my key is {SECRET}"), result("c1", long))
    transcripts.fold(talk, f"the key is {SECRET}", actor=f"ana {SECRET}")
    transcripts.mark(talk, 1, "redacted", reason=f"holds {SECRET}", actor=SECRET)

    assert SECRET not in str(stored) + str(transcripts.folds(talk)) + str(transcripts.marks(talk))
    assert "‹redacted:" in stored[0].content


@pytest.mark.covers("TR-17")
@settings(max_examples=15)
@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=8))
def test_each_prompt_begins_with_the_bytes_of_the_one_before(
    kept: dict[str, Transcripts], said: list[str]
) -> None:
    for transcripts in kept.values():
        talk = transcripts.ensure(f"prefix-{secrets.token_hex(6)}").id
        before = b""
        for text in said:
            say(transcripts, talk, user(text), assistant(text[::-1]), call("c"))
            say(transcripts, talk, result("c", {"said": text}))
            now = prompt_bytes(active(transcripts, talk).messages)
            assert now.startswith(before)
            assert now == prompt_bytes(active(transcripts, talk).messages)
            before = now


@pytest.mark.covers("TR-25")
def test_a_marked_message_is_veiled_in_views_and_whole_in_the_log(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    said = say(
        transcripts, talk, user("my name is Ada"), call("c1", who="Ada"), result("c1", "Ada")
    )
    transcripts.mark(talk, 0, "redacted", reason="asked for it", actor="me")
    transcripts.mark(talk, 1, "redacted", reason="asked for it")
    transcripts.mark(talk, 2, "superseded", reason="wrong", superseded_by=3)

    shown = active(transcripts, talk).messages
    assert "Ada" not in str(shown)
    assert shown[1]["parts"][0]["name"] == "find"  # the call keeps its shape, its result its place
    assert shown[2]["parts"][0] == {
        "type": "tool_result",
        "id": "c1",
        "content": "‹message removed: superseded by message 3›",
    }
    assert transcripts.messages(talk) == said

    transcripts.mark(talk, 0, "restored", reason="a mistake")
    assert active(transcripts, talk).messages[0] == said[0].body
    with pytest.raises(NotFoundError):
        transcripts.mark(talk, 3, "redacted", reason="is not there")


def test_what_a_mark_costs_the_cache_is_told(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("a " * 400), user("b " * 400))
    early, late = cache_effect(transcripts, talk, 0), cache_effect(transcripts, talk, 1)
    transcripts.fold(talk, "both")
    folded = cache_effect(transcripts, talk, 0)

    assert early.cold_tokens > late.cold_tokens > 300
    assert (folded.cold_tokens, folded.folds_over, folded.is_free) == (0, 1, True)


@pytest.mark.covers("TR-20")
def test_a_sub_agent_has_a_log_of_its_own_and_can_be_resumed(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("look into it"))
    branch = transcripts.spawn(talk, "researcher")
    say(transcripts, branch.id, user("read the docs"), assistant("done reading"))
    inner = transcripts.spawn(branch.id, "reader")
    ended = transcripts.end(branch.id)

    assert (ended.messages, ended.ended, ended.parent_position) == (2, "done", 0)
    assert [one.name for one in transcripts.branches(talk)] == ["researcher"]
    assert [one.id for one in transcripts.branches(branch.id)] == [inner.id]
    assert inner.conversation == transcripts.conversation(inner.id).id == talk
    assert inner.parent == branch.id
    assert len(transcripts.messages(talk)) == 1

    say(transcripts, branch.id, user("and the changelog"))
    assert transcripts.branch(branch.id).ended is None
    assert len(active(transcripts, branch.id).messages) == 3
    assert transcripts.end(branch.id, "failed").ended == "failed"


def test_a_sub_agents_log_is_folded_and_marked_for_itself(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("a"), user("b"))
    branch = transcripts.spawn(talk, "researcher").id
    say(transcripts, branch, user("a"))
    transcripts.fold(branch, "only here")
    transcripts.mark(branch, 0, "redacted", reason="only here")

    assert transcripts.folds(talk) == []
    assert transcripts.marks(talk) == []
    assert len(transcripts.folds(branch)) == len(transcripts.marks(branch)) == 1


@pytest.mark.covers("TR-24")
def test_the_cost_of_going_on_is_told_before_it_is_paid(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, *(user("word " * 1_000) for _ in range(10)))
    before = cost_of(transcripts, talk, window_tokens=12_000)
    transcripts.fold(talk, "words")
    after = cost_of(transcripts, talk, window_tokens=12_000)

    assert before.advice == "now"
    assert before.tokens > 9_000
    assert (after.advice, after.messages) == ("none", 1)
    assert after.tokens < 100
    assert after.all_tokens > 9_000


@pytest.mark.covers("TR-27")
def test_a_lost_constraint_is_found_in_the_fold(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("Refactor billing. Don't touch the public API."))
    transcripts.fold(talk, "Refactoring of billing is under way.")
    found = check_summary(transcripts, talk)
    better = check_summary(
        transcripts, talk, "Task: refactor billing. The public API is not to be touched."
    )

    assert [(one.kind, one.position, one.sentence) for one in found.lost] == [
        ("constraint", 0, "Don't touch the public API.")
    ]
    assert better.is_whole
    assert better.sentences == 2


# ---- results and their calls


def test_a_result_that_answers_no_open_call_is_refused_and_nothing_of_its_append_is_kept(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, user("Where is order 7?"), call("c1"))

    refused = []
    for messages in (
        [result("c2", "of nobody")],
        [user("and?"), result("c1", "in the post"), result("c1", "again")],
        [result("c3", "before its call"), call("c3")],
    ):
        with pytest.raises(ResultWithoutCall) as told:
            say(transcripts, talk, *messages)
        refused.append((told.value.code, told.value.call_ids))
    stored = say(transcripts, talk, user("still there?"), result("c1", "in the post"))
    with pytest.raises(ResultWithoutCall):
        say(transcripts, talk, result("c1", "twice"))

    assert refused == [("orphan_tool_result", (one,)) for one in ("c2", "c1", "c3")]
    assert [one.position for one in stored] == [2, 3]
    assert len(transcripts.messages(talk)) == 4


def test_results_answer_calls_in_any_order_by_id_or_without_one_and_a_fold_closes_them(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    two = {"role": "assistant", "parts": [*call("a")["parts"], *call("b")["parts"]]}
    nameless = {"role": "assistant", "parts": [{"type": "tool_call", "name": "find"}]}
    for _ in range(3):  # servers that begin again with the same ids
        say(transcripts, talk, two, result("b", 2), user("wait"), result("a", 1))
        say(transcripts, talk, nameless, {"role": "tool", "content": "found"})
    transcripts.fold(talk, "Everything was found.")

    with pytest.raises(ResultWithoutCall):
        say(transcripts, talk, result("a", 1))

    assert len(transcripts.messages(talk)) == 18


def test_a_result_that_is_sent_again_under_its_id_is_known(
    transcripts: Transcripts, talk: ConversationId
) -> None:
    say(transcripts, talk, call("c1"))
    sent = NewMessage(result("c1", "in the post"), id=secrets.token_bytes(16))

    first, again = transcripts.append(talk, [sent]), transcripts.append(talk, [sent])

    assert first == again
