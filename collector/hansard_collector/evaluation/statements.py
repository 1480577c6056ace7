"""Where claims are made: in the answers of runs, in memory, and in transcripts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import apsw

from hansard_collector.derivation.stored_span import read_step
from hansard_collector.evaluation.claims import Claim, Tools, claims_of
from hansard_collector.evaluation.history import History
from hansard_collector.evaluation.topics import Lexicon
from hansard_store.errors import StoreError
from hansard_store.evaluation.sources import (
    EvaluatedRun,
    EvaluatedStep,
    TranscriptText,
    find_message,
    message_texts,
)
from hansard_store.evaluation.verdicts import Source
from hansard_store.memory.records import Memory

_FEW_WORDS: Final = 6  # of a memory: then its subject is what they are said of
_SAME_CHARS: Final = 100
# Written by the heartbeat, or from outside: no claims of agents.
_OTHER_ORIGINS: Final = frozenset({"diagnostic", "evaluation", "external"})


@dataclass(frozen=True, slots=True)
class ClaimStatement:
    """A claim with the place where it was said. Times are Unix nanoseconds."""

    claim: Claim
    source: Source
    output_ns: int
    trace_id: bytes | None = None
    span_id: bytes | None = None
    memory: int | None = None
    message: bytes | None = None

    @property
    def key(self) -> bytes:
        """What makes two statements one: place, sentence, topic and polarity."""
        one = self.claim
        source = (self.source, self.memory, self.message)
        step = (self.trace_id, self.span_id) if self.source == "step" else ()
        fields = (source, step, one.sentence, one.topic.name, one.topic.is_tool, one.polarity,
                one.qualifier)  # fmt: skip
        return hashlib.blake2b(repr(fields).encode(), digest_size=16).digest()


@dataclass(slots=True)
class Reader:
    """Reads claims; those of a text that many runs repeat are found once."""

    connection: apsw.Connection
    lexicon: Lexicon
    tools: Tools
    texts: int = 0  # that were read
    _of_texts: dict[int, Sequence[Claim]] = field(default_factory=dict)

    def of_run(self, run: EvaluatedRun, history: History) -> Iterator[ClaimStatement]:
        """Yield the texts of a run's model calls, and its answer where no call has it."""
        steps = history.steps_of(run.trace_id)
        calls = [one for one in steps if one.output_prefix is not None]
        texts = message_texts(self.connection, [one.output_prefix or 0 for one in calls])
        seen: set[tuple[str, str]] = set()
        for step in calls:
            for text in texts.get(step.output_prefix or 0, ()):
                for claim in self._of_text(text):
                    seen.add((claim.sentence, claim.topic.name))
                    yield _of_step(claim, step)
        last = next((one for one in steps if one.id == run.last_output_span), None)
        if last is None or last.output_prefix is not None or self._is_repeated(run, calls):
            return
        for claim in claims_of(self._answer_of(last, run), self.lexicon, self.tools):
            if (claim.sentence, claim.topic.name) not in seen:
                yield _of_step(claim, last)

    def of_memory(self, memory: Memory) -> Iterator[ClaimStatement]:
        """Yield what a memory record claims."""
        if memory.metadata.get("origin") in _OTHER_ORIGINS:
            return
        self.texts += 1
        run = memory.run_id or memory.source_run_id
        step = memory.step_id
        seen: set[tuple[str, str]] = set()
        for text in memory_texts(memory):
            for claim in claims_of(text, self.lexicon, self.tools):
                if (claim.topic.name, claim.polarity) in seen:
                    continue
                seen.add((claim.topic.name, claim.polarity))
                yield ClaimStatement(
                    claim,
                    "memory",
                    memory.freshness_ns,
                    trace_id=bytes.fromhex(run) if run else None,
                    span_id=bytes.fromhex(step[33:49]) if step and run == step[:32] else None,
                    memory=memory.id,
                )

    def of_transcript(self, one: TranscriptText) -> Iterator[ClaimStatement]:
        """Yield what a message of a transcript claims."""
        self.texts += 1
        for claim in claims_of(_words_of(one.content), self.lexicon, self.tools):
            yield ClaimStatement(
                claim, "message", one.created_ns, one.trace_id, one.span_id, message=one.message_id
            )

    def _of_text(self, text: int) -> Sequence[Claim]:
        known = self._of_texts.get(text)
        if known is None:
            self.texts += 1
            message = find_message(self.connection, text)
            is_ours = message is not None and message.role == "assistant"
            known = (
                claims_of(message.text, self.lexicon, self.tools)
                if is_ours and message is not None
                else ()
            )
            self._of_texts[text] = known
            if len(self._of_texts) > 200_000:
                self._of_texts.clear()
        return known

    def _answer_of(self, step: EvaluatedStep, run: EvaluatedRun) -> str:
        try:
            normal = read_step(self.connection, step.id).normal
        except StoreError:
            return run.last_output or ""
        if normal.answered:
            return normal.answered
        found = normal.output
        if isinstance(found, list):
            return "\n".join(_words_of(one) for one in found if _is_ours(one))
        return found if isinstance(found, str) else _words_of(found)

    def _is_repeated(self, run: EvaluatedRun, calls: Sequence[EvaluatedStep]) -> bool:
        """Return whether a run's answer is its last call's text: then it is read already."""
        last = next((one for one in reversed(calls) if one.summary), None)
        if last is None or last.summary is None:
            return False
        begun = last.summary.removesuffix("…")[:_SAME_CHARS]
        return bool(begun) and (run.last_output or "").startswith(begun)


def memory_texts(memory: Memory) -> Iterator[str]:
    """Yield a memory record as texts; of a few words, that they hold of its subject."""
    subject = memory.subject.strip()
    content = memory.content
    if isinstance(content, Mapping):
        for name, value in content.items():
            if isinstance(value, str | bool | int | float):
                words = ("ok" if value else "not ok") if isinstance(value, bool) else str(value)
                yield f"{subject}: {words}" if len(words.split()) < _FEW_WORDS else words
                yield f"{name}: {words}"
    elif isinstance(content, str):
        yield _of_subject(content, subject)
        if subject and len(content.split()) < _FEW_WORDS and subject not in content:
            yield f"{subject}: {content}"


def _of_subject(content: str, subject: str) -> str:
    """Return a text whose "it" at its beginning is what the record is about."""
    for word in ("It ", "The tool ", "This tool ", "This "):
        if content.startswith(word) and subject:
            return f"{subject} {content[len(word) :]}"
    return content


def _of_step(claim: Claim, step: EvaluatedStep) -> ClaimStatement:
    trace, _, span = step.step_id.partition("-")
    at = step.sort_ns if step.end_ns is None else step.end_ns
    return ClaimStatement(claim, "step", at, bytes.fromhex(trace), bytes.fromhex(span[:16]))


def _is_ours(message: Any) -> bool:
    return not isinstance(message, Mapping) or message.get("role") in (None, "assistant")


def _words_of(content: Any, *, depth: int = 0) -> str:
    """Return the texts of a message, or of an answer, in its JSON form."""
    if isinstance(content, str):
        return content
    if depth > 3:
        return ""
    if isinstance(content, Mapping):
        if content.get("type") in ("tool_call", "tool_result", "reasoning", "tool_use"):
            return ""
        values = [content.get(name) for name in ("text", "parts", "content", "output", "answer",
                                               "result", "summary", "message")]  # fmt: skip
        return "\n".join(
            words for one in values if one is not None if (words := _words_of(one, depth=depth + 1))
        )
    if isinstance(content, list):
        return "\n".join(_words_of(one, depth=depth + 1) for one in content[:200])
    return ""
