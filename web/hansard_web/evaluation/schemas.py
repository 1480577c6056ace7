"""What the route of verdicts answers."""

from __future__ import annotations

from hansard_collector.evaluation.words import ClaimEvaluation
from hansard_store.bodies import Page


class EvaluationList(Page):
    """Verdicts, the last found first."""

    items: list[ClaimEvaluation]
