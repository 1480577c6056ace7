"""What differs between two JSON values, path by path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from hansard_compiler.canonical import canonical_json
from hansard_compiler.diff.sequences import align

MOST_CHANGES: Final = 1_000
_MOST_VALUES = 200_000  # looked at; what is beyond is compared as a whole
_DEEPEST = 100
_MOST_ALIGNED = 4_000  # elements of an array that are laid side by side; more go by number
_PLAIN_KEY = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)

Step = str | int
State = Literal["changed", "only_left", "only_right"]


@dataclass(frozen=True, slots=True)
class JsonChange:
    """One value that differs. The paths differ where elements of an array moved."""

    state: State
    left_path: tuple[Step, ...] | None
    right_path: tuple[Step, ...] | None
    left: Any  # None where there is none: `state` separates it from null
    right: Any

    @property
    def path(self) -> str:
        """The path on the left, or on the right where it is only there: `$.messages[2].role`."""
        path = self.right_path if self.left_path is None else self.left_path
        return path_text(path or ())


@dataclass(frozen=True, slots=True)
class JsonDiff:
    """The changes in the order of the left value. `is_cut`: there are more than are listed."""

    changes: tuple[JsonChange, ...]
    is_cut: bool = False


def json_diff(left: Any, right: Any, *, most: int = MOST_CHANGES) -> JsonDiff:
    """Compare two JSON values: objects by key, arrays by their equal elements, then in order."""
    walk = _Walk()
    found: list[JsonChange] = []
    for change in walk.compare(left, right, (), ()):
        if len(found) == most:
            return JsonDiff(tuple(found), is_cut=True)
        found.append(change)
    return JsonDiff(tuple(found))


def path_text(path: Sequence[Step]) -> str:
    """Return a path as people write it."""
    return "$" + "".join(map(_step_text, path))


def _step_text(step: Step) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN_KEY.fullmatch(step) else f"[{canonical_json(step)}]"


@dataclass(slots=True)
class _Walk:
    left_over: int = _MOST_VALUES

    def compare(
        self, left: Any, right: Any, here: tuple[Step, ...], there: tuple[Step, ...]
    ) -> Iterator[JsonChange]:
        self.left_over -= 1
        is_open = self.left_over > 0 and len(here) < _DEEPEST
        if is_open and isinstance(left, Mapping) and isinstance(right, Mapping):
            yield from self._objects(left, right, here, there)
        elif is_open and _is_array(left) and _is_array(right):
            yield from self._arrays(left, right, here, there)
        elif not _is_same(left, right):
            yield JsonChange("changed", here, there, left, right)

    def _objects(
        self,
        left: Mapping[str, Any],
        right: Mapping[str, Any],
        here: tuple[Step, ...],
        there: tuple[Step, ...],
    ) -> Iterator[JsonChange]:
        for key in sorted({*left, *right}):
            if key not in right:
                yield JsonChange("only_left", (*here, key), None, left[key], None)
            elif key not in left:
                yield JsonChange("only_right", None, (*there, key), None, right[key])
            else:
                yield from self.compare(left[key], right[key], (*here, key), (*there, key))

    def _arrays(
        self,
        left: Sequence[Any],
        right: Sequence[Any],
        here: tuple[Step, ...],
        there: tuple[Step, ...],
    ) -> Iterator[JsonChange]:
        at = other = 0
        for one, two in [*_equal_elements(left, right), (len(left), len(right))]:
            both = min(one - at, two - other)
            for step in range(both):
                yield from self.compare(
                    left[at + step], right[other + step], (*here, at + step), (*there, other + step)
                )
            for gone in range(at + both, one):
                yield JsonChange("only_left", (*here, gone), None, left[gone], None)
            for come in range(other + both, two):
                yield JsonChange("only_right", None, (*there, come), None, right[come])
            at, other = one + 1, two + 1


def _equal_elements(left: Sequence[Any], right: Sequence[Any]) -> list[tuple[int, int]]:
    if max(len(left), len(right)) > _MOST_ALIGNED:
        return []
    return align([canonical_json(one) for one in left], [canonical_json(one) for one in right])


def _is_array(value: Any) -> bool:
    return isinstance(value, list | tuple)


def _is_same(left: Any, right: Any) -> bool:
    """Return whether two values are the same JSON: 1 is not true, unlike in Python."""
    if type(left) is type(right) and isinstance(left, str | int | bool):
        return bool(left == right)
    return canonical_json(left) == canonical_json(right)
