"""Extractors of topics compared: precision and recall, topics without support, latency and cost.

`tests/fixtures/heartbeat/README_interests.md` says how the labels were made. Two extractors ask a
server on this machine that answers from a script, as chat completions: what it says was made of the
labels (`scripted-large`), or of the mistakes that the source post tells of a small model
(`scripted-small`). Their figures prove the way there and back, the check of support, and what is
recorded of calls; they say nothing of any model. `--extractor` of `hansard interests` names a real
one.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

from bench.figures import Figure, at_least, percentile
from hansard_collector.interests.finder import supporting
from hansard_collector.interests.phrases import PhraseExtractor
from hansard_collector.interests.topics import Extractor, TopicEntry, roots
from hansard_collector.judges import Choice, JudgeSettings, judges_from
from hansard_collector.judges.calls import JudgeUsage

FIXTURE: Final = (
    Path(__file__).parent.parent.parent / "tests" / "fixtures" / "heartbeat" / "interests.jsonl"
)
HALVES: Final = ("tuned", "held_out", "hard")
# What a model of one billion parameters answered to the first group, by the source post.
_SMALL: Final = (
    "Log-review evaluation",
    "Longitudinal analysis",
    "Escalation scoring with FTS5",
)
_LEAST_PRECISION_PCT: Final = {"tuned": 90.0, "held_out": 90.0}
_SCRIPTED_TOKENS: Final = 12  # of an answer, as the server says


@dataclass(frozen=True, slots=True)
class Group:
    """Entries, and the topics that a reader names of them."""

    name: str
    half: str
    entries: Sequence[TopicEntry]
    labels: Sequence[Sequence[str]]  # each topic by several names


@dataclass(slots=True)
class Score:
    """What one extractor found in one half."""

    topics: int = 0
    right: int = 0
    unsupported: int = 0  # named by the extractor and dropped
    labels: int = 0
    found: int = 0
    ms: list[float] = field(default_factory=list)

    @property
    def precision(self) -> float:
        return self.right / max(1, self.topics)

    @property
    def recall(self) -> float:
        return self.found / max(1, self.labels)


def run() -> list[Figure]:
    """Return the figures of every extractor, half by half."""
    figures = []
    for half in HALVES:
        figures += _figures("phrases/1", half, measured(PhraseExtractor(), half), usage=None)
    with _serving() as address:
        for model in ("scripted-large", "scripted-small"):
            choice = Choice("model", "openai_compatible", model)
            judges = judges_from(JudgeSettings(extractor=choice, model_server=address))
            try:
                for half in HALVES:
                    before = judges.usage
                    score = measured(judges.need_extractor(), half)
                    figures += _figures(model, half, score, usage=judges.usage.since(before))
            finally:
                judges.close()
    return figures


def measured(extractor: Extractor, half: str) -> Score:
    """Return how an extractor does on the groups of a half."""
    score = Score()
    for group in groups():
        if group.half == half:
            _add(score, extractor, group)
    return score


def groups() -> list[Group]:
    """Return the labelled groups, without entries that are diagnostic by their origin."""
    found = []
    for line in FIXTURE.read_text(encoding="utf-8").splitlines():
        told = json.loads(line)
        entries = [
            TopicEntry(f"{number:032x}", one["type"], one["subject"], one["text"])
            for number, one in enumerate(told["entries"])
            if "origin" not in one
        ]
        found.append(Group(told["group"], told["half"], entries, told["topics"]))
    return found


def _add(score: Score, extractor: Extractor, group: Group) -> None:
    began_s = time.perf_counter()
    topics = extractor(group.entries)
    kept = [one.text for one in topics if supporting(one, group.entries)]
    score.ms.append(1_000 * (time.perf_counter() - began_s))
    score.unsupported += len(topics) - len(kept)
    score.topics += len(kept)
    score.right += sum(any(is_label(one, names) for names in group.labels) for one in kept)
    score.labels += len(group.labels)
    score.found += sum(any(is_label(one, names) for one in kept) for names in group.labels)


def is_label(topic: str, names: Sequence[str]) -> bool:
    """Whether a topic has the words of one of a label's names, or shares half of them."""
    said = frozenset(roots(topic))
    wanted = [frozenset(roots(name)) for name in names]
    return any(one <= said or 2 * len(one & said) >= len(one | said) for one in wanted)


def _figures(name: str, half: str, score: Score, *, usage: JudgeUsage | None) -> list[Figure]:
    what = f"{name}, {half}"
    is_scripted = usage is not None
    note = f"{score.right} of {score.topics} topics"
    if is_scripted:
        note += "; answers come from a script made of the labels, no model is measured"
    bar = None if is_scripted else _LEAST_PRECISION_PCT.get(half)
    precision = 100 * score.precision
    figures = [
        Figure(f"precision of topics, {what}", precision, "%", note=note)
        if bar is None
        else at_least(f"precision of topics, {what}", precision, "%", bar=bar, note=note),
        Figure(
            f"recall of topics, {what}", 100 * score.recall, "%",
            note=f"{score.found} of {score.labels} labels",
        ),
        Figure(f"topics without support, dropped, {what}", score.unsupported, ""),
        Figure(f"latency of a group, median, {what}", percentile(score.ms, 0.5), "ms"),
    ]  # fmt: skip
    if usage is not None:
        told = f"{usage.calls} calls, {usage.output_tokens:,} tokens of output"
        price = "no price is known" if usage.cost_usd is None else f"{usage.cost_usd} USD"
        figures.append(
            Figure(f"tokens of input, {what}", usage.input_tokens, "", note=f"{told}; {price}")
        )
    return figures


# ---- the scripted server


@contextmanager
def _serving() -> Iterator[str]:
    """Serve chat completions from labels until the block ends."""
    labels = {
        frozenset(one.text for one in group.entries): group for group in groups() if group.entries
    }

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            shown = json.loads(body["messages"][-1]["content"])
            group = labels[frozenset(f"{one['subject']}\n{one['text']}" for one in shown)]
            answer = json.dumps(_answer(body["model"], group, shown))
            told = _completion(body, answer)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _answer(model: str, group: Group, shown: Sequence[Any]) -> Any:
    ids = [one["id"] for one in shown]
    if model == "scripted-small":
        return [{"topic": one, "entries": ids} for one in _SMALL]
    return [{"topic": names[0], "entries": ids} for names in group.labels]


def _completion(body: Any, said: str) -> bytes:
    usage = {"prompt_tokens": len(json.dumps(body)) // 4, "completion_tokens": _SCRIPTED_TOKENS}
    told = {
        "id": "scripted",
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": said},
            }
        ],
        "usage": usage,
    }
    return json.dumps(told).encode()
