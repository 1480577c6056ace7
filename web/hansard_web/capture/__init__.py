"""Why a model call has no messages, and what makes its sender send them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from hansard._clients.instrumentor_packages import ContentSwitch, content_switch
from hansard_collector.derivation.stored_span import StepReading
from hansard_store.steps.flags import SpanFlag

_WITHHELD: Final = "‹withheld:"  # what retention leaves in place of content


@dataclass(frozen=True, slots=True)
class Uncaptured:
    """The reason, and the lines to copy; None where the sender is not known."""

    text: str
    switch: ContentSwitch | None


def uncaptured(reading: StepReading, *, flags: int = 0) -> Uncaptured | None:
    """Return why this step's call has no prompt; None where it has one, or is no model call."""
    call = reading.normal.call
    if reading.normal.role != "llm" or call is None or call.input:
        return None
    if flags & (SpanFlag.DUPLICATE | SpanFlag.FOLDED):
        return None  # another step shows the same call, with what it was sent
    if _is_withheld(reading.view.attributes.values()):
        text = (
            "Message content was not stored: retention is metadata_only, on the server or in the "
            "program that sent this. Calls recorded under another mode have their messages."
        )
        return Uncaptured(text, None)
    scope = reading.view.scope_name
    switch = content_switch([scope])
    if switch is None:
        text = "Its instrumentation did not send them; many do so only when they are configured to."
        return Uncaptured(f"Message content was not captured. {text}", None)
    return Uncaptured(
        f"Message content was not captured. This call was sent by {switch.sender}. "
        "Set this where the program is started, and run it again:",
        switch,
    )


def _is_withheld(values: Iterable[object]) -> bool:
    return any(isinstance(value, str) and value.startswith(_WITHHELD) for value in values)
