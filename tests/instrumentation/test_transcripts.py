"""A program and its transcript: the same lines go on after a night, a crash, a fold."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard._config.settings import Settings, load_settings
from hansard.errors import TranscriptUnavailable
from hansard.transcripts import Transcript, open_transcripts, transcript
from hansard_compiler.calls import Json
from hansard_compiler.retention_modes import RetentionMode
from hansard_compiler.transcripts.errors import (
    InvalidConversationId,
    InvalidMessage,
    TranscriptWithheld,
)
from hansard_compiler.transcripts.views import prefix_hash
from hansard_store.audit.events import read_events
from hansard_store.database.data_folder import DataFolder
from hansard_store.database.readers import open_reader
from hansard_store.transcripts.queries import decode_all
from tests.instrumentation.recording import attributes, recording
from tests.instrumentation.transcript_maker import SECRET, assistant, call, result, user


def embedded(path: Path) -> Transcript:
    return transcript("talk", backend=open_transcripts(settings(path)))


def settings(path: Path, **more: Any) -> Settings:
    return load_settings({"data": str(path), "embedded": True, **more}, {})


def said(messages: list[Json]) -> list[str]:
    return [one["parts"][0].get("text", "") for one in messages]


@pytest.fixture
def talk() -> Transcript:
    return hansard.transcript("talk", backend=hansard.transcripts.LocalTranscripts())


@pytest.mark.covers("TR-10", "TR-11")
def test_the_first_run_and_a_resume_are_the_same_lines(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    def loop(messages: list[Json]) -> list[Json]:
        seen.append(said(messages))
        return [assistant(f"answer {len(seen)}")]

    for prompt in ("don't touch the public API", "keep going", "and the tests"):
        embedded(tmp_path).run(prompt, loop)

    assert seen[0] == ["don't touch the public API"]
    assert seen[2] == [
        "don't touch the public API",
        "answer 1",
        "keep going",
        "answer 2",
        "and the tests",
    ]


@pytest.mark.covers("TR-12")
def test_what_the_loop_does_to_its_list_changes_nothing(talk: Transcript) -> None:
    talk.append(user("before"), assistant("yes"))

    def loop(messages: list[Json]) -> list[Json]:
        tail = [call("c1"), result("c1", "found"), assistant("here it is")]
        messages[0]["parts"][0]["text"] = "rewritten"
        messages[:] = [*messages[-1:], *tail]  # a loop that compresses its buffer
        messages.pop()
        return tail

    stored = talk.run("find it", loop)

    assert [one["role"] for one in stored] == ["assistant", "tool", "assistant"]
    assert said(talk.messages()) == ["before", "yes", "find it", "", "", "here it is"]


def test_a_loop_that_fails_leaves_the_prompt_and_no_half_of_a_tail(talk: Transcript) -> None:
    def loop(_: list[Json]) -> list[Json]:
        raise RuntimeError("the model is away")

    with pytest.raises(RuntimeError):
        talk.run("hello?", loop)
    with pytest.raises(InvalidMessage):
        talk.run("again?", lambda _: [assistant("fine"), {"role": "nobody"}])

    assert said(talk.messages()) == ["hello?", "again?"]


def test_a_loop_may_be_awaited(talk: Transcript) -> None:
    async def loop(messages: list[Json]) -> list[Json]:
        await asyncio.sleep(0)
        return [assistant(f"{len(messages)} so far")]

    assert said(asyncio.run(talk.arun("hi", loop))) == ["1 so far"]


@pytest.mark.covers("TR-17")
def test_the_loop_goes_on_with_what_is_stored(talk: Transcript) -> None:
    hashes: list[str] = []

    def loop(messages: list[Json]) -> list[Json]:
        hashes.append(prefix_hash(messages))
        return [call("c1"), result("c1", f"{SECRET} " + "row " * 20_000), assistant("done")]

    tail = talk.run(f"my key is {SECRET}", loop)
    now = talk.resume()

    assert SECRET not in str(tail) + str(now.messages)
    assert now.messages[1:] == tail
    assert tail[1]["parts"][0]["clip"]["size_bytes"] > 80_000
    # What the first prompt was is, to the byte, how the second begins.
    assert prefix_hash(now.messages[:1]) == hashes[0]


KILLED = """
import sys, hansard
from hansard.transcripts import open_transcripts
from hansard._config.settings import load_settings
settings = load_settings({"data": sys.argv[1], "embedded": True}, {})
talk = hansard.transcript("talk", backend=open_transcripts(settings))
talk.run("the API stays as it is", lambda messages: [{"role": "assistant", "content": "yes"}])
def loop(messages):
    print(len(messages), flush=True)
    sys.stdin.readline()  # a model that takes its time
