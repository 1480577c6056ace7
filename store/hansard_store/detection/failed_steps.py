"""Errors that repeat: steps of one tool, model or name that fail with the same signature."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import apsw

from hansard_store.content.texts import read_text
from hansard_store.detection.rules import (
    DetectionFinding,
    DetectionRule,
    Occurrence,
    SubjectKind,
    in_order,
)
from hansard_store.steps.flags import SpanFlag
from hansard_store.steps.shared_span_ids import shared_side

# What reports of one error have in common: their words, without what varies from one to the next.
#
# `open /tmp/a1.txt: no such file (request 4f2e9a01)` and `open /srv/b: no such file (request 77)`
# are the same error. Ids, numbers, times, paths, addresses and quoted texts give way to what they
# are.

MOST_CHARS: Final = 2_000  # of a message: what tells errors apart stands at its beginning

# Tried from the left in this order, so that what holds other parts comes before them. Quotes may
# make it quadratic in the length of a message, which is bounded; everything else is linear.
_VARIABLE: Final = re.compile(
    r"""
      (?P<plain>[^\W\d_]+(?=\s|\Z))             # most words, at once
    | (?P<hidden>‹[a-z]+:[^‹›\s]*›)                # a marker of redaction
    | (?P<text>"(?:[^"\\]|\\.)*" | `[^`]*` | “[^”]*” | «[^»]*»
      | (?<!\w)'(?:[^'\\]|\\.)*'(?!\w))            # within a word it is an apostrophe
    | (?P<mail>(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)
    | (?P<url>(?<!\w)[A-Za-z][A-Za-z0-9+.-]*://[^\s<>"'`]+)
    | (?P<time>(?<![\w.:-])\d{4}-\d\d-\d\d
        (?:[T\ ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?)?(?:Z|\ ?[+-]\d\d:?\d\d)?(?![\w:-])
      | (?<![\w.:-])\d\d?:\d\d:\d\d(?:[.,]\d+)?(?![\w:-]))
    | (?P<address>(?<![\w:.])(?=[a-fA-F:]{0,40}\d)               # of hardware, of IPv6
        (?:[0-9a-fA-F]{1,4}:|:){2,7}:?[0-9a-fA-F]{0,4}(?![\w:.]))
    | (?P<path>(?<!\w)[A-Za-z]:\\[^\s:;,"'`<>|()]*               # of Windows
      | (?<![\w./~-])(?:~|\.\.?)?/[^\s:;,"'`<>|()\[\]]+          # from the root, or from here
      | (?<![\w./-])[\w.-]+(?:/[\w.-]+)*/[\w-]+\.\w[\w.]*        # with the name of a file
      | (?<![\w./-])[\w.-]+(?:/[\w.-]+){2,})
    | (?P<number>(?<![\w.])\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?(?![\w-]))
    | (?P<word>[^\W_](?:[\w-]*[^\W_])?)
    """,
    re.VERBOSE,
)
_NUMBER: Final = "<#>"  # the same for numbers and ids: an id in hex may have no letter in it
_NUMBERS: Final = re.compile(rf"(?:(?<![\w>+-])[+-]+)?{_NUMBER}(?:[.,]{_NUMBER})*")
_DIGITS: Final = re.compile(r"\d+")
_FEWEST_LETTERS: Final = 8  # from which a word is an id though no digit is among its hex digits
_ID: Final = re.compile(
    r"[0-9a-fA-F]{8,}|0[xX][0-9a-fA-F]+|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
)
# A part of a word in which the digits count or name something: v2, 5ms, 404.
_PLAIN_PART: Final = re.compile(r"[^\W\d_]*\d*|\d+[^\W\d_]{1,3}")
_MAY_VARY: Final = re.compile(r"[\d\"'`“«‹/\\]")
_BREAKS: Final = re.compile(r"[-_]+")


def signature_of(message: str) -> str:
    """Return what a message shares with every other report of the same error; "" for none.

    Asked of its own answer it answers the same. It keeps what it cannot know to vary: an id
    without a digit is a word.
    """
    text, before = _without_variables(message), message
    # What stood around a part may be seen to vary once that part is gone.
    while text != before and _MAY_VARY.search(text):
        before, text = text, _without_variables(text)
    return text


def _without_variables(text: str) -> str:
    plain = " ".join(text[:MOST_CHARS].split())
    return _NUMBERS.sub(_NUMBER, _VARIABLE.sub(_placeholder, plain))[:MOST_CHARS].strip()


def _placeholder(found: re.Match[str]) -> str:
    kind = found.lastgroup
    if kind in ("plain", "word"):
        return _word(found[0])
    return _NUMBER if kind in ("number", "address") else f"<{kind}>"


def _word(word: str) -> str:
    """Return a word without its numbers, and nothing of one that is made up, as ids are."""
    has_digits = _DIGITS.search(word) is not None
    if (has_digits or len(word) >= _FEWEST_LETTERS) and _ID.fullmatch(word):
        return _NUMBER
    if not has_digits:
        return word
    parts = _BREAKS.split(word)
    # `order-7` and `v2` are words with a number; `call_a1b2` and `req-4fa` are ids.
    is_plain = all(map(_PLAIN_PART.fullmatch, parts)) and (
        len(parts) == 1 or all(part.isalpha() or part.isdecimal() for part in parts)
    )
    return _DIGITS.sub(_NUMBER, word) if is_plain else _NUMBER


MOST_ERRORS: Final = 200_000  # of a window; of more, the newest
_NAME_CHARS: Final = 200
_HIDDEN: Final = SpanFlag.DUPLICATE | SpanFlag.PENDING | SpanFlag.FOLDED
_TOOLS: Final = ("tool", "mcp")
_MODELS: Final = ("llm", "embedding")
_CALLS: Final = str((*_TOOLS, *_MODELS))
# An error that goes up through its callers fails all of them with the same words. It counts once:
# for the innermost tool or model call, else for the innermost step.
_FAILED: Final = f"""
SELECT span.id, span.sort_ns, span.trace_id, span.span_id, {shared_side("span")}, span.run,
  span.role, span.tool_name, span.model, coalesce(span.label, span.name), span.summary
FROM span INDEXED BY span_failed
WHERE span.flags & {SpanFlag.ERROR} AND span.sort_ns > :since AND span.sort_ns <= :now
  AND span.flags & {_HIDDEN} = 0
  AND NOT EXISTS (
    SELECT 1 FROM span AS child INDEXED BY span_parent
    WHERE child.trace_id = span.trace_id AND child.parent_span_id = span.span_id
      AND child.flags & {SpanFlag.ERROR | _HIDDEN} = {SpanFlag.ERROR}
      AND child.summary IS span.summary
      AND (child.role IN {_CALLS} OR span.role NOT IN {_CALLS}))
  AND (span.role IN {_CALLS} OR span.parent_span_id IS NULL OR NOT EXISTS (
    SELECT 1 FROM span AS parent INDEXED BY span_identity
    WHERE parent.trace_id = span.trace_id AND parent.span_id = span.parent_span_id
      AND parent.flags & {SpanFlag.ERROR | _HIDDEN} = {SpanFlag.ERROR}
      AND parent.summary IS span.summary AND parent.role IN {_CALLS}))
ORDER BY span.sort_ns DESC LIMIT {MOST_ERRORS}
"""
_ERRORS_OF_RUN: Final = """
SELECT text.body FROM text_use INDEXED BY text_use_run CROSS JOIN text ON text.id = text_use.text
WHERE text_use.run = ? AND text.field = 'error' ORDER BY text.id
"""
_CUT: Final = "…"  # ends a summary that is not the whole message


class _Failure(NamedTuple):
    """A step that failed, and what it is counted for."""

    kind: SubjectKind
    subject: str
    run: int
    summary: str  # the beginning of what it says; "" nothing
    occurrence: Occurrence


def iter_failures(connection: apsw.Connection, *, since_ns: int, now_ns: int) -> Iterator[_Failure]:
    """Yield what failed since a time, the newest first; an error of several steps counts once."""
    rows: Any = connection.execute(_FAILED, {"since": since_ns, "now": now_ns})
    for number, at_ns, trace_id, span_id, server, run, role, tool, model, name, summary in rows:
        kind, subject = _subject(role, tool, model, name)
        step_id = f"{trace_id.hex()}-{span_id.hex()}{'.server' if server else ''}"
        found = Occurrence(number, at_ns, "step", step_id)
        yield _Failure(kind, subject, run, summary or "", found)


class Kind(NamedTuple):
    """One kind of error: who fails, and what its messages share."""

    subject_kind: SubjectKind
    subject: str
    signature: str


def errors_by_kind(
    connection: apsw.Connection, *, since_ns: int, now_ns: int
) -> dict[Kind, list[Occurrence]]:
    """Return every kind of error since a time, each with its occurrences, the newest first."""
    found: dict[Kind, list[Occurrence]] = defaultdict(list)
    messages = _Messages(connection)
    for one in iter_failures(connection, since_ns=since_ns, now_ns=now_ns):
        signature = messages.signature(one.run, one.summary)
        found[Kind(one.kind, one.subject, signature)].append(one.occurrence)
    return found


def repeated_errors(
    connection: apsw.Connection, rule: DetectionRule, *, now_ns: int
) -> Iterator[DetectionFinding]:
    """Yield what failed in the same way as often as the rule says, within its window."""
    found = errors_by_kind(connection, since_ns=now_ns - rule.window_ns, now_ns=now_ns)
    for kind, occurrences in found.items():
        if len(occurrences) >= rule.threshold:
            yield DetectionFinding(rule, *kind, in_order(occurrences))


def _subject(role: str, tool: str | None, model: str | None, name: str) -> tuple[SubjectKind, str]:
    if role in _TOOLS and tool:
        return "tool", tool
    if role in _MODELS:
        return "model", (model or name)[:_NAME_CHARS]
    return "step", name[:_NAME_CHARS]


class _Messages:
    """Finds error messages, whole: a step's summary has the beginning of it."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._signatures: dict[str, str] = {}
        self._of_runs: dict[int, list[str]] = {}

    def signature(self, run: int, summary: str) -> str:
        line = self._whole(run, summary) if summary.endswith(_CUT) else summary
        known = self._signatures.get(line)
        if known is None:
            known = self._signatures[line] = signature_of(line)
        return known

    def _whole(self, run: int, summary: str) -> str:
        """Return the message that begins so in its run; the summary where none is stored."""
        if run not in self._of_runs:
            rows: Any = self._connection.execute(_ERRORS_OF_RUN, (run,))
            texts = (read_text(self._connection, body) for (body,) in rows)
            self._of_runs[run] = sorted(" ".join(text.split())[:MOST_CHARS] for text in texts)
        lines, beginning = self._of_runs[run], summary.removesuffix(_CUT)
        # In order, since a run may fail ten thousand times, each time in other words.
        found = lines[at] if (at := bisect_left(lines, beginning)) < len(lines) else ""
        return found if found.startswith(beginning) else summary
