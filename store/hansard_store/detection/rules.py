"""The rules of the detector, and what a rule finds."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Final, Literal, NamedTuple, get_args

from hansard_store.errors import InvalidQueryError

Level = Literal["action", "component", "architecture"]
SubjectKind = Literal["tool", "model", "step", "memory", "component"]
EvidenceKind = Literal["step", "approval", "memory", "report", "figure"]
LEVELS: Final[tuple[Level, ...]] = get_args(Level)

HOUR_NS: Final = 3_600 * 1_000_000_000
_BARS: Final = 24


@dataclass(frozen=True, slots=True)
class DetectionRule:
    """Something that goes wrong, and how often within what time makes it a pattern."""

    name: str
    level: Level
    threshold: int
    window_ns: int
    looks_for: str
    title: str  # of a finding, with {subject}
    description: str  # what it means, and what a person can do
    limit: str = "{threshold} times or more within {window}"  # what makes it a pattern, in words
    unit: str = ""  # of the threshold; "" counts occurrences
    least: int = 0  # cases that a share needs before it is judged; 0: the rule judges no share
    is_review: bool = False  # opened by maintenance of memory, not by a scan

    @property
    def numbers(self) -> str:
        """The numbers of a rule in few words: `5 in 24 hours`, `30 % of 20 or more in 24 hours`."""
        of_least = f" of {self.least:,} or more" if self.least else ""
        return f"{self.threshold:,}{self.unit}{of_least} in {span_of_time(self.window_ns)}"

    @property
    def applied(self) -> str:
        """What made it a pattern, with the numbers in force."""
        return self.limit.format(
            threshold=f"{self.threshold:,}",
            least=f"{self.least:,}",
            window=span_of_time(self.window_ns),
        )


def span_of_time(ns: int) -> str:
    """Return a window in words: `24 hours`, `7 days`."""
    hours, rest = divmod(ns, HOUR_NS)
    if rest:
        return _plural(max(ns // (HOUR_NS // 60), 1), "minute")
    if hours % 24 == 0 and hours > 48:
        return _plural(hours // 24, "day")
    return _plural(hours, "hour")


def _plural(number: int, one: str) -> str:
    return f"{number:,} {one if number == 1 else one + 's'}"


def _read_rules() -> Iterator[DetectionRule]:
    text = files(__package__).joinpath("rules.toml").read_text("utf-8")
    for name, fields in tomllib.loads(text).items():
        yield DetectionRule(name, window_ns=fields.pop("window_hours") * HOUR_NS, **fields)


_BY_NAME: Final[Mapping[str, DetectionRule]] = {rule.name: rule for rule in _read_rules()}
RULES: Final = tuple(rule for rule in _BY_NAME.values() if not rule.is_review)
# Opened by maintenance of memory, one for each pair of records, and done by approving them.
REVIEW_RULES: Final = tuple(rule for rule in _BY_NAME.values() if rule.is_review)


def rule_named(name: str) -> DetectionRule:
    """Return a rule; raises KeyError for a name that is none."""
    return _BY_NAME[name]


class Occurrence(NamedTuple):
    """One time that it happened. Numbers of one rule rise as things are recorded."""

    number: int
    at_ns: int
    kind: EvidenceKind
    id: str


@dataclass(frozen=True, slots=True)
class DetectionFinding:
    """A pattern: what repeats, and each time it did within the window, the oldest first."""

    rule: DetectionRule
    subject_kind: SubjectKind
    subject: str
    signature: str  # recorded words may be in it: it tells patterns apart, and is not stored
    occurrences: Sequence[Occurrence]
    opens_at: int | None = None  # new occurrences that open a task; None: the rule's threshold

    @property
    def title(self) -> str:
        return _begun(self.rule.title.format(subject=self._what))

    @property
    def description(self) -> str:
        """What it means, what to do, and the rule with the numbers in force."""
        text = _begun(self.rule.description.format(subject=self._what))
        return f"{text} Found by: {self.rule.applied}."

    @property
    def _what(self) -> str:
        return _what(self.subject_kind, self.subject)

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


def _what(subject_kind: str, subject: str) -> str:
    if subject_kind == "memory":
        return f"a {subject.replace('_', ' ')} in memory"
    return f"the {subject_kind} {subject}"


def _begun(text: str) -> str:
    """Return a text as a sentence begins."""
    return text[:1].upper() + text[1:]


def in_order(found: Iterable[Occurrence]) -> list[Occurrence]:
    """Return occurrences by time; those of one moment as they were recorded."""
    return sorted(found, key=lambda one: (one.at_ns, one.number))


_LONGEST_NS: Final = 100 * 365 * 24 * 3_600 * 10**9  # what 64 bits can say, with room


def adjusted_rules(
    *,
    thresholds: Mapping[str, int] = {},
    windows_ns: Mapping[str, int] = {},
    leasts: Mapping[str, int] = {},
) -> tuple[DetectionRule, ...]:
    """Return the rules with other numbers, by the name of a rule; "" stands for all of them.

    Raises InvalidQueryError for a rule that there is not, and for numbers that find nothing.
    """
    known = {"", *(rule.name for rule in RULES)}
    for what, changes in (("threshold", thresholds), ("window", windows_ns), ("least", leasts)):
        for name, number in changes.items():
            if name not in known:
                names = ", ".join(sorted(known - {""}))
                raise InvalidQueryError(what, f"{name!r} is no rule; the rules are {names}")
            if number < 1:
                raise InvalidQueryError(what, f"a {what} is 1 or more")
            if what == "window" and number > _LONGEST_NS:
                raise InvalidQueryError(what, "a window is 100 years or less")
    return tuple(
        replace(
            rule,
            threshold=thresholds.get(rule.name, thresholds.get("", rule.threshold)),
            window_ns=windows_ns.get(rule.name, windows_ns.get("", rule.window_ns)),
            least=rule.least and leasts.get(rule.name, leasts.get("", rule.least)),
        )
        for rule in RULES
    )


def title_of(name: str, subject_kind: str, subject: str) -> str | None:
    """Return the title of a rule's finding, with the subject as it may be shown; None: no rule."""
    rule = _BY_NAME.get(name)
    return None if rule is None else _begun(rule.title.format(subject=_what(subject_kind, subject)))


def rule_text(name: str, *, threshold: int, window_ns: int) -> str:
    """Return what a rule looks for, with the numbers that were in force for a task."""
    rule = _BY_NAME.get(name)
    if rule is None:  # of another version
        return f"{name.replace('_', ' ')}: {threshold:,} or more within {span_of_time(window_ns)}"
    in_force = replace(rule, threshold=threshold, window_ns=window_ns)
    return f"{rule.looks_for}: {in_force.applied}"
