"""Shortening what does not fit whole: which items may be, to what, and how."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from hansard_compiler.compile.compression.extract import Extract
from hansard_compiler.compile.items import CONVERSATION, CandidateItem
from hansard_compiler.compile.passes.layout import frame_tokens
from hansard_compiler.compile.ports import Compressor
from hansard_compiler.compile.state import CompileState
from hansard_compiler.compile.version1.compression import ExtractV1 as ExtractOfVersion1
from hansard_compiler.relevance import query_of, scorer_named

# Shortening the items of one compile, by the compressor of its ports or the built-in one.

# Attempts in a row that came to nothing: what is left is too little for anything.
_MOST_FAILED: Final = 16


class Shortened(NamedTuple):
    """The result of an attempt: a text and its tokens, or None; and a remark on it."""

    text: str | None
    tokens: int  # with the item's frame
    note: str | None = None


class Shortener:
    """Shortens items to what they are allotted. The same item and room give the same text."""

    def __init__(self, state: CompileState) -> None:
        self._state = state
        self._query = query_of(state, state.guarded)
        self._built_in = _built_in(state)
        self._known: dict[tuple[str, int], Shortened] = {}
        self._failed = 0

    @property
    def is_stuck(self) -> bool:
        """Whether so many attempts in a row failed that another one is not worth its time."""
        return self._failed >= _MOST_FAILED

    def shorten(self, item: CandidateItem, most: int) -> Shortened:
        """Return the item in at most that many tokens, its frame included.

        The compressor gets what may be shown and nothing else.
        """
        found = self._known.get((item.id, most))
        if found is None:
            found = self._shortened(item, most - frame_tokens(item))
            if found.text is not None:
                found = found._replace(tokens=found.tokens + frame_tokens(item))
            self._known[item.id, most] = found
            self._failed = self._failed + 1 if found.text is None else 0
        return found

    def _shortened(self, item: CandidateItem, most: int) -> Shortened:
        compressor, note = self._state.ports.compressor, None
        if compressor is not None:
            made = self._attempt(compressor, item, most)
            if made.text is not None:
                return made
            note = f"the compressor given {made.note}; the built-in one was used"
        made = self._attempt(self._built_in, item, most)
        return made if made.text is None else made._replace(note=note)

    def _attempt(self, compressor: Compressor, item: CandidateItem, most: int) -> Shortened:
        state, counter = self._state, self._state.ports.counter
        if most <= 0:
            return Shortened(None, 0, "had no room")
        text = state.guarded[item.id].text
        try:
            made = compressor(text, query=self._query, target_tokens=most, counter=counter)
        except Exception as failed:  # a compressor may ask a model: anything can go wrong there
            return Shortened(None, 0, f"raised {type(failed).__name__}")
        if made is None or not made.strip():
            return Shortened(None, 0, "gave nothing")
        clean = state.ports.redactor.redact_text(made).text
        tokens = counter.count(clean)
        if tokens > most:
            return Shortened(None, 0, f"gave {tokens} tokens where {most} were allotted")
        return Shortened(clean, tokens)


def _built_in(state: CompileState) -> Compressor:
    config = state.request.compile_config
    if config.compiler_version == 1:
        return ExtractOfVersion1()
    rate = state.ports.relevance or scorer_named(config.relevance.scorer, config.relevance)
    return Extract(rate)


# Which items may be shortened: a closed list; everything else is taken whole or left out.

# Only these kinds, and of them not what is marked as evidence, blocking, an approval or pinned.
COMPRESSIBLE = frozenset({"retrieval_doc", "user_msg", "assistant_msg", "artifact", "summary",
                          "tool_result"})  # fmt: skip
_NEVER = frozenset({"evidence", "approval", "blocking", "verbatim"})


def may_compress(state: CompileState) -> Callable[[CandidateItem], bool]:
    """Return the rule of one compile: which of its items may be shortened."""
    settings = state.request.compile_config.compression
    times = sorted(
        (item.created_us for item in state.live if item.kind == "user_msg"), reverse=True
    )
    turns = settings.fresh_turns
    current_us = times[min(turns, len(times)) - 1] if times and turns else None

    def may(item: CandidateItem) -> bool:
        if not settings.enabled or item.kind not in COMPRESSIBLE or item.id in state.required:
            return False
        if item.tags & _NEVER or not _is_text(item):
            return False
        if item.source is not None and item.source.source_type == "human_approval":
            return False
        if item.kind in CONVERSATION:
            # Without a user's turn to count from, everything said is old.
            return current_us is None or item.created_us < current_us
        return True

    return may


def _is_text(item: CandidateItem) -> bool:
    """Return whether an item is one text: not a call, not reasoning, not media, not JSON."""
    if isinstance(item.content, str):
        return len(item.answers) < 2
    parts = item.content.get("parts")
    if item.kind not in CONVERSATION or not isinstance(parts, list):
        return False
    types = [part.get("type") if isinstance(part, dict) else None for part in parts]
    return types == ["tool_result"] or all(one == "text" for one in types)


__all__ = ["Extract", "Shortened", "Shortener", "may_compress"]
