"""How hard statements of SQL are to undo; a reader of their first words, not a parser."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MOST_WORDS = 400  # of one statement that are looked at


def statements(text: str) -> list[list[str]]:
    """Return the words of each statement in lower case, without comments.

    A quoted text becomes the one word `''`; a quoted name stays without its quotes.
    """
    found: list[list[str]] = []
    words: list[str] = []
    at, size = 0, len(text)
    while at < size:
        character = text[at]
        if text.startswith("--", at) or (character == "#" and not words):
            end = text.find("\n", at)
            at = size if end < 0 else end
        elif text.startswith("/*", at):
            end = text.find("*/", at)
            at = size if end < 0 else end + 2
        elif character in "'\"`[":
            close = "]" if character == "[" else character
            end = text.find(close, at + 1)
            end = size if end < 0 else end
            words.append("''" if character == "'" else text[at + 1 : end].lower())
            at = end + 1
        elif character == ";":
            found.append(words)
            words = []
            at += 1
        elif character.isalnum() or character in "_$":
            start = at
            while at < size and (text[at].isalnum() or text[at] in "_$."):
                at += 1
            if len(words) < _MOST_WORDS:
                words.append(text[start:at].lower())
        elif character in "=<>":
            words.append(character)
            at += 1
        else:
            at += 1
    return [one for one in [*found, words] if one]


def looks_like_sql(text: str, rules: Mapping[str, Any]) -> bool:
    """Whether a text begins with a word that statements begin with, and goes on like one."""
    if text.lstrip()[:10].lower().startswith("truncate -"):
        return False  # the program of that name
    for words in statements(text[:2000]):
        following = rules["begins"].get(words[0])
        if following is not None and (not following or set(following) & set(words[1:6])):
            return True
    return False


def score_sql(text: str, rules: Mapping[str, Any]) -> tuple[float, str]:
    """Return the worst statement's score and its reason; what a ROLLBACK ends counts little."""
    best, reason = rules["other"]["score"], rules["other"]["reason"]
    settled: list[tuple[float, str]] = []  # outside a transaction that is rolled back
    pending: list[tuple[float, str]] = []
    for words in statements(text):
        if words[0] in ("begin", "start"):
            settled += pending
            pending = []
            continue
        if words[0] in ("rollback", "abort"):
            pending = [(min(score, 0.2), why) for score, why in pending]
            continue
        pending.append(_score(words, rules))
    for score, why in settled + pending:
        if score > best:
            best, reason = score, why
    return best, reason


def _score(words: list[str], rules: Mapping[str, Any]) -> tuple[float, str]:
    for rule in rules["rules"]:
        begins = rule["words"]
        if words[: len(begins)] != begins:
            continue
        rest = words[len(begins) :]
        if any(word not in rest for word in rule.get("with", ())):
            continue
        without = rule.get("without", [])
        is_whole = without == ["where"] and _is_always_true(rest)
        if not is_whole and any(word in rest for word in without):
            continue
        score: float = rule["score"]
        if rule.get("named") and _is_temporary(rest, rules):
            score = min(score, rules["temporary"]["score"])
        return score, str(rule["reason"])
    return rules["other"]["score"], str(rules["other"]["reason"])


def _is_always_true(words: list[str]) -> bool:
    if "where" not in words:
        return True
    condition = words[words.index("where") + 1 :]
    return condition in (["1", "=", "1"], ["true"], ["1"]) or (
        len(condition) == 3 and condition[1] == "=" and condition[0] == condition[2]
    )


def _is_temporary(words: list[str], rules: Mapping[str, Any]) -> bool:
    names = [word for word in words if word not in ("if", "exists", "cascade", "only", "table")]
    return bool(names) and all(
        name.rpartition(".")[2].startswith(tuple(rules["temporary"]["prefixes"])) for name in names
    )
