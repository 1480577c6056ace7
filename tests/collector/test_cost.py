"""Costs computed from the offline price list."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from genai_prices import Usage, calc_price

from hansard_collector.derivation.cost import computed_cost
from hansard_compiler.calls import Tokens
from tests.collector.dialects.maker import call_of

_NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
_NOON_NS = int(_NOON.timestamp()) * 10**9


@pytest.mark.parametrize(
    ("provider", "listed", "model", "tokens", "usage"),
    [
        (
            "openai",
            "openai",
            "gpt-4o-mini-2024-07-18",
            Tokens(input=101, output=23, cache_read=64, reasoning=8),
            {"input_tokens": 101, "output_tokens": 23, "cache_read_tokens": 64},
        ),
        (
            "anthropic",
            "anthropic",
            "claude-sonnet-4-5-20250929",
            Tokens(input=124, output=29, cache_read=64, cache_write=20),
            {
                "input_tokens": 124,
                "output_tokens": 29,
                "cache_read_tokens": 64,
                "cache_write_tokens": 20,
            },
        ),
        (
            "gcp.gemini",
            "google",
            "gemini-2.5-pro",
            Tokens(input=300_000, output=10),
            {"input_tokens": 300_000, "output_tokens": 10},
        ),
        (
            "x_ai",
            "x-ai",
            "grok-4",
            Tokens(input=10, output=10),
            {"input_tokens": 10, "output_tokens": 10},
        ),
        (
            "openai",
            "openai",
            "text-embedding-3-small",
            Tokens(input=1_000_000),
            {"input_tokens": 1_000_000},
        ),
    ],
    ids=["cached", "written to the cache", "a higher tier", "an alias", "embedding"],
)
def test_a_cost_equals_what_the_library_computes(
    provider: str, listed: str, model: str, tokens: Tokens, usage: dict[str, int]
) -> None:
    cost = computed_cost(tokens, provider=provider, model=model, at_ns=_NOON_NS)

    expected = calc_price(Usage(**usage), model, provider_id=listed, genai_request_timestamp=_NOON)
    assert cost is not None
    assert cost.usd == pytest.approx(float(expected.total_price), rel=1e-9)
    assert sum(usd for _, usd in cost.lines) == pytest.approx(cost.usd)
    assert cost.source.startswith("genai-prices ")


def test_long_lived_cache_writes_have_a_rate_of_their_own() -> None:
    def written(**counts: int) -> dict[str, float]:
        cost = computed_cost(
            Tokens(input=1_000_000, output=0, cache_write=1_000_000, **counts),
            provider="anthropic",
            model="claude-sonnet-4-5",
            at_ns=_NOON_NS,
        )
        assert cost is not None
        return dict(cost.lines)

    short, long = written(), written(cache_write_1h=1_000_000)
    assert set(short) == {"cache_write"}
    assert set(long) == {"cache_write_1h"}
    assert long["cache_write_1h"] > short["cache_write"]


@pytest.mark.parametrize(
    ("provider", "model", "tokens"),
    [
        ("openai", "a-model-nobody-sells", Tokens(input=1, output=1)),
        ("ollama", "gpt-4o-mini", Tokens(input=1, output=1)),
        (None, "a-model-nobody-sells", Tokens(input=1, output=1)),
        ("openai", "gpt-4o-mini", Tokens(cache_read=1)),
        ("openai", "x" * 100_000, Tokens(input=1)),
        ("openai", "", Tokens(input=1)),
    ],
    ids=["unknown model", "local provider", "nothing known", "no counts", "long name", "no name"],
)
def test_without_a_price_or_tokens_there_is_no_cost(
    provider: str | None, model: str, tokens: Tokens
) -> None:
    assert computed_cost(tokens, provider=provider, model=model, at_ns=_NOON_NS) is None


@pytest.mark.parametrize(
    ("provider", "model", "seller"),
    [
        ("127.0.0.1:4000", "gpt-4o-mini", "openai"),
        ("my-gateway.internal", "openai/gpt-4o-mini", "openai"),
        ("proxy.example.org", "claude-sonnet-4-5", "anthropic"),
        ("openai", "anthropic/claude-sonnet-4-5", "anthropic"),  # OpenAI's client, at a proxy
        ("localhost:4000", "gemini-2.5-flash", "gcp.gemini"),
    ],
)
def test_behind_an_address_a_model_has_the_price_of_the_one_who_sells_it(
    provider: str, model: str, seller: str
) -> None:
    tokens = Tokens(input=101, output=23)

    cost = computed_cost(tokens, provider=provider, model=model, at_ns=_NOON_NS)

    name = model.rpartition("/")[2]
    assert cost == computed_cost(tokens, provider=seller, model=name, at_ns=_NOON_NS)
    assert cost is not None


@pytest.mark.parametrize("model", ["deepseek-r1", "llama3.2", "gpt-oss-20b", "mistral-large"])
def test_behind_an_address_what_anybody_can_serve_has_no_price(model: str) -> None:
    tokens = Tokens(input=1, output=1)

    assert computed_cost(tokens, provider="localhost:11434", model=model, at_ns=_NOON_NS) is None


def test_a_time_far_in_the_future_is_still_priced() -> None:
    tokens = Tokens(input=1_000, output=1_000)

    cost = computed_cost(tokens, provider="deepseek", model="deepseek-chat", at_ns=2**64 - 1)

    assert cost is not None


def test_a_reported_cost_stands_beside_the_computed_one() -> None:
    usage = {"gen_ai.usage.input_tokens": 101, "gen_ai.usage.output_tokens": 23}
    sent = {"gen_ai.operation.name": "chat", "operation.cost": 0.5, **usage}

    cost = call_of({**sent, "gen_ai.request.model": "gpt-4o-mini"}).cost

    assert cost is not None
    assert (cost.reported_usd, cost.source.split()[0]) == (0.5, "genai-prices")
    assert cost.usd < 0.5


def test_without_a_known_price_the_reported_cost_is_the_figure() -> None:
    cost = call_of({"gen_ai.operation.name": "chat", "operation.cost": 0.5}).cost

    assert cost is not None
    assert (cost.usd, cost.reported_usd) == (0.5, 0.5)
    assert cost.source == "reported: operation.cost"
