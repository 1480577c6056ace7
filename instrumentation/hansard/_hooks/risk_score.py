"""How hard a call would be to undo: the rules first, then a classifier that the settings name."""

from __future__ import annotations

from hansard._hooks.deadline import DeadlineExceeded, end_after
from hansard._hooks.event import command_in
from hansard._hooks.settings import OFF, RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hansard._hooks.event import HookEvent
    from hansard._hooks.settings import HookSettings
    from hansard.adapters.commands.scoring import CommandScore

_UNSURE = 0.35  # so far below the threshold, a model may know better than the rules


class HookEvaluation:
    """A call's score, 0 to 1, with its reason and what gave it, without recorded content."""

    __slots__ = ("classifier", "fallback", "is_warned", "reason", "score", "step", "threshold")

    def __init__(self, score: float, reason: str, classifier: str, threshold: float) -> None:
        self.score = score
        self.reason = reason
        self.classifier = classifier
        self.threshold = threshold
        self.is_warned = score >= threshold
        self.fallback = ""  # why a classifier that was to be called gave no verdict
        self.step = ""  # the recorded call of a model


def evaluate(event: HookEvent, settings: HookSettings) -> HookEvaluation | None:
    """Return the evaluation of a call; None where the evaluator is off or there is no command."""
    if settings.classifier == OFF or not event.tool:
        return None
    from hansard.adapters import commands

    rules = commands.load_rules()
    found = command_in(event, knows=rules.knows)
    scores: list[CommandScore] = []
    if found is not None:
        scores.append(rules.score_sql(found.text) if found.is_sql else rules.score(found.text))
    by_name = rules.score_tool(event.tool)
    if by_name is not None:
        scores.append(by_name)
    if not scores:
        return None
    best = max(scores, key=lambda one: one.value)
    evaluation = HookEvaluation(best.value, best.reason, commands.NAME, settings.threshold)
    if settings.classifier == RULES or found is None or evaluation.is_warned:
        return evaluation
    if best.is_known and best.value < settings.threshold - _UNSURE:
        return evaluation
    return _classified(found.text, settings, evaluation)


def _classified(text: str, settings: HookSettings, by_rules: HookEvaluation) -> HookEvaluation:
    """Return the classifier's evaluation; that of the rules, with the reason, where it has none."""
    from hansard._hooks.classification import Unavailable, classify

    named = settings.model or settings.classifier
    end_after(settings.classifier_timeout_ms / 1000)
    try:
        return classify(text, settings)
    except DeadlineExceeded:
        why = f"no answer within {settings.classifier_timeout_ms / 1000:g} s"
    except Unavailable as error:
        why = str(error)
    except Exception as error:  # whatever a classifier does, the rules' answer stands
        why = type(error).__name__
    finally:
        end_after(settings.timeout_ms / 1000)
    by_rules.fallback = f"{named}: {why}"
    return by_rules
