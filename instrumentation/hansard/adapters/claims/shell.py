"""The commands that a shell call runs, and what the exit code of the whole means for each.

Not a shell: it reads lists, pipes, quotes, heredocs and `sh -c`, and takes the rest as words. What
it cannot tell it does not claim: of a command behind a pipe the exit code says nothing.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

# Tools that run a shell command, by the last part of their names, and where the command is.
_split: Final = str.split
SHELL_TOOLS: Final = frozenset(
    _split(
        """
        bash shell sh zsh terminal run_command run_shell_command execute_command
        exec_command shell_command local_shell run_terminal_cmd run_in_terminal
        execute_bash bash_tool powershell exec run_bash command_line container_exec
        """
    )
)
_ARGUMENTS: Final = ("command", "cmd", "script", "commands", "input", "code", "args")
_MOST_CHARS: Final = 20_000
_MOST_COMMANDS: Final = 200
_MOST_DEPTH: Final = 3
_SHELLS: Final = frozenset({"bash", "sh", "zsh", "dash", "ash", "ksh"})
_KEYWORDS: Final = frozenset(_split("if then else elif fi do done while until ! { } for case esac"))
# Programs that run the rest of their words, and how many words of their own come first.
_WRAPPERS: Final[Mapping[tuple[str, ...], int]] = {
    ("sudo",): 0, ("time",): 0, ("env",): 0, ("nice",): 0, ("nohup",): 0, ("command",): 0,
    ("exec",): 0, ("xvfb-run",): 0, ("unbuffer",): 0, ("timeout",): 1, ("stdbuf",): 0,
    ("uv", "run"): 0, ("poetry", "run"): 0, ("pipenv", "run"): 0, ("hatch", "run"): 0,
    ("pdm", "run"): 0, ("rye", "run"): 0, ("direnv", "exec"): 1, ("docker", "compose", "exec"): 1,
    ("docker", "compose", "run"): 1, ("docker", "exec"): 1, ("docker-compose", "exec"): 1,
    ("docker-compose", "run"): 1, ("conda", "run"): 0, ("coverage", "run", "-m"): 0,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShellCommand:
    """One command of a call, without wrappers and folders: `.venv/bin/pytest -q` is `pytest -q`."""

    text: str
    zero_means_done: bool  # the call's exit code 0 says that it succeeded
    nonzero_means_failed: bool  # another one says that it did not


@dataclass(frozen=True, slots=True)
class _Simple:
    words: tuple[str, ...]
    before: str  # the operator before it: "", ;, &&, ||, |


def shell_text(tool: str, arguments: Any) -> str | None:
    """Return the text that a shell tool runs; None for another tool, or without one.

    `tool` is a name in lower case with `_` between its parts.
    """
    is_shell = tool in SHELL_TOOLS or any(tool.endswith(f"_{name}") for name in ("bash", "shell"))
    if not is_shell:
        return None
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, Mapping):
        return None
    for name in _ARGUMENTS:
        value = arguments.get(name)
        if isinstance(value, str) and value.strip():
            return value
        if isinstance(value, Sequence) and value and all(isinstance(one, str) for one in value):
            return shlex.join(value)
    return None


@lru_cache(maxsize=4_096)
def commands_of(text: str) -> Sequence[ShellCommand]:
    """Return the commands of a shell text in their order, at most 200."""
    return tuple(_commands(text[:_MOST_CHARS], depth=0))[:_MOST_COMMANDS]


def _commands(text: str, *, depth: int) -> Iterator[ShellCommand]:
    statements = _statements(text)
    stops = any(_sets(one, "e") for statement in statements for one in statement)
    has_pipefail = any(_sets(one, "pipefail") for statement in statements for one in statement)
    for number, statement in enumerate(statements):
        is_last = number == len(statements) - 1
        operators = {one.before for one in statement[1:]} - {"|"}
        for at, one in enumerate(statement):
            words, is_plain = _unwrapped(one.words)
            if not words:
                continue
            is_piped = at + 1 < len(statement) and statement[at + 1].before == "|"
            is_end = all(other.before == "|" for other in statement[at + 1 :])
            tells = is_plain and (not is_piped or has_pipefail)
            zero = tells and operators <= {"&&"} and (is_last or stops)
            # With pipefail another command of the pipe may be the one that failed.
            is_alone = not is_piped and not (has_pipefail and one.before == "|")
            nonzero = tells and is_last and not stops and is_alone
            # A failure of the list means that this command did not succeed.
            nonzero = nonzero and (is_end if operators <= {"&&"} else operators == {"||"})
            yield from _inner(words, zero=zero, nonzero=nonzero, depth=depth)


def _inner(
    words: tuple[str, ...], *, zero: bool, nonzero: bool, depth: int
) -> Iterator[ShellCommand]:
    if words[0] in _SHELLS and depth < _MOST_DEPTH:
        for at, word in enumerate(words[1:], start=1):
            if word.startswith("-") and word.endswith("c") and at + 1 < len(words):
                for one in _commands(words[at + 1], depth=depth + 1):
                    yield ShellCommand(
                        one.text, zero and one.zero_means_done, nonzero and one.nonzero_means_failed
                    )
                return
    yield ShellCommand(" ".join(words)[:2_000], zero, nonzero)


def _sets(one: _Simple, option: str) -> bool:
    if one.words[:1] != ("set",):
        return False
    if option == "pipefail":
        return "pipefail" in one.words
    return any(w.startswith("-") and "e" in w[1:] and w[1:].isalpha() for w in one.words[1:])


def _unwrapped(words: tuple[str, ...]) -> tuple[tuple[str, ...], bool]:
    """Return a command without what only runs it, and whether its exit code goes to the list."""
    is_plain = True
    for _ in range(8):
        if words and words[0] in _KEYWORDS:
            words, is_plain = words[1:], False
        elif words and "=" in words[0] and words[0].split("=", 1)[0].isidentifier():
            words = words[1:]
        elif (rest := _after_wrapper(words)) is not None:
            words = rest
        else:
            break
    if words:
        words = (words[0].rsplit("/", 1)[-1] or words[0], *words[1:])
    return words, is_plain


def _after_wrapper(words: tuple[str, ...]) -> tuple[str, ...] | None:
    if not words:
        return None
    program = (words[0].rsplit("/", 1)[-1], *words[1:3])
    for length in (3, 2, 1):
        own = _WRAPPERS.get(program[:length])
        if own is None or len(program[:length]) < length:
            continue
        rest = words[length:]
        while rest and rest[0].startswith("-"):
            rest = rest[1:]
        return rest[own:]
    return None


def _statements(text: str) -> list[list[_Simple]]:
    """Return lists of commands, each joined by `&&`, `||` or `|`; apart by `;`, `&`, newlines."""
    statements: list[list[_Simple]] = [[]]
    words: list[str] = []
    before = ""
    for is_operator, token in _tokens(text):
        if not is_operator:
            words.append(token)
            continue
        if words:
            statements[-1].append(_Simple(tuple(words), before))
            words = []
        if token in ("&&", "||", "|"):
            before = token
        else:
            before = ""
            if statements[-1]:
                statements.append([])
        if len(statements) > _MOST_COMMANDS:
            break
    if words:
        statements[-1].append(_Simple(tuple(words), before))
    return [one for one in statements if one]


def _tokens(text: str) -> Iterator[tuple[bool, str]]:
    """Yield (is operator, token): words without their quotes, redirections left out."""
    at, size = 0, len(text)
    heredocs: list[str] = []
    while at < size:
        char = text[at]
        if char == "\n":
            yield True, "\n"
            at += 1
            while heredocs:
                at = _after_heredoc(text, at, heredocs.pop(0))
        elif char.isspace():
            at += 1
        elif char == "#" and (at == 0 or text[at - 1].isspace()):
            end = text.find("\n", at)
            at = size if end < 0 else end
        elif text.startswith(("&&", "||"), at):
            yield True, text[at : at + 2]
            at += 2
        elif char in ";&|()":
            yield True, "|" if char == "|" else ";"
            at += 2 if text.startswith("|&", at) else 1
        elif char in "<>" or (char.isdigit() and text[at + 1 : at + 2] in ("<", ">")):
            at = _after_redirection(text, at, heredocs)
        else:
            word, at = _word(text, at)
            yield False, word


def _after_redirection(text: str, at: int, heredocs: list[str]) -> int:
    while at < len(text) and text[at].isdigit():
        at += 1
    is_heredoc = text.startswith("<<", at) and not text.startswith("<<<", at)
    while at < len(text) and text[at] in "<>&|-":
        at += 1
    while at < len(text) and text[at] in " \t":
        at += 1
    if at < len(text) and text[at] not in "\n;&|()":
        word, at = _word(text, at)
        if is_heredoc:
            heredocs.append(word)
    return at


def _after_heredoc(text: str, at: int, mark: str) -> int:
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        if text[at:end].strip() == mark:
            return end
        at = end + 1
    return len(text)


def _word(text: str, at: int) -> tuple[str, int]:
    parts: list[str] = []
    while at < len(text) and not text[at].isspace() and text[at] not in ";&|()<>":
        char = text[at]
        if char == "\\":
            parts.append(text[at + 1 : at + 2].replace("\n", ""))
            at += 2
        elif char in "'\"":
            end = _end_of_quote(text, at)
            parts.append(text[at + 1 : end])
            at = end + 1
        else:
            parts.append(char)
            at += 1
    return "".join(parts), at


def _end_of_quote(text: str, at: int) -> int:
    quote = text[at]
    at += 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" and quote == '"' else 1
    return min(at, len(text))
