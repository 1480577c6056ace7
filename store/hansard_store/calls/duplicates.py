"""Two spans about one call: an instrumentor's and the SDK's own, or a tool's two ends.

A pure verdict over two calls of which one stands above the other in the tree, and the search for
calls side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import apsw

from hansard_store.steps.flags import SpanFlag

OURS = "hansard"  # the dialect of our own spans


@dataclass(frozen=True, slots=True)
class CallFacts:
    """What is compared of a call."""

    span: int
    role: str
    model: str | None
    response_id: str | None
    tokens_input: int | None
    tokens_output: int | None
    start_ns: int
    end_ns: int | None
    scope: int
    dialect: str
    is_usage_alone: bool = False  # it says nothing but a model and what was used
    has_messages: bool = False
    input: int | None = None  # the list of messages that it was asked with
    output: int | None = None  # and that of its answer
    is_failed: bool = False

    @property
    def has_tokens(self) -> bool:
        return self.tokens_input is not None or self.tokens_output is not None


class DuplicateVerdict(Enum):
    INDEPENDENT = "independent"
    INNER_REPEATS = "inner repeats the outer"  # the outer is the call
    OUTER_REPEATS = "outer repeats the inner"  # the inner is the call: only it has the numbers
    OUTER_SUMS = "outer sums up the inner ones"  # leaves are the calls


def judge(outer: CallFacts, inner: CallFacts) -> DuplicateVerdict:
    """Return what two nested calls are to each other."""
    if outer.role != inner.role or not _same_model(outer.model, inner.model):
        return DuplicateVerdict.INDEPENDENT
    if not _same_call(outer, inner):
        return DuplicateVerdict.OUTER_SUMS if inner.has_tokens else DuplicateVerdict.INDEPENDENT
    if outer.is_usage_alone and not inner.is_usage_alone:
        return DuplicateVerdict.OUTER_REPEATS
    if inner.dialect == OURS != outer.dialect and (inner.has_tokens or not outer.has_tokens):
        return (
            DuplicateVerdict.OUTER_REPEATS
        )  # it names the exact bytes; an exporter may have cut the other
    if inner.has_tokens and not outer.has_tokens:
        return DuplicateVerdict.OUTER_REPEATS
    is_fuller = inner.has_messages and not outer.has_messages
    if is_fuller and not outer.has_tokens:  # a failed call: the words tell which span is it
        return DuplicateVerdict.OUTER_REPEATS
    return DuplicateVerdict.INNER_REPEATS


def are_twins(one: CallFacts, other: CallFacts) -> bool:
    """Return whether two calls that do not stand above each other are one call.

    Asked of calls with one response id, and of calls that two instrumentations began side by side.
    The id alone would not do: scripted and proxied models give the same id again and again. With
    the id, two instrumentations of which one was at work within the other may count differently:
    cached tokens in or out, the first chunk's usage of a stream added to the last one's. Without
    it, they must agree on the output where both tell it.
    """
    if one.response_id and other.response_id and one.response_id != other.response_id:
        return False
    if one.role != other.role or not _same_model(one.model, other.model):
        return False
    if one.scope == other.scope and one.dialect == other.dialect == OURS:
        return False  # we record a call once
    if one.scope != other.scope and (_within(one, other) or _within(other, one)):
        return bool(one.response_id and other.response_id) or _same_output(one, other)
    overlap = one.start_ns <= (other.end_ns or one.start_ns) and other.start_ns <= (
        one.end_ns or other.start_ns
    )
    same_usage = (one.tokens_input, one.tokens_output) == (other.tokens_input, other.tokens_output)
    return overlap and same_usage


def have_the_same_text(one: CallFacts, other: CallFacts) -> bool:
    """Return whether two calls beside each other, of two instrumentations, are one by their words.

    A framework that hands out a stream may end its span before the client below it sends anything:
    neither is within the other, and its numbers come late or not at all. Equal messages in and out
    are one call then, of two that failed without an answer equal messages in, and where none are
    kept, equal numbers; unless ids or numbers contradict.
    Two calls of one instrumentation are never one: each was recorded once.
    """
    if one.scope == other.scope or one.role != other.role:
        return False
    if one.response_id and other.response_id and one.response_id != other.response_id:
        return False
    if not _same_model(one.model, other.model):
        return False
    usage = [(call.tokens_input, call.tokens_output) for call in (one, other)]
    if usage[0] != usage[1] and (None, None) not in usage:
        return False
    if one.output is not None or other.output is not None:
        return (one.input, one.output) == (other.input, other.output)
    if one.is_failed and other.is_failed and one.input is not None:
        return one.input == other.input
    return usage[0] == usage[1] and None not in usage[0]


def is_repeat(one: CallFacts, other: CallFacts) -> bool:
    """Return whether calls of two traces of one prompt are one call.

    Stricter than beside one another in a trace, as rounds of one prompt may run at once: they tell
    one response id, or two instrumentations tell the same output at the same time.
    """
    if not are_twins(one, other):
        return False
    if one.response_id and other.response_id:
        return True
    is_told = bool(one.tokens_output) and one.tokens_output == other.tokens_output
    return one.scope != other.scope and is_told


def is_usage_of(usage: CallFacts, call: CallFacts) -> bool:
    """Return whether usage alone is what a call beside it used: an accounting record, no call.

    It is written when the call has ended, and has the same numbers.
    """
    if not usage.is_usage_alone or call.is_usage_alone or usage.role != call.role:
        return False
    if not _same_model(usage.model, call.model) or not usage.has_tokens:
        return False
    written_ns = usage.start_ns
    latest_ns = (call.end_ns or call.start_ns) + _USAGE_WITHIN_NS
    same = (usage.tokens_input, usage.tokens_output) == (call.tokens_input, call.tokens_output)
    return same and call.start_ns <= written_ns <= latest_ns


def _same_output(one: CallFacts, other: CallFacts) -> bool:
    counts = {one.tokens_output or 0, other.tokens_output or 0} - {0}
    return len(counts) < 2


def _within(one: CallFacts, other: CallFacts) -> bool:
    if one.end_ns is None or other.end_ns is None:
        return False
    return other.start_ns <= one.start_ns and one.end_ns <= other.end_ns


def _same_call(outer: CallFacts, inner: CallFacts) -> bool:
    if outer.response_id and inner.response_id:
        return outer.response_id == inner.response_id
    if outer.has_tokens and inner.has_tokens:
        # Input may be reported with or without its cached part; output is reported alike.
        return outer.tokens_output == inner.tokens_output
    return True


def _same_model(one: str | None, other: str | None) -> bool:
    if not one or not other:
        return True
    # "openai/gpt-4o" and "gpt-4o-2024-08-06" are names of one model.
    short, long = sorted((one.rsplit("/", 1)[-1], other.rsplit("/", 1)[-1]), key=len)
    return long.startswith(short) or long.endswith(short)


_ALONE = int(SpanFlag.USAGE_ALONE)
_FAILED = int(SpanFlag.ERROR)
CALL_FACTS = f"""
span.id, span.role, span.model, call.response_id, call.tokens_input, call.tokens_output,
span.sort_ns, span.end_ns, span.scope, span.dialect, span.flags & {_ALONE} <> 0,
call.input_prefix IS NOT NULL OR call.output_prefix IS NOT NULL,
call.input_prefix, call.output_prefix, span.flags & {_FAILED} <> 0
"""
# An instrumentor that wraps an SDK which records itself, where the wrapper gives no context (a
# streamed call): two scopes, one parent, begun at nearly the same time.
_BESIDE = """
SELECT other.id
FROM span AS mine CROSS JOIN span AS other
  ON other.trace_id = mine.trace_id AND other.parent_span_id = mine.parent_span_id
  AND other.sort_ns BETWEEN mine.sort_ns - :window_ns AND mine.sort_ns + :window_ns
