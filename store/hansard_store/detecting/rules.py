"""The rules of the detector, and what a rule finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, get_args

from hansard_store.errors import BadQueryError

Level = Literal["action", "component", "architecture"]
SubjectKind = Literal["tool", "model", "step", "memory"]
EvidenceKind = Literal["step", "approval", "memory"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

HOUR_NS: Final = 3_600 * 1_000_000_000
_BARS: Final = 24


@dataclass(frozen=True, slots=True)
class Rule:
    """Something that goes wrong, and how often within what time makes it a pattern."""

    name: str
    level: Level
    threshold: int
    window_ns: int
    looks_for: str
    title: str  # of a finding, with {subject}
    description: str  # what it means, and what a person can do


REPEATED_ERRORS: Final = Rule(
    name="repeated_errors",
    level="action",
    threshold=5,
    window_ns=24 * HOUR_NS,
    looks_for="a tool, a model or a step fails with the same error",
    title="{subject} keeps failing in the same way",
    description="{subject} failed again and again, and but for ids, numbers, times, paths and "
    "quoted texts the error was the same each time. Trying again does not help: "
    "somebody has to look for the cause.",
)
EXPIRED_APPROVALS: Final = Rule(
    name="expired_approvals",
    level="component",
    threshold=5,
    window_ns=24 * HOUR_NS,
    looks_for="nobody decides in time on the calls of a tool",
    title="Nobody decides on {subject} in time",
    description="Calls of {subject} waited for a person until their time was over, so nothing "
    "ran. They may need other approvers, more time, a notice that reaches somebody, "
    "or a policy rule that lets the harmless ones pass.",
)
UNKNOWN_OUTCOMES: Final = Rule(
    name="unknown_outcomes",
    level="component",
    threshold=3,
    window_ns=24 * HOUR_NS,
    looks_for="nobody knows how approved calls of a tool ended",
    title="How calls of {subject} ended stays unknown",
    description="Approved calls of {subject} were begun, and their program ended before it told "
    "how they went. Settle each of them, and look why the program does not live to "
    "tell.",
)
REPEATED_CORRECTIONS: Final = Rule(
    name="repeated_corrections",
    level="architecture",
    threshold=3,
    window_ns=48 * HOUR_NS,
    looks_for="the same memory is corrected again and again",
    title="{subject} is corrected again and again",
    description="{subject} was replaced by another version several times. Its writers disagree, "
    "or each corrects what the other wrote: what makes it wrong is not dealt with.",
)
STALE_CONTRADICTIONS: Final = Rule(
    name="stale_contradictions",
    level="architecture",
    threshold=3,
    window_ns=7 * 24 * HOUR_NS,
    looks_for="contradictions in memory wait for a person longer than the window",
    title="Contradictions in memory pile up",
    description="Records that contradict what was trusted more wait for a person, and nobody "
    "reads them until one decides. Let each stand, or withdraw it.",
)
RULES: Final = (
    REPEATED_ERRORS,
    EXPIRED_APPROVALS,
    UNKNOWN_OUTCOMES,
    REPEATED_CORRECTIONS,
    STALE_CONTRADICTIONS,
)


class Occurrence(NamedTuple):
    """One time that it happened. Numbers of one rule rise as things are recorded."""

    number: int
    at_ns: int
    kind: EvidenceKind
    id: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A pattern: what repeats, and each time it did within the window, the oldest first."""

    rule: Rule
    subject_kind: SubjectKind
    subject: str
    signature: str  # recorded words may be in it: it tells patterns apart, and is not stored
    occurrences: Sequence[Occurrence]

    @property
    def title(self) -> str:
        return _begun(self.rule.title.format(subject=self._what))

    @property
    def description(self) -> str:
        return _begun(self.rule.description.format(subject=self._what))

    @property
    def _what(self) -> str:
        if self.subject_kind == "memory":
            return f"a {self.subject.replace('_', ' ')} in memory"
        return f"the {self.subject_kind} {self.subject}"

    @property
    def first_ns(self) -> int:
        return self.occurrences[0].at_ns

    @property
    def last_ns(self) -> int:
        return self.occurrences[-1].at_ns

    def activity(self, now_ns: int) -> tuple[int, ...]:
        """Return how often it happened in each 24th of the window, the oldest first."""
        since_ns = min(self.first_ns, now_ns - self.rule.window_ns)
        length_ns = max(now_ns - since_ns, 1)
        bars = [0] * _BARS
        for one in self.occurrences:
            bars[min(_BARS * (one.at_ns - since_ns) // length_ns, _BARS - 1)] += 1
        return tuple(bars)


def _begun(text: str) -> str:
    """Return a text as a sentence begins."""
    return text[:1].upper() + text[1:]


def in_order(found: Iterable[Occurrence]) -> list[Occurrence]:
    """Return occurrences by time; those of one moment as they were recorded."""
    return sorted(found, key=lambda one: (one.at_ns, one.number))


_LONGEST_NS: Final = 100 * 365 * 24 * 3_600 * 10**9  # what 64 bits can say, with room


def adjusted_rules(
    *, thresholds: Mapping[str, int] = {}, windows_ns: Mapping[str, int] = {}
) -> tuple[Rule, ...]:
    """Return the rules with other numbers, by the name of a rule; "" stands for all of them.

    Raises BadQueryError for a rule that there is not, and for numbers that find nothing.
    """
    known = {"", *(rule.name for rule in RULES)}
    for what, given in (("threshold", thresholds), ("window", windows_ns)):
        for name, number in given.items():
            if name not in known:
                names = ", ".join(sorted(known - {""}))
                raise BadQueryError(what, f"{name!r} is no rule; the rules are {names}")
            if number < 1:
                raise BadQueryError(what, f"a {what} is 1 or more")
            if what == "window" and number > _LONGEST_NS:
                raise BadQueryError(what, "a window is 100 years or less")
    return tuple(
        replace(
            rule,
            threshold=thresholds.get(rule.name, thresholds.get("", rule.threshold)),
            window_ns=windows_ns.get(rule.name, windows_ns.get("", rule.window_ns)),
        )
        for rule in RULES
    )
