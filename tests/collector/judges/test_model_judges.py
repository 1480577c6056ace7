"""Judges that are models: over real HTTP, strict about the answer, each call a recorded step."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

from hansard_collector.interests.topics import Topic, TopicEntry
from hansard_collector.judges import (
    Choice,
    ClassifierChoice,
    InvalidJudgement,
    Judges,
    JudgeSettings,
    judges_from,
)
from hansard_collector.judges.recording import CallTrace
from hansard_compiler.classifier import (
    AGREES,
    CONTRADICTS,
    UNRELATED,
    ClassifierQuestion,
    ClassifierVerdict,
)
from hansard_compiler.providers.transport.failures import (
    AnswerTruncated,
    ProviderError,
    RateLimited,
)
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from tests.instrumentation.clients.provider import CHAT, SECRET, Provider, json_reply, providing
from tests.store.empty import empty_store

LABELS = (CONTRADICTS, AGREES, UNRELATED)
QUESTION = ClassifierQuestion("contradiction", "It is 3.", LABELS, "It is 4.", "the rate")
ENTRIES = (TopicEntry("a" * 32, "note", "search", "Full text search is slow."),)
MESSAGE: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
    "stop_reason": "end_turn", "usage": {"input_tokens": 9, "output_tokens": 3},
}  # fmt: skip


@pytest.fixture
def server() -> Iterator[Provider]:
    with providing() as provider:
        yield provider


@pytest.fixture
def judges(server: Provider) -> Iterator[Judges]:
    choice = Choice("model", "openai_compatible", "judge-1")
    with closing(made(server, choice)) as found:
        yield found


def made(server: Provider, choice: Choice, **more: Any) -> Judges:
    return judges_from(
        JudgeSettings(
            classifier=(ClassifierChoice(choice),),
            extractor=choice,
            model_server=f"{server.address}/v1",
            environment={
                "OPENAI_API_KEY": "k",
                "OPENAI_BASE_URL": f"{server.address}/v1",
                "ANTHROPIC_API_KEY": "k",
                "ANTHROPIC_BASE_URL": server.address,
            },
            **more,
        )
    )


def saying(server: Provider, *texts: str, **more: Any) -> None:
    for text in texts:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 40, "completion_tokens": 8}
        body = {**CHAT, "choices": [{"finish_reason": "stop", **choice, **more}], "usage": usage}
        server.replies.append(json_reply(body))


def asked(server: Provider) -> Any:
    """Return what the user's message of the last request says, as JSON."""
    return json.loads(server.received[-1].json["messages"][-1]["content"])


def test_a_model_answers_with_a_label_a_score_and_a_reason(
    server: Provider, judges: Judges
) -> None:
    saying(server, '{"label": "contradicts", "score": 0.9, "reason": "two\\n rates"}')

    verdict = judges.for_task("contradiction")(QUESTION)

    assert verdict == ClassifierVerdict(CONTRADICTS, 0.9, "two rates")
    told = asked(server)
    assert told == {
        "subject": "the rate", "older": "It is 3.", "newer": "It is 4.", "labels": list(LABELS),
    }  # fmt: skip
    assert judges.usage.calls == 1
    assert (judges.usage.input_tokens, judges.usage.output_tokens) == (40, 8)


def test_an_answer_in_one_code_fence_is_read(server: Provider, judges: Judges) -> None:
    saying(server, '```json\n{"label": null, "score": 0}\n```')

    assert judges.for_task("topic")(QUESTION).label is None