WHERE mine.id = :span AND other.scope <> mine.scope AND other.role = mine.role
LIMIT 8
"""
_TWINS_BEGIN_WITHIN_NS = 1_000_000_000
# The same where the client below was late: it was imported first, or waited for a connection. What
# is as equal as `have_the_same_text` wants it, so that many calls at one time do not hide the one.
_SAME_WORDS = """
SELECT other.id
FROM span AS mine JOIN call AS my ON my.span = mine.id
CROSS JOIN span AS other
  ON other.trace_id = mine.trace_id AND other.parent_span_id = mine.parent_span_id
  AND other.sort_ns BETWEEN mine.sort_ns - :window_ns AND mine.sort_ns + :window_ns
CROSS JOIN call AS its ON its.span = other.id
WHERE mine.id = :span AND other.scope <> mine.scope AND other.role = mine.role
  AND (its.input_prefix, its.output_prefix) IS (my.input_prefix, my.output_prefix)
  AND (my.output_prefix IS NOT NULL
    OR (its.tokens_input, its.tokens_output) IS (my.tokens_input, my.tokens_output))
LIMIT 64
"""
_LATE_WITHIN_NS = 10_000_000_000
# Usage alone and the calls that it may be of; a call is looked for that began up to an hour before.
_USAGE_AND_CALLS = f"""
SELECT other.id
FROM span AS mine CROSS JOIN span AS other
  ON other.trace_id = mine.trace_id AND other.parent_span_id = mine.parent_span_id
  AND other.sort_ns
    BETWEEN mine.sort_ns - iif(mine.flags & {_ALONE}, :call_ns, 0)
    AND iif(mine.flags & {_ALONE}, mine.sort_ns, coalesce(mine.end_ns, mine.sort_ns) + :usage_ns)
WHERE mine.id = :span AND other.role = mine.role
  AND other.flags & {_ALONE} <> mine.flags & {_ALONE}
  AND (other.tokens_input, other.tokens_output) IS (mine.tokens_input, mine.tokens_output)
LIMIT 8
"""
_CALL_WITHIN_NS = 3_600_000_000_000
_USAGE_WITHIN_NS = 10_000_000_000
_FACTS = f"""
SELECT {CALL_FACTS} FROM span JOIN call ON call.span = span.id WHERE span.id = ? AND candidate = 1
"""


def call_facts(connection: apsw.Connection, span: int) -> CallFacts | None:
    """Return what is compared of a stored call; None for a span that is none or tells nothing."""
    row = connection.execute(_FACTS, (span,)).fetchone()
    return None if row is None else CallFacts(*row)


def calls_beside(connection: apsw.Connection, span: int) -> list[int]:
    """Return the spans of a call's role and another scope beside it: begun at about its time.

    Also of a longer time those that say what it says.
    """
    near = {"span": span, "window_ns": _TWINS_BEGIN_WITHIN_NS}
    late = {"span": span, "window_ns": _LATE_WITHIN_NS}
    rows = *connection.execute(_BESIDE, near), *connection.execute(_SAME_WORDS, late)
    return [row[0] for row in rows]


def usage_and_calls(connection: apsw.Connection, span: int) -> list[int]:
    """Return the calls beside usage alone with its numbers; of a call, what may be its usage."""
    bindings = {"span": span, "call_ns": _CALL_WITHIN_NS, "usage_ns": _USAGE_WITHIN_NS}
    return [row[0] for row in connection.execute(_USAGE_AND_CALLS, bindings)]
