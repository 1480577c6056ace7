"""The answer to a model call: the call read from it, its body, and the exchange it came in."""

from __future__ import annotations

from dataclasses import dataclass, field

from hansard_compiler.calls import Call, Json
from hansard_compiler.providers.transport.exchange import Exchange
from hansard_compiler.providers.transport.failures import CallFailed


@dataclass(frozen=True, slots=True)
class Answer:
    """A call that came back: its normal form, the response as JSON, and the exchange itself.

    `shortfall` is an answer's own failure: cut at the limit, stopped by a filter. What there is of
    the answer is in `call` all the same.
    """

    call: Call
    response: Json
    exchange: Exchange
    metadata: Json = field(default_factory=dict)  # what belongs on the step beside the call
    shortfall: CallFailed | None = None
