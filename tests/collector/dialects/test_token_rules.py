"""Input includes the cached tokens, output the reasoning, unknown is None (rule 0.6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.collector.dialects.maker import call_of, read

_CHAT = {"gen_ai.operation.name": "chat"}


def _usage(**counts: Any) -> dict[str, Any]:
    return {**_CHAT, **{f"gen_ai.usage.{key.replace('__', '.')}": n for key, n in counts.items()}}


@pytest.mark.parametrize(
    ("sent", "whole"),
    [
        (_usage(input_tokens=100, cache_read__input_tokens=64), 100),
        (_usage(input_tokens=40, cache_read__input_tokens=64), 104),
        (
            _usage(
                input_tokens=40,
                cache_read__input_tokens=30,
                cache_creation__input_tokens=20,
            ),
            90,
        ),
        (
            _usage(
                input_tokens=100, output_tokens=10, cache_read__input_tokens=64, total_tokens=174
            ),
            164,
        ),
        (
            _usage(
                input_tokens=100, output_tokens=10, cache_read__input_tokens=64, total_tokens=110
            ),
            100,
        ),
        (_usage(cache_read__input_tokens=64), None),
    ],
    ids=["included", "left out", "both left out", "total tells", "total agrees", "unknown"],
)
def test_input_includes_the_cached_tokens(sent: dict[str, Any], whole: int | None) -> None:
    assert call_of(sent).tokens.input == whole


@pytest.mark.parametrize(
    ("sent", "whole"),
    [
        (_usage(input_tokens=10, output_tokens=20, reasoning_tokens=8, total_tokens=30), 20),
        (_usage(input_tokens=10, output_tokens=20, reasoning_tokens=8, total_tokens=38), 28),
        (_usage(output_tokens=20, reasoning_tokens=8), 20),
    ],
    ids=["included", "left out", "no total"],
)
def test_output_includes_the_reasoning(sent: dict[str, Any], whole: int) -> None:
    assert call_of(sent).tokens.output == whole


def test_a_corrected_count_says_so() -> None:
    sources = call_of(_usage(input_tokens=40, cache_read__input_tokens=64)).sources

    assert sources["tokens.input"] == "gen_ai.usage.input_tokens + cached"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (5.0, 5),
        ("5", 5),
        ("5.0", 5),
        (0, 0),
        (-1, None),
        (1.5, None),
        ("many", None),
        ("NaN", None),
        (float("inf"), None),
        (True, None),
        (None, None),
        ([5], None),
        (2**63, None),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_a_count_may_be_sent_as_another_type_and_nonsense_is_unknown(
    value: Any, expected: int | None
) -> None:
    assert call_of(_usage(input_tokens=value)).tokens.input == expected


def test_an_unusable_count_gives_way_to_the_next_source() -> None:
    call = call_of({**_usage(input_tokens="many"), "llm.token_count.prompt": 7})

    assert call.tokens.input == 7
    assert call.sources["tokens.input"] == "llm.token_count.prompt"


@pytest.mark.parametrize(
    ("usage", "whole_input", "whole_output"),
    [
        ('{"input": 5, "output": 2, "cache_read_input_tokens": 1}', 6, 2),
        ('{"input": 5, "output": 2, "input_cached_tokens": 3, "total": 7}', 5, 2),
        ('{"input": 5, "output": 2, "output_reasoning": 4}', 5, 6),
        (
            '{"prompt_tokens": 9, "completion_tokens": 3, '
            '"prompt_tokens_details": {"cached_tokens": 4}}',
            9,
            3,
        ),
    ],
    ids=["disjoint buckets", "a total without buckets", "reasoning bucket", "OpenAI's words"],
)
def test_langfuse_buckets_are_disjoint_unless_the_total_or_the_words_say_otherwise(
    usage: str, whole_input: int, whole_output: int
) -> None:
    tokens = call_of(
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.usage_details": usage,
        }
    ).tokens

    assert (tokens.input, tokens.output) == (whole_input, whole_output)


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 5},
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.aggregated_usage.input_tokens": 5},
        {"ai.operationId": "ai.generateText", "ai.usage.inputTokens": 5},
        {"spring.ai.kind": "chat_client", "gen_ai.usage.input_tokens": 5},
        {"langsmith.span.kind": "chain", "gen_ai.usage.input_tokens": 5},
        {"openinference.span.kind": "CHAIN", "llm.token_count.prompt": 5},
    ],
    ids=["invoke_agent", "aggregated", "Vercel", "Spring", "LangSmith", "OpenInference"],
)
def test_a_parents_sum_is_kept_apart_from_calls(attributes: dict[str, Any]) -> None:
    shown = read(attributes)

    assert shown.call is None
    assert shown.tokens_sum is not None
    assert shown.tokens_sum.input == 5
