"""`hansard classify`: one text, one verdict, by the classifier that the settings name."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Final

import click

from hansard_collector.judges.choices import TASKS
from hansard_collector.judges.errors import JudgeTimeout
from hansard_collector.judges.recording import CallTrace
from hansard_compiler.calls import Json
from hansard_compiler.classifier import (
    AGREES,
    CONTRADICTS,
    IRREVERSIBLE,
    REVERSIBLE,
    UNRELATED,
    Classifier,
    ClassifierQuestion,
    ClassifierVerdict,
    Task,
)
from hansard_compiler.errors import HansardError
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import Config, judges_of
from hansard_web.cli.base import (
    Command,
    Misused,
    json_option,
    print_json,
    read_config,
    setting_options,
)
from hansard_web.ui import format as fmt

_SERVICE: Final = "hansard.classify"
_MOST_BYTES: Final = 1 << 20
_LABELS: Final[dict[Task, Sequence[str]]] = {
    "contradiction": (CONTRADICTS, AGREES, UNRELATED),
    "irreversible": (IRREVERSIBLE, REVERSIBLE),
}


@click.command(cls=Command)
@setting_options("data", "config", "retention", "classifier", "model_server", "script")
@click.option("--task", type=click.Choice(TASKS), required=True, help="What is to be decided.")
@click.option("--label", "labels", multiple=True,
              help="A possible answer; several. A topic needs them.")  # fmt: skip
@click.option("--other", default="", help="Of a contradiction: the newer statement.")
@click.option("--subject", default="", help="Of a contradiction: what both are about.")
@click.option("--timeout", type=click.FloatRange(0, 600, min_open=True), default=60.0,
              show_default=True, help="Seconds after which it fails.")  # fmt: skip
@json_option
def classify(
    *,
    task: Task,
    labels: tuple[str, ...],
    other: str,
    subject: str,
    timeout: float,
    as_json: bool,
    **arguments: Any,
) -> None:
    """Classify a text with the classifier of the settings.

    It is read from stdin, and classified as scan, maintenance and hooks do. Secrets are cut out of
    it first. A call of a model is recorded as a step, with tokens and cost. With --json an error is
    printed as JSON too, and the command ends with 1.

    Example: hansard classify --task irreversible < command.sh
    """
    allowed = labels or _LABELS.get(task, ())
    if not allowed:
        raise Misused(f"the task {task} needs --label")
    question = ClassifierQuestion(task, _text_on_stdin(), allowed, other, subject)
    try:
        result = _classified(read_config(**arguments), question, timeout)
    except HansardError as error:
        if not as_json:
            raise
        print_json({"error": {"code": error.code, "message": str(error)}})
        sys.exit(1)
    if as_json:
        print_json(result)
    else:
        label = result["label"] or "none of the labels"
        line = f"{label} ({result['score']:.2f}, {result['classifier']}): {result['reason']}"
        click.echo(fmt.printable(line))


def _text_on_stdin() -> str:
    data = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise Misused(f"the text is longer than {fmt.file_size(_MOST_BYTES)}")
    return data.decode("utf-8", "replace")


def _classified(config: Config, question: ClassifierQuestion, timeout_s: float) -> Json:
    folder = DataFolder(config.data)
    folder.create()  # a hook may be the first to use it
    trace = CallTrace(folder, RetentionMode(config.retention), _SERVICE)
    with (
        closing(judges_of(config)) as judges,
        trace.span(f"classify {question.task}", always=False),
        _ending_after(timeout_s),
    ):
        classifier = judges.recorded_by(trace.recorder).for_task(question.task)
        verdict = _verdict(classifier, _without_secrets(question, Redactor(folder.key())))
    usage = judges.usage
    return {
        "label": verdict.label,
        "score": verdict.score,
        "reason": verdict.reason,
        "classifier": classifier.name,
        "step_id": trace.step_id if usage.calls else "",
        "usage": usage.json(),
    }


def _without_secrets(question: ClassifierQuestion, redactor: Redactor) -> ClassifierQuestion:
    text, other = (redactor.redact_text(one).text for one in (question.text, question.other))
    return ClassifierQuestion(question.task, text, question.labels, other, question.subject)


class _TimeIsOver(BaseException):
    """Clients of providers try again after any Exception."""


def _verdict(classifier: Classifier, question: ClassifierQuestion) -> ClassifierVerdict:
    try:
        return classifier(question)
    except _TimeIsOver:
        raise JudgeTimeout(f"the classifier {classifier.name!r} gave no answer in time") from None


@contextmanager
def _ending_after(seconds: float) -> Iterator[None]:
    """Interrupt what runs in the block after some time; where there are no alarms, never."""

    def stop(*_: object) -> None:
        raise _TimeIsOver

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
