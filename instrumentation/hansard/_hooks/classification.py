"""A classifier's verdict on a command, where the rules are unsure.

A classifier of the setting `hook_classifier` is a Python object and is called in this process. A
model of the setting `classifier` is called by `hansard classify` in a process of its own: it has
the adapters of providers, and records the call as a step, even where this process ends before it.
"""

from __future__ import annotations

from hansard._hooks.risk_score import HookEvaluation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hansard._hooks.settings import HookSettings


class Unavailable(Exception):
    """The classifier gave no verdict; the message has the reason, without recorded content."""


def classify(text: str, settings: HookSettings) -> HookEvaluation:
    """Return the verdict of the classifier that the settings name. Raises what it raises."""
    return _by_model(text, settings) if settings.model else _by_object(text, settings)


def _by_object(text: str, settings: HookSettings) -> HookEvaluation:
    from hansard._hooks.record import redactor_of
    from hansard_compiler.classifier import IRREVERSIBLE, REVERSIBLE, ClassifierQuestion

    classifier = _load(settings.classifier)
    clean = redactor_of(settings).redact_text(text).text  # a classifier may be remote
    verdict = classifier(ClassifierQuestion("irreversible", clean, (IRREVERSIBLE, REVERSIBLE)))
    return _evaluation(settings, verdict.label, verdict.score, verdict.reason, classifier.name)


def _load(name: str) -> Any:
    """Return the classifier that `package.module:attribute` names, or makes when it is called."""
    from importlib import import_module

    module, _, attribute = name.partition(":")
    found = getattr(import_module(module), attribute)
    return found() if isinstance(found, type) or not hasattr(found, "name") else found


def _by_model(text: str, settings: HookSettings) -> HookEvaluation:
    import json
    import subprocess
    import sys

    seconds = settings.classifier_timeout_ms / 1000
    command = (
        sys.executable, "-P", "-c", "from hansard._cli.main import main; main()",
        "classify", "--task", "irreversible", "--json", "--timeout", str(seconds),
        "--data", settings.data,
    )  # fmt: skip
    process = subprocess.Popen(  # in a session of its own: it outlives this one to record its call
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        printed, _ = process.communicate(text.encode("utf-8", "replace"), timeout=seconds)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"no answer within {seconds:g} s") from None
    body = json.loads(printed) if printed.strip() else {}
    if "error" in body or process.returncode:
        raise Unavailable(str(body.get("error", {}).get("code", "it cannot be started")))
    evaluation = _evaluation(
        settings, body["label"], body["score"], body["reason"], body["classifier"]
    )
    evaluation.step = body["step_id"]
    return evaluation


def _evaluation(
    settings: HookSettings, label: str | None, score: float, reason: str, classifier: str
) -> HookEvaluation:
    if label is None:
        raise Unavailable("it cannot tell")
    score = float(score)
    if label != "irreversible":
        score = min(score, 1 - score)  # how sure it is that it can be undone
    return HookEvaluation(score, reason, classifier, settings.threshold)
