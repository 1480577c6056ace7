"""The figures of two runs or steps side by side, and which way they moved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Figure = int | float | str | None
Direction = Literal["more", "less", "same", "other", "unknown"]
Verdict = Literal["better", "worse", "neutral", "unknown"]

# Of these, less is better (-1) or more is (1); of all others neither.
_WISHED: Final[Mapping[str, int]] = {
    "duration_ms": -1,
    "cost_usd": -1,
    "tokens.input": -1,
    "tokens.output": -1,
    "tokens.reasoning": -1,
    "cache_share": 1,  # of the input tokens, in per cent
    "errors": -1,
}
# Times differ between any two runs: they are told, and make no difference by themselves.
TIMES: Final = frozenset({"duration_ms"})
_RANK_OF_STATUS: Final[Mapping[str, int]] = {
    "ok": 0, "unset": 0, "open": 1, "no_end": 2, "cancelled": 2, "blocked": 3, "error": 4,
}  # fmt: skip
_STATUS: Final = "status"


@dataclass(frozen=True, slots=True)
class Delta:
    """One figure of both sides. None is unknown, never zero, and nothing is said of it then."""

    name: str
    left: Figure
    right: Figure

    @property
    def delta(self) -> int | float | None:
        """How much more there is on the right; None for words, and where a side is unknown."""
        if isinstance(self.left, int | float) and isinstance(self.right, int | float):
            return self.right - self.left
        return None

    @property
    def share(self) -> float | None:
        """The change in proportion to the left side; None where that is 0 or unknown."""
        if self.delta is None or not isinstance(self.left, int | float) or not self.left:
            return None
        return self.delta / self.left

    @property
    def direction(self) -> Direction:
        if self.left == self.right and type(self.left) is type(self.right):
            return "same"
        if self.left is None or self.right is None:
            return "unknown"
        if self.delta is None:
            return "other"
        return "more" if self.delta > 0 else "less" if self.delta < 0 else "same"

    @property
    def verdict(self) -> Verdict:
        """Whether that is wished for: less cost, time, tokens and errors; more from the cache."""
        if self.direction == "unknown":
            return "unknown"
        moved = self._moved()
        return "better" if moved > 0 else "worse" if moved < 0 else "neutral"

    @property
    def is_difference(self) -> bool:
        """Whether the two are known to differ; times always do, and count for nothing."""
        return self.direction not in ("same", "unknown") and self.name not in TIMES

    def _moved(self) -> float:
        if self.name == _STATUS and isinstance(self.left, str) and isinstance(self.right, str):
            before, after = (_RANK_OF_STATUS.get(one) for one in (self.left, self.right))
            return 0 if before is None or after is None else before - after
        return (self.delta or 0) * _WISHED.get(self.name, 0)


def headline(left: Mapping[str, Figure], right: Mapping[str, Figure]) -> tuple[Delta, ...]:
    """Return the figures of both sides by name, in the order of the left; those of neither, not."""
    names = dict.fromkeys((*left, *right))
    found = (Delta(name, left.get(name), right.get(name)) for name in names)
    return tuple(one for one in found if one.left is not None or one.right is not None)


def cache_share(cached: int | None, sent: int | None) -> float | None:
    """Return how much of the input came from the provider's cache, in per cent of one decimal."""
    return None if cached is None or not sent else round(100 * cached / sent, 1)
