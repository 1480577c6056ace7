"""The rules of the detector, and what a rule finds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, get_args

from hansard_store.errors import InvalidQueryError

Level = Literal["action", "component", "architecture"]
SubjectKind = Literal["tool", "model", "step", "memory", "component"]
EvidenceKind = Literal["step", "approval", "memory", "report", "figure"]
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
    limit: str = "{threshold} times or more within {window}"  # what makes it a pattern, in words
    unit: str = ""  # of the threshold; "" counts occurrences
    least: int = 0  # cases that a share needs before it is judged; 0: the rule judges no share

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
    description="{subject} was corrected several times, by a newer version or by the same "
    "correction once more. Its writers disagree, or each corrects what the other wrote: the cause "
    "is not dealt with.",
)
EVALUATION_BLIND_SPOT: Final = Rule(
    name="evaluation_blind_spot",
    level="component",
    threshold=20,
    window_ns=24 * HOUR_NS,
    looks_for="many errors and not one correction, though evaluation ran",
    title="Evaluation corrects nothing while much fails",
    description="Tools and models failed many times, evaluation ran, and not one claim in memory "
    "was corrected. Either nothing claims anything about what failed, or evaluation does not see "
    "the claims: compare one of these errors with what memory says of it.",
    limit="{threshold} errors or more without a correction within {window}",
    unit=" errors",
)
IDLE_MAINTENANCE: Final = Rule(
    name="idle_maintenance",
    level="component",
    threshold=10,
    window_ns=7 * 24 * HOUR_NS,
    looks_for="maintenance finds no contradiction in run after run, though it compares records",
    title="Maintenance finds no contradictions",
    description="Maintenance compared records of memory in every one of these runs and found no "
    "contradiction. Memory may be free of them; else the classifier or the threshold of the "
    "comparison hides them: try `hansard maintain` on two records that contradict each other.",
    limit="{threshold} runs or more within {window}, none with a contradiction",
    unit=" runs",
)
FREQUENT_WARNINGS: Final = Rule(
    name="frequent_warnings",
    level="component",
    threshold=30,
    least=20,
    window_ns=24 * HOUR_NS,
    looks_for="a large share of checked commands draws a warning: the threshold is too sensitive",
    title="Escalation warns of too many commands",
    description="Agents learn to pass over warnings that come all the time. Raise the threshold "
    "of the escalation, or correct the rule that matches what is harmless.",
    limit="{threshold} % or more of at least {least} checked commands within {window}",
    unit=" %",
)
RARE_WARNINGS: Final = Rule(
    name="rare_warnings",
    level="component",
    threshold=1,
    least=500,
    window_ns=7 * 24 * HOUR_NS,
    looks_for="almost no checked command draws a warning: risks may pass undetected",
    title="Escalation warns of almost no command",
    description="Of many commands fewer than the threshold drew a warning. Either agents do "
    "nothing dangerous, or the escalation does not detect it: try it on a command that deletes.",
    limit="less than {threshold} % of at least {least} checked commands within {window}",
    unit=" %",
)
UNREAD_REPORTS: Final = Rule(
    name="unread_reports",
    level="component",
    threshold=10,
    window_ns=30 * 24 * HOUR_NS,
    looks_for="status reports that nobody acknowledges",
    title="Status reports accumulate unread",
    description="Reports are written and nobody acknowledges them. Read the newest, name more "
    "recipients with the setting `recipients`, or have them written less often.",
    limit="{threshold} reports or more of the last {window} that nobody acknowledged",
    unit=" reports",
)
MEMORY_OUTGROWS_MAINTENANCE: Final = Rule(
    name="memory_outgrows_maintenance",
    level="architecture",
    threshold=500,
    window_ns=7 * 24 * HOUR_NS,
    looks_for="memory grows faster than maintenance can process",
    title="Memory grows faster than maintenance can process",
    description="More records were written than maintenance compared, so contradictions stay "
    "undetected. Run it more often or raise its bounds, or let fewer things write to memory.",
    limit="{threshold} records or more behind within {window}",
    unit=" records",
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
# Opened by maintenance of memory, one for each pair of records, and not looked for by a scan.
DOUBTFUL_SUPERSESSION: Final = Rule(
    name="doubtful_supersession",
    level="component",
    threshold=1,
    window_ns=24 * HOUR_NS,
    looks_for="a record may contradict an older one, which is doubtful or much more trusted",
    title="{subject} may contradict an older one",
    description="Two records stand that may contradict each other. Approve, and the newer one "
    "supersedes the older; dismiss, and both stand, and are not compared again. Either can be "
    "taken back.",
)
DOUBTFUL_CORRECTION: Final = Rule(
    name="doubtful_correction",
    level="component",
    threshold=1,
    window_ns=24 * HOUR_NS,
    looks_for="a correction may be about a record, or about another that is as near",
    title="{subject} may be about an older record",
    description="A correction names no record, and one that stands is near it in meaning, but not "
    "near enough, or not nearer than others. Approve, and the correction supersedes that record; "
    "dismiss, and both stand.",
)
# Tasks of these are done by approving them.
REVIEW_RULES: Final = (DOUBTFUL_SUPERSESSION, DOUBTFUL_CORRECTION)
RULES: Final = (
    REPEATED_ERRORS,
    EXPIRED_APPROVALS,
    UNKNOWN_OUTCOMES,
    EVALUATION_BLIND_SPOT,
    IDLE_MAINTENANCE,
    FREQUENT_WARNINGS,
    RARE_WARNINGS,
    UNREAD_REPORTS,
    REPEATED_CORRECTIONS,
    MEMORY_OUTGROWS_MAINTENANCE,
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
) -> tuple[Rule, ...]:
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


_BY_NAME: Final = {rule.name: rule for rule in (*RULES, *REVIEW_RULES)}


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
