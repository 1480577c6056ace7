"""How hard a call would be to undo: the rules first, then a classifier that the settings name."""

from __future__ import annotations

from hansard.hooks.event import command_in
from hansard.hooks.settings import OFF, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hansard.adapters.commands.rules import Score
    from hansard.hooks.event import Event
    from hansard.hooks.settings import HookSettings

_UNSURE = 0.35  # so far below the threshold, a model may know better than the rules


class Evaluation:
    """A call's score, 0 to 1, with its reason and what gave it; it holds no recorded content."""

    __slots__ = ("classifier", "is_warned", "reason", "score", "threshold")

    def __init__(self, score: float, reason: str, classifier: str, threshold: float) -> None:
        self.score = score
        self.reason = reason
        self.classifier = classifier
        self.threshold = threshold
        self.is_warned = score >= threshold


def evaluate(event: Event, settings: HookSettings) -> Evaluation | None:
    """Return the evaluation of a call; None where the evaluator is off or there is no command."""
    if settings.classifier == OFF or not event.tool:
        return None
    from hansard.adapters import commands

    rules = commands.load_rules()
    found = command_in(event, knows=rules.knows)
    scores: list[Score] = []
    if found is not None:
        scores.append(rules.score_sql(found.text) if found.is_sql else rules.score(found.text))
    by_name = rules.score_tool(event.tool)
    if by_name is not None:
        scores.append(by_name)
    if not scores:
        return None
    best = max(scores, key=lambda one: one.value)
    evaluation = Evaluation(best.value, best.reason, commands.NAME, settings.threshold)
    if settings.classifier == RULES or found is None or evaluation.is_warned:
        return evaluation
    if best.is_known and best.value < settings.threshold - _UNSURE:
        return evaluation
    return _classified(found.text, settings) or evaluation


def _classified(text: str, settings: HookSettings) -> Evaluation | None:
    """Ask the classifier that the settings name; None where it cannot say anything."""
    try:
        from hansard_compiler.classifier import IRREVERSIBLE, REVERSIBLE, Question

        classifier = _load(settings.classifier)
        question = Question("irreversible", _clean(text, settings), (IRREVERSIBLE, REVERSIBLE))
        verdict = classifier(question)
        if verdict.label is None:
            return None
        score = float(verdict.score)
        if verdict.label != IRREVERSIBLE:
            score = min(score, 1 - score)  # how sure it is that it can be undone
        return Evaluation(score, verdict.reason, classifier.name, settings.threshold)
    except Exception:  # whatever a classifier does, the rules' answer stands
        return None


def _clean(text: str, settings: HookSettings) -> str:
    """Return a command without its secrets: a classifier may be remote."""
    from hansard.hooks.redaction import redactor_of

    return redactor_of(settings).redact_text(text).text


def _load(name: str) -> Any:
    """Return the classifier that `package.module:attribute` names, or makes when it is called."""
    from importlib import import_module

    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute)
    return found() if isinstance(found, type) or not hasattr(found, "name") else found