@pytest.mark.parametrize(
    "said",
    [
        "", "contradicts", "[]", "{}", "null", '{"label": "maybe", "score": 1}',
        '{"label": "agrees"}', '{"label": "agrees", "score": "1"}',
        '{"label": "agrees", "score": 1.1}', '{"label": "agrees", "score": true}',
        '{"label": "agrees", "score": NaN}', '{"label": "agrees", "score": 1, "reason": 2}',
        'Sure! {"label": "agrees", "score": 1}', '{"label": ["agrees"], "score": 1}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_an_answer_in_another_form_is_an_error_and_no_verdict(
    server: Provider, judges: Judges, said: str
) -> None:
    saying(server, said)

    with pytest.raises((InvalidJudgement, ProviderError)):
        judges.for_task("contradiction")(QUESTION)


def test_an_answer_that_was_cut_off_is_none(server: Provider, judges: Judges) -> None:
    saying(server, '{"label": "agrees", "score": 1}', finish_reason="length")

    with pytest.raises(AnswerTruncated):
        judges.for_task("contradiction")(QUESTION)


def test_a_provider_that_refuses_is_a_typed_error_and_counted(server: Provider) -> None:
    for _ in range(2):  # it is asked once more
        reply = json_reply({"error": {"message": "slow down"}}, status=429, retry_after="0")
        server.replies.append(reply)

    with closing(made(server, Choice("model", "openai_compatible", "judge-1"))) as judges:
        with pytest.raises(RateLimited):
            judges.for_task("topic")(QUESTION)
        assert (judges.usage.calls, judges.usage.failed) == (1, 1)


def test_anthropic_and_openai_are_asked_in_their_own_form(server: Provider) -> None:
    said = '{"label": "agrees", "score": 0.5, "reason": "both"}'
    with closing(made(server, Choice("model", "anthropic", "claude-haiku-4-5"))) as judges:
        server.replies.append(json_reply({**MESSAGE, "content": [{"type": "text", "text": said}]}))
        assert judges.for_task("contradiction")(QUESTION).label == AGREES
        assert server.received[-1].path.startswith("/v1/messages")
        assert judges.usage.cost_usd  # its price is known
    with closing(made(server, Choice("model", "openai", "gpt-5-mini"))) as judges:
        with pytest.raises(InvalidJudgement):  # the usual answer of the server is no verdict
            judges.for_task("contradiction")(QUESTION)
        assert server.received[-1].path == "/v1/responses"


# ---- topics


@pytest.mark.covers("IN-02")
def test_a_model_names_topics_with_the_entries_that_they_come_from(
    server: Provider, judges: Judges
) -> None:
    cited = [{"topic": "full text search", "entries": ["a" * 32]}, "search"]
    saying(server, json.dumps(cited), json.dumps([f"topic {n}" for n in range(9)]))

    assert judges.need_extractor()(ENTRIES) == [
        Topic("full text search", ["a" * 32]),
        Topic("search", None),
    ]
    assert [one["id"] for one in asked(server)] == ["a" * 32]
    assert len(judges.need_extractor()(ENTRIES)) == 5


@pytest.mark.covers("IN-02")
@pytest.mark.parametrize(
    "said",
    [
        "topics: search", "{}", '{"topics": []}', "null", "[1]", '[{"topic": "x"}]', '[""]',
        '[{"topic": 1, "entries": []}]', '[{"topic": "x", "entries": [1]}]', '["a", null]',
        json.dumps(["x" * 121]), json.dumps(["x"] * 101),
    ],
)  # fmt: skip
def test_topics_in_another_form_are_an_error(server: Provider, judges: Judges, said: str) -> None:
    saying(server, said)

    with pytest.raises(InvalidJudgement):
        judges.need_extractor()(ENTRIES)


# ---- vectors


def embedding(server: Provider, vectors: Sequence[Any], **more: Any) -> None:
    data = [{"index": at, "embedding": one} for at, one in enumerate(vectors)]
    body = {"data": data, "model": "embed-1", "usage": {"prompt_tokens": 7}, **more}
    server.replies.append(json_reply(body))


def test_a_provider_embeds_texts_in_their_order(server: Provider) -> None:
    choice = Choice("model", "openai_compatible", "embed-1")
    data = [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": [3, 4]}]
    embedding(server, [], data=data)

    with closing(made(server, Choice("offline"), embedder=choice)) as judges:
        vectors = judges.need_embedder()(["a", " ", "b"])

    assert [tuple(one) for one in vectors] == [(0.6, 0.8), (0.0, 0.0), (0.0, 1.0)]
    assert server.received[-1].json["input"] == ["a", "b"]
    assert judges.need_embedder().dimensions == 2


@pytest.mark.parametrize(
    "vectors", [[], [[]], [["x"]], [[True]], [None], [[1e400]], [[1], [2]], [{"0": 1}]]
)
def test_vectors_in_another_form_are_an_error(server: Provider, vectors: Sequence[Any]) -> None:
    embedding(server, vectors)
    choice = Choice("model", "openai_compatible", "embed-1")

    with (
        closing(made(server, Choice("offline"), embedder=choice)) as judges,
        pytest.raises(InvalidJudgement),
    ):
        judges.need_embedder()(["a"])


# ---- the record


def rows(folder: DataFolder, sql: str) -> list[Any]:
    connection = apsw.Connection(str(folder.database))
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


@pytest.mark.covers("IN-10", "MM-14")
@pytest.mark.parametrize("mode", list(RetentionMode))
def test_each_call_is_a_step_with_its_tokens(
    server: Provider, tmp_path: Path, mode: RetentionMode
) -> None:
    folder = empty_store(tmp_path / "data")
    embedder = Choice("model", "openai_compatible", "embed-1")
    saying(server, '{"label": "agrees", "score": 1}', "no JSON")
    embedding(server, [[1, 0]])
    trace = CallTrace(folder, mode, "hansard.test")

    judge = made(server, Choice("model", "openai_compatible", "judge-1"), embedder=embedder)
    with closing(judge) as judges, trace.span("asking", always=True):
        bound = judges.recorded_by(trace.recorder)
        bound.for_task("contradiction")(QUESTION)
        with pytest.raises(InvalidJudgement):
            bound.for_task("topic")(QUESTION)
        bound.need_embedder()([f"a text with {SECRET}"])

    names = rows(folder, "SELECT name, tokens_input, tokens_output FROM steps ORDER BY start_ns")
    assert names == [
        ("asking", None, None),
        ("chat judge-1", 40, 8),
        ("chat judge-1", 40, 8),
        ("embeddings embed-1", 7, None),
    ]
    stored = b"".join(path.read_bytes() for path in folder.path.rglob("*") if path.is_file())
    if mode is not RetentionMode.FULL_PAYLOADS:
        assert SECRET.encode() not in stored


def test_a_trace_without_a_call_is_not_stored(tmp_path: Path) -> None:
    folder = empty_store(tmp_path / "data")

    with CallTrace(folder, RetentionMode.REDACTED_PAYLOADS, "hansard.test").span(
        "asking", always=False
    ):
        pass

    assert rows(folder, "SELECT count(*) FROM span") == [(0,)]
