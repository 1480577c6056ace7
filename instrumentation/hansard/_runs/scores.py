"""Scores that a program gives its own steps, as OpenTelemetry tells evaluations."""

from __future__ import annotations

from opentelemetry.trace import get_current_span

from hansard import semconv
from hansard._runtime import recorder as _state
from hansard._tracing.observation import add_event


def score(
    name: str, value: float | None = None, *, label: str | None = None, why: str | None = None
) -> None:
    """Judge the step that is open here: the event `gen_ai.evaluation.result` on its span.

    `value` is a number on whatever scale `name` has, `label` a word such as "pass"; give one or
    both. `why` explains. It is shown with the notes and scores of the step, given by a program.
    Without `init()`, or where no step is open, nothing happens. What has ended is judged through
    the API, the command line or its page: docs/annotations.md.
    """
    recorder = _state.active()
    span = get_current_span()
    if recorder is None or not span.is_recording():
        return
    told = {
        semconv.EVALUATION_NAME: name,
        semconv.EVALUATION_VALUE: float(value) if isinstance(value, int) else value,
        semconv.EVALUATION_LABEL: label,
        semconv.EVALUATION_EXPLANATION: why,
    }
    given = {key: one for key, one in told.items() if one is not None}
    add_event(recorder, span, semconv.EVENT_EVALUATION, given)