talk.run("go on with the refactoring", loop)
"""


@pytest.mark.slow
@pytest.mark.covers("TR-10", "TR-11")
def test_a_program_killed_during_the_model_call_finds_its_prompt_again(tmp_path: Path) -> None:
    victim = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert victim.stdout is not None
    assert victim.stdout.readline() == "3\n"
    victim.kill()
    victim.communicate()

    talk = embedded(tmp_path)
    assert said(talk.messages())[2:] == ["go on with the refactoring"]
    (told,) = talk.run("keep going", lambda messages: [assistant(" | ".join(said(messages)))])

    assert said([told]) == [
        "the API stays as it is | yes | go on with the refactoring | keep going"
    ]
    reader = open_reader(DataFolder(tmp_path))
    assert decode_all(reader).is_sound
    assert len(read_events(reader)) == 5
    reader.close()


def test_calls_that_a_killed_program_left_open_are_named(talk: Transcript) -> None:
    talk.append(user("find it"), call("c1"), call("c2"), result("c1", "here"))

    assert talk.resume().open_calls == ("c2",)
    talk.append(result("c2", "not run: the program ended"))
    assert talk.resume().open_calls == ()


@pytest.mark.covers("TR-14", "TR-16")
def test_a_fold_of_what_was_read_does_not_hide_what_came_after(talk: Transcript) -> None:
    talk.append(user("a"), assistant("b"))
    read = talk.resume()
    talk.append(user("meanwhile"))

    with pytest.raises(Exception, match="read what was appended"):
        talk.fold("a and b", expected_head=read.head)
    talk.fold("a, b, meanwhile", expected_head=talk.resume().head, by="me")

    now = talk.resume()
    assert now.fold is not None
    assert said(now.messages) == [
        "Summary of the first 3 messages of this conversation:\n\na, b, meanwhile"
    ]
    assert said(talk.messages()) == ["a", "b", "meanwhile"]


@pytest.mark.covers("TR-20")
def test_a_sub_agent_is_begun_ended_and_resumed_by_its_id(talk: Transcript) -> None:
    talk.append("look into it")
    helper = talk.branch("helper")
    helper.run("read", lambda _: [assistant("read it")])
    helper.end()

    (known,) = talk.branches()
    again = talk.resume_branch(str(known.id))
    again.append("once more")

    assert (known.ended, again.name, helper.id) == ("done", "helper", again.id)
    assert said(again.messages()) == ["read", "read it", "once more"]
    assert said(talk.messages()) == ["look into it"]
    with pytest.raises(InvalidConversationId):
        talk.end()


@pytest.mark.covers("TR-25")
def test_a_redaction_says_what_it_costs_and_a_correction_stands_for_the_old(
    talk: Transcript,
) -> None:
    talk.append(user("my name is Ada"), user("ship Monday"), user("ship Tuesday"))

    assert talk.redact(0, reason="asked for it").cold_tokens > 10
    talk.supersede(1, by_position=2, reason="corrected")
    assert said(talk.messages()) == [
        "‹message removed: redacted›",
        "‹message removed: superseded by message 2›",
        "ship Tuesday",
    ]


@pytest.mark.covers("TR-21")
def test_messages_carry_their_step_and_the_step_its_transcript(talk: Transcript) -> None:
    kept = hansard.transcripts.LocalTranscripts()
    with recording() as recorded:

        @hansard.agent
        def clerk() -> None:
            talk = hansard.transcript("talk", backend=kept)
            talk.run("hi", lambda _: [assistant("hello")])

        clerk()
    (span,) = recorded.spans
    (first, second) = kept.messages(kept.ensure("talk").id)

    assert first.trace_id == second.trace_id == f"{span.context.trace_id:032x}"
    assert first.span_id == f"{span.context.span_id:016x}"
    told = attributes(span)
    assert told["hansard.transcript.id"] == str(first.log)
    assert told["hansard.transcript.head"] == 0
    assert told["hansard.transcript.prefix_hash"] == prefix_hash([first.body])


def test_without_content_there_is_no_transcript_to_open(tmp_path: Path) -> None:
    with pytest.raises(TranscriptWithheld):
        open_transcripts(settings(tmp_path, retention="metadata_only"))


def test_a_server_that_is_away_is_a_typed_error(tmp_path: Path) -> None:
    away = settings(tmp_path, embedded=False, endpoint="http://127.0.0.1:9")
    with pytest.raises(TranscriptUnavailable, match="no transcript can be had"):
        transcript("talk", backend=open_transcripts(away))
    only_grpc = settings(
        tmp_path, embedded=False, protocol="grpc", endpoint="http://127.0.0.1:4317"
    )
    with pytest.raises(TranscriptUnavailable, match="http_endpoint"):
        open_transcripts(only_grpc)


def test_full_payloads_sends_and_keeps_everything(tmp_path: Path) -> None:
    full = settings(tmp_path, retention=RetentionMode.FULL_PAYLOADS)
    (stored,) = transcript("talk", backend=open_transcripts(full)).append(user(SECRET))

    assert stored["parts"][0]["text"] == SECRET


def test_what_is_read_and_printed_is_json(talk: Transcript) -> None:
    called = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "find"}]}
    talk.append("text", called, {"role": "tool", "id": "c", "content": [1.5, None]})

    assert json.loads(json.dumps(talk.messages())) == talk.messages()


def test_what_is_no_name_text_or_position_is_a_typed_error(talk: Transcript) -> None:
    wrong: Any = 5
    for ask in (hansard.transcript, talk.branch, talk.resume_branch):
        with pytest.raises(InvalidConversationId):
            ask(wrong)
    with pytest.raises(InvalidMessage, match="summary"):
        talk.fold(wrong)
    sub_agent = talk.branch("clerk")
    with pytest.raises(InvalidMessage, match="done or failed"):
        sub_agent.end(wrong)
    talk.append("go on")
    no_position: Any = "0"
    with pytest.raises(InvalidMessage, match="position"):
        talk.redact(no_position, reason="a typo")
    with pytest.raises(InvalidMessage, match="position"):
        talk.supersede(0, by_position=no_position, reason="a typo")
