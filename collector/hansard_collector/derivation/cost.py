"""What a call cost: computed from the offline price list of genai-prices, beside what was reported.

Cached tokens are priced at their own tier. The library's own calculation takes 110 µs, so the price
card of each model is cached and the sum is done here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache, lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING

from hansard_collector.dialects.engine.vocabulary import host_in, seller_of_model
from hansard_compiler.calls import Cost, Tokens

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, ModelPrice, TieredPrices

_SOURCE = f"genai-prices {version('genai-prices')}"
_LONGEST_MODEL_NAME = 200
_PER_MILLION = 1_000_000
_DIGITS = 12  # of a dollar: below that it is noise of the arithmetic

# OpenTelemetry's names of providers where the price list has another.
_PRICED_AS: Mapping[str, str] = {
    "aws.bedrock": "aws",
    "azure.ai.inference": "azure",
    "azure.ai.openai": "azure",
    "gcp.gemini": "google",
    "gcp.gen_ai": "google",
    "gcp.vertex_ai": "google",
    "mistral_ai": "mistral",
    "moonshot_ai": "moonshotai",
    "x_ai": "x-ai",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """US dollars per million tokens; above a number of input tokens another rate for all."""

    base: float
    tiers: tuple[tuple[int, float], ...] = ()  # (more input tokens than, rate), ascending

    def usd(self, tokens: int, *, input_tokens: int) -> float:
        rate = self.base
        for above, tier_rate in self.tiers:
            if input_tokens > above:
                rate = tier_rate
        return round(tokens * rate / _PER_MILLION, _DIGITS)


# The rates of one model at one time, by kind, and the fields of the price list that have them.
PriceCard = Mapping[str, Rate]
_KINDS: Mapping[str, str] = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "audio_input": "input_audio_mtok",
    "audio_output": "output_audio_mtok",
}


def computed_cost(tokens: Tokens, *, provider: str | None, model: str, at_ns: int) -> Cost | None:
    """Return the cost of a call by the price list, or None where tokens or prices are unknown.

    `at_ns` is when the call was made: some prices hold from a day on or by the hour.
    """
    if tokens.input is None and tokens.output is None:
        return None
    prices_at = _prices(provider, model)
    if prices_at is None:
        return None
    lines = _lines(tokens, prices_at(at_ns))
    if not lines:
        return None
    total = round(sum(usd for _, usd in lines), _DIGITS)
    return Cost(usd=total, source=_SOURCE, lines=lines)


def _lines(tokens: Tokens, card: PriceCard) -> tuple[tuple[str, float], ...]:
    """Split the tokens by what they are billed as; a kind without a rate stays with its whole."""
    whole = tokens.input or 0
    long_lived = tokens.cache_write_1h or 0
    short_lived = max((tokens.cache_write or 0) - long_lived, tokens.cache_write_5m or 0)
    of_input = (
        ("cache_read", tokens.cache_read, card.get("cache_read")),
        ("cache_write_1h", long_lived, card.get("cache_write_1h") or card.get("cache_write")),
        ("cache_write", short_lived, card.get("cache_write")),
        ("audio_input", tokens.audio_input, card.get("audio_input")),
        ("input", whole, card.get("input")),
    )
    output = tokens.output or 0
    of_output = (
        ("audio_output", tokens.audio_output, card.get("audio_output")),
        ("output", output, card.get("output")),
    )
    lines: list[tuple[str, float]] = []
    for left, kinds in ((whole, of_input), (output, of_output)):
        for name, count, rate in kinds:
            taken = min(count or 0, left)
            if taken and rate is not None:
                left -= taken
                lines.append((name, rate.usd(taken, input_tokens=whole)))
    return tuple(lines)


@lru_cache(maxsize=4096)
def _prices(provider: str | None, model: str) -> Callable[[int], PriceCard] | None:
    """Return the model's price card as a function of time, or None for an unknown model."""
    if not model or len(model) > _LONGEST_MODEL_NAME:
        return None
    listed = None if provider is None else _PRICED_AS.get(provider, provider)
    info = _listed_model(model, listed)
    if info is None and provider is not None and _may_pass_on(provider, listed):
        # A proxy, or the client of one maker that is pointed at another's models.
        seller = seller_of_model(model)
        if seller is not None:
            name = model.strip().rpartition("/")[2]
            info = _listed_model(name, _PRICED_AS.get(seller, seller))
    return None if info is None else _by_time(info)


def _listed_model(model: str, listed: str | None) -> ModelInfo | None:
    try:
        return _price_list().find_provider_model(model, None, listed, None)[1]
    except LookupError:
        return None


def _may_pass_on(provider: str, listed: str | None) -> bool:
    """Whether a provider's name names only what was called: an address, or a maker of clients."""
    return host_in(provider) is not None or any(
        known.id == listed for known in _price_list().providers
    )


def _by_time(info: ModelInfo) -> Callable[[int], PriceCard]:
    """Cards by minute: time-of-day prices change on the minute, most prices never."""
    # Imported late: the price list takes 0.35 s and 20 MiB, and an idle server needs none of it.
    from genai_prices.types import ModelPrice

    if isinstance(info.prices, ModelPrice):
        only = _card(info.prices)
        return lambda at_ns: only

    @lru_cache(maxsize=64)
    def at_minute(minute: int) -> PriceCard:
        return _card(info.get_prices(datetime.fromtimestamp(minute * 60, UTC)))

    return lambda at_ns: at_minute(min(at_ns, _LAST_NS) // 60_000_000_000)


_LAST_NS = 4_102_444_800_000_000_000  # the year 2100; later times are the sender's mistake


def _card(prices: ModelPrice) -> PriceCard:
    rates = {kind: _rate(getattr(prices, field)) for kind, field in _KINDS.items()}
    return {kind: rate for kind, rate in rates.items() if rate is not None}


def _rate(price: Decimal | TieredPrices | None) -> Rate | None:
    if price is None:
        return None
    if isinstance(price, Decimal):
        return Rate(float(price))
    return Rate(float(price.base), tuple((tier.start, float(tier.price)) for tier in price.tiers))


@cache
def _price_list() -> DataSnapshot:
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot()
