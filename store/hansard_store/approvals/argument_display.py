"""An action as a person is shown it. Pure.

Every argument is a field of its own, whatever the description says, and what tries to hide in one
is flagged: invisible and reordering characters, names that look like another one, a description
that leaves an argument out or gives it another value. Nothing invisible is left in any text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hansard_compiler.canonical import canonical_json
from hansard_store.approvals.records import Field, Flag
from hansard_store.lookalikes import (
    has_stacked_marks,
    imitating_separator,
    imitating_word,
    skeleton,
)

MAX_SHOWN: Final = 4_000  # characters of one value
_IN_DESCRIPTION: Final = 60  # characters of a value that a description must show
_GRAVITY: Final[Sequence[Flag]] = ("hidden", "not_in_context", "changed")
_WHY: Final[Mapping[Flag, str]] = {
    "hidden": "it is not what it looks like",
    "not_in_context": "it is in nothing the agent was given",
    "changed": "it differs from the draft before",
}
# Digits that look like letters, in names.
_DIGITS: Final = str.maketrans("01i", "oll")
_GAP: Final = re.compile(r"\s{80}|(?:\n[^\S\n]*){10}")  # what comes after it is out of sight
# A line of a value that begins as a line of the record itself, where a value is shown as lines.
_RECORD_LINE: Final = re.compile(
    r"\n[ \t]*(?:approval|status|action|agent|run|batch|undoes|policy|rules|expires|requested by|"
    r"decided by|note|reason|ran|settled by|error|draft \d+|argument)(?:[ \t]{2,}|[ \t]*:)",
    re.IGNORECASE,
)
# Invisible or blank, and no control or format characters by category: fillers, a blank Braille
# pattern, selectors that can carry hidden text. U+FE0F stays: it makes an emoji of a symbol.
_BLANK: Final = frozenset(
    map(chr, (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0))
) | frozenset(map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0))))


def show(
    arguments: Mapping[str, Any],
    *,
    description: str | None = None,
    flags: Mapping[str, Flag] = {},
    before: Mapping[str, Any] | None = None,
) -> tuple[Field, ...]:
    """Return one field an argument, in their order; `before` are those of the previous draft."""
    alike = _alike(arguments)
    return tuple(
        _field(name, value, _findings(name, value, alike, description, flags, before))
        for name, value in arguments.items()
    )


def describe(tool: str, fields: Sequence[Field], description: str | None = None) -> str:
    """Return a sentence that shows every argument: what a description lacks is added to it."""
    if description is None or not description.strip():
        listed = ", ".join(f"{one.name}: {_short(one.value)}" for one in fields)
        return f"{tool}({listed})"
    clean = visible(description.strip())
    missing = [one for one in fields if _short_text(one.value) not in clean]
    if not missing:
        return clean
    listed = ", ".join(f"{one.name}: {_short(one.value)}" for one in missing)
    return f"{clean} ({listed})"


def visible(text: str) -> str:
    """Return a text in which nothing is invisible; line ends and tabs stay."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(one if _is_visible(one) else f"‹U+{ord(one):04X}›" for one in text)


def _field(name: str, value: Any, findings: Sequence[tuple[Flag, str]]) -> Field:
    text = visible(_text(value))
    is_cut = len(text) > MAX_SHOWN
    if is_cut:
        text = f"{text[:MAX_SHOWN]}… ({len(text):,} characters in all)"
    if not findings:
        return Field(visible(name), text, is_cut=is_cut)
    flag = min((one for one, _ in findings), key=_GRAVITY.index)
    return Field(visible(name), text, flag, "; ".join(why for _, why in findings), is_cut)


def _findings(
    name: str,
    value: Any,
    alike: Mapping[str, str],
    description: str | None,
    flags: Mapping[str, Flag],
    before: Mapping[str, Any] | None,
) -> list[tuple[Flag, str]]:
    found: list[tuple[Flag, str]] = []
    if any(visible(text) != text for text in _texts({name: value})):
        found.append(("hidden", "it holds characters that cannot be seen"))
    if any(_GAP.search(text, 0, MAX_SHOWN) for text in _texts(value)):
        found.append(("hidden", "a long gap is in it: look below"))
    if name in alike:
        found.append(("hidden", f"its name looks like {alike[name]}"))
    if mixed := next(filter(None, map(imitating_word, _texts(value))), None):
        found.append(
            ("hidden", f"{_short(mixed)} looks like plain letters, and mixes two alphabets")
        )
    if parted := next(filter(None, map(imitating_separator, _texts(value))), None):
        found.append(("hidden", f"{_short(parted)} holds a sign that looks like a plain one"))
    if any(map(has_stacked_marks, _texts({name: value}))):
        found.append(("hidden", "marks are piled up on its letters"))
    if any(_RECORD_LINE.search(text) for text in _texts(value)):
        found.append(("hidden", "one of its lines reads like a line of this record"))
    if description is not None and description.strip():
        found += _left_out(name, value, description)
    if name in flags:
        found.append((flags[name], _WHY[flags[name]]))
    if before is not None and (name not in before or not _is_same(before[name], value)):
        found.append(("changed", _WHY["changed"] if name in before else "it is new in this draft"))
    return found


def _left_out(name: str, value: Any, description: str) -> list[tuple[Flag, str]]:
    shown, expected = visible(description), _short_text(visible(_text(value)))
    for match in re.finditer(rf"(?<!\w){re.escape(name)}\s*[:=]\s*[\"']?", shown):
        if not shown[match.end() :].startswith(expected):
            return [("hidden", "the description gives it another value")]
    return [] if expected in shown else [("hidden", "the description leaves it out")]


def _alike(names: Mapping[str, Any]) -> dict[str, str]:
    """Return for each name that looks like another one, or like plain letters, what it imitates."""
    seen: dict[str, str] = {}
    alike: dict[str, str] = {}
    for name in names:
        looks = _skeleton(name)
        if looks in seen:
            alike[name], alike[seen[looks]] = repr(seen[looks]), repr(visible(name))
        elif looks.isascii() and not name.isascii() and re.search("[A-Za-z]", name):
            alike[name] = "plain letters, and mixes two alphabets"
        seen.setdefault(looks, name)
    return alike


def _skeleton(name: str) -> str:
    seen = "".join(one for one in unicodedata.normalize("NFKC", name) if _is_visible(one))
    return skeleton(seen).translate(_DIGITS).strip() if len(seen) > 1 else seen


def _text(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _is_same(before: Any, value: Any) -> bool:
    """Whether a value is what it was, also by its type: `"1"` and `1` read alike."""
    return isinstance(before, str) is isinstance(value, str) and _text(before) == _text(value)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text in a value, names included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield name
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _short_text(text: str) -> str:
    return text[:_IN_DESCRIPTION].rstrip()


def _short(text: str) -> str:
    return text if len(text) <= _IN_DESCRIPTION else f"{text[:_IN_DESCRIPTION]}…"


def _is_visible(one: str) -> bool:
    if one in "\n\t":
        return True
    if one in _BLANK:
        return False
    # Cc control, Cf format (bidi overrides, zero width), Co private, Cs surrogate, Zl Zp separators
    return unicodedata.category(one) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
