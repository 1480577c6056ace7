"""What the token estimators are off by, against counts that are known without a network.

Two kinds of truth are to be had offline. Texts: OpenAI's vocabularies are public, so their counts
are exact; Voyage's stands for a tokenizer that the weights were not set against. Whole requests:
the few that providers published with their counts. For Claude since version 3 there is no
vocabulary, only three published requests: what it takes in practice is in the bills, beside each
step.
"""

from __future__ import annotations

from statistics import fmean

from bench.figures import Figure
from bench.token_counts import PUBLISHED, PublishedCount
from bench.token_texts import TEXTS
from hansard_compiler.tokens.estimators import (
    BytePairs,
    ClassWeighted,
    TokenEstimator,
    has_vocabularies,
)
from hansard_compiler.tokens.requests import RequestCounter, counter_for, framing_for

_MOST_PCT = 15.0  # mean of the errors without their signs: the margin that is advised


def run() -> list[Figure]:
    """Return the errors as figures; texts only where the vocabularies are installed."""
    figures = [_published(given) for given in PUBLISHED]
    if has_vocabularies():
        for encoding in ("o200k_base", "cl100k_base", "voyage3_base"):
            figures.extend(_texts(BytePairs(encoding)))
        figures.extend(_without_vocabulary(given) for given in PUBLISHED if _is_openai(given))
    return figures


def _published(given: PublishedCount) -> Figure:
    counter = counter_for(given.provider, given.model)
    counted = counter.count_request(given.messages, given.tools).total
    error = _error_pct(counted, given.tokens)
    exact = _is_openai(given) and has_vocabularies()
    return Figure(
        f"request, {given.model}: {given.what}",
        error,
        "%",
        "0 %" if exact else "",
        error == 0 if exact else None,
        f"{counted} for {given.tokens} by {counter.name}",
    )


def _without_vocabulary(given: PublishedCount) -> Figure:
    counter = RequestCounter(ClassWeighted(), framing_for(given.provider, given.model))
    counted = counter.count_request(given.messages, given.tools).total
    return Figure(
        f"request, {given.model}: {given.what}, without the extra",
        _error_pct(counted, given.tokens),
        "%",
        note=f"{counted} for {given.tokens} by {counter.name}",
    )


def _texts(truth: BytePairs) -> list[Figure]:
    estimator: TokenEstimator = ClassWeighted()
    errors = {what: _error_pct(estimator.count(text), truth.count(text)) for what, text in TEXTS}
    figures = [
        Figure(
            f"{truth.encoding}: {what}",
            error,
            "%",
            note=f"{len(text) / truth.count(text):.2f} characters a token",
        )
        for (what, text), error in zip(TEXTS, errors.values(), strict=True)
    ]
    mean = fmean(map(abs, errors.values()))
    # The weights were set against the first; the others show how far they carry.
    is_bar = truth.encoding == "o200k_base"
    bar, is_met = (f"< {_MOST_PCT:g} %", mean < _MOST_PCT) if is_bar else ("", None)
    return [*figures, Figure(f"{truth.encoding}: mean of the errors", mean, "%", bar, is_met)]


def _is_openai(given: PublishedCount) -> bool:
    return given.provider == "openai"


def _error_pct(counted: int, true: int) -> float:
    return round(100 * (counted - true) / true, 1)
