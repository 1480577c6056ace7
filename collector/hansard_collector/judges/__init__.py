"""The classifier, the embedder and the extractor of topics, shared by all features.

Each has an offline default that is deterministic, and may be a model of a provider; each call of a
model is a recorded step. A missing one is None, with the reason beside it: nothing is guessed.
"""

from hansard_collector.judges.choices import Choice, ClassifierChoice, JudgeSettings
from hansard_collector.judges.errors import InvalidJudgement, JudgeError, JudgeMissing
from hansard_collector.judges.judges import Judges

__all__ = [
    "Choice",
    "ClassifierChoice",
    "InvalidJudgement",
    "JudgeError",
    "JudgeMissing",
    "JudgeSettings",
    "Judges",
    "judges_from",
]


def judges_from(settings: JudgeSettings) -> Judges:
    """Return the judges that settings name; see `factory.judges_from`."""
    from hansard_collector.judges import factory  # with the adapters of providers

    return factory.judges_from(settings)
