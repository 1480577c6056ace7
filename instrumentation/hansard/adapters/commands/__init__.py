"""How hard commands are to undo: rules on shell text, SQL and tools, in a versioned data set.

`classify_command` answers as a classifier of the task `irreversible` does; `score_command` is the
same without the records of `hansard_compiler`, for a process that has no time to load them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hansard.adapters.commands.scoring import CommandScore, ScoringRules
    from hansard_compiler.classifier import ClassifierQuestion, ClassifierVerdict

VERSION = 1
NAME = f"commands/{VERSION}"

_loaded: list[ScoringRules] = []


def load_rules() -> ScoringRules:
    """Return the rules; read from the data set once a process, in about 2 ms."""
    if not _loaded:
        import json

        from hansard.adapters.commands.scoring import ScoringRules

        path = __file__.rpartition("__init__")[0] + f"commands-{VERSION}.json"
        with open(path, encoding="utf-8") as file:
            _loaded.append(ScoringRules(json.load(file)))
    return _loaded[0]


def score_command(text: str) -> CommandScore:
    """Return how hard a command is to undo, from 0 to 1, with the reason; raises for no text."""
    return load_rules().score(text)


def classify_command(text: str) -> ClassifierVerdict:
    """Return the verdict on a command: its label, how hard it is to undo, and the rule's reason.

    The score is the same whatever the label: 0.75 and more cannot be undone. The label is None
    where no rule knows any of the programs.
    """
    from hansard_compiler.classifier import IRREVERSIBLE, REVERSIBLE, ClassifierVerdict

    found = score_command(text)
    if not found.is_known:
        return ClassifierVerdict(None, found.value, found.reason)
    return ClassifierVerdict(
        IRREVERSIBLE if found.value >= 0.5 else REVERSIBLE, found.value, found.reason
    )


class CommandRules:
    """The offline classifier of the task `irreversible`."""

    name = NAME

    def __call__(self, question: ClassifierQuestion) -> ClassifierVerdict:
        """Return the verdict on a command; of other tasks it knows nothing."""
        from hansard_compiler.classifier import ClassifierVerdict

        if question.task != "irreversible":
            return ClassifierVerdict(None, 0.0, "this classifier knows commands only")
        return classify_command(question.text)
