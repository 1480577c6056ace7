"""Token counts brought to one meaning: input includes the cached, output includes the reasoning.

Emitters differ (genai-dialects.md, rule 0.6). What each dialect is known to leave out is added by
its reader; here the counts themselves show what was left out.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from hansard_compiler.calls import Tokens

_UNKNOWN = Tokens()


def tokens_of(found: Mapping[str, int], sources: MutableMapping[str, str]) -> Tokens:
    """Return the counts that were found; a count that was corrected says so in its source."""
    if not found:
        return _UNKNOWN
    whole_input = found.get("tokens.input")
    whole_output = found.get("tokens.output")
    cached = found.get("tokens.cache_read", 0) + found.get("tokens.cache_write", 0)
    if whole_input is not None and _leaves_out_cached(found, cached):
        whole_input += cached
        sources["tokens.input"] += " + cached"
    if whole_output is not None and _leaves_out_reasoning(found, whole_input):
        whole_output += found["tokens.reasoning"]
        sources["tokens.output"] += " + reasoning"
    sources.pop("tokens.total", None)
    return Tokens(
        input=whole_input,
        output=whole_output,
        cache_read=found.get("tokens.cache_read"),
        cache_write=found.get("tokens.cache_write"),
        cache_write_5m=found.get("tokens.cache_write_5m"),
        cache_write_1h=found.get("tokens.cache_write_1h"),
        reasoning=found.get("tokens.reasoning"),
        audio_input=found.get("tokens.audio_input"),
        audio_output=found.get("tokens.audio_output"),
    )


def _leaves_out_cached(found: Mapping[str, int], cached: int) -> bool:
    """More cached than input, or a total that only comes out with the cached added."""
    if cached > found["tokens.input"]:
        return True
    total, output = found.get("tokens.total"), found.get("tokens.output")
    if not cached or total is None or output is None:
        return False
    return total == found["tokens.input"] + cached + output


def _leaves_out_reasoning(found: Mapping[str, int], whole_input: int | None) -> bool:
    """A total that only comes out with the reasoning added, as Gemini counts."""
    reasoning, total = found.get("tokens.reasoning"), found.get("tokens.total")
    if not reasoning or total is None or whole_input is None:
        return False
    return total == whole_input + found["tokens.output"] + reasoning
