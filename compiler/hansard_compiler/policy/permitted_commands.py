"""Reads a shell command's structure: which programs it would run and with which options.

Only plain commands are understood: words, quotes, and pipes between such commands. Whatever else a
shell can do (lists, redirection, substitution, variables, braces, globs, functions, comments) is
*not understood*, and a rule that permits only what it understands stays closed. That is why this is
no matching on strings: `'rm' -rf`, `r\\m -rf` and `/bin/rm -rf` are words like any other, and
`bash -c …` or a script is a program that no list of reading programs names.
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Outside quotes each of these means more than itself to some shell.
_SPECIAL = frozenset("|&;<>()$`\\\"'*?[]#~%!{}\n\r\0^")
_WITHIN_DOUBLE_QUOTES = frozenset("$`\\!\n\r\0")


@dataclass(frozen=True, slots=True)
class Permitted:
    """A program, perhaps with its subcommand, that may run; `options` None permits any option."""

    words: tuple[str, ...]
    options: frozenset[str] | None = None


def parse_permitted(value: Any) -> Permitted:
    """Read an entry: `"ls"`, `"git status"`, or `{"run": "git diff", "options": ["--stat"]}`.

    Raises ValueError, saying what was expected.
    """
    if isinstance(value, str) and value.split():
        return Permitted(tuple(value.split()))
    if isinstance(value, Mapping) and set(value) <= {"run", "options"}:
        run, options = value.get("run"), value.get("options")
        if isinstance(run, str) and run.split() and _is_texts(options):
            return Permitted(tuple(run.split()), frozenset(options or ()))
    raise ValueError('expected "program" or {"run": "program", "options": ["--option"]}')


def runs_only(command: str | Sequence[str], permitted: Sequence[Permitted]) -> bool:
    """Return whether a command is understood and runs nothing but what is permitted.

    `command` is a line for a POSIX shell or a list of arguments. A program named by path is not
    permitted by its name: `./ls` may be anything. An alias or function of the shell that runs the
    line is beyond what can be seen here: run commands without a shell, as a list.
    """
    commands = [list(command)] if not isinstance(command, str) else plain_commands(command)
    if not commands:
        return False
    return all(any(_permits(entry, words) for entry in permitted) for words in commands)


def plain_commands(line: str) -> list[list[str]]:
    """Return the words of each command of a pipe; nothing when anything is not understood."""
    parts = _split_at_pipes(line)
    commands = []
    for part in parts:
        try:
            words = shlex.split(part, comments=False, posix=True)
        except ValueError:  # a quote that does not close
            return []
        if not words or not words[0]:
            return []
        commands.append(words)
    return commands


def _split_at_pipes(line: str) -> list[str]:
    """Cut at single `|` outside quotes; nothing when the line holds more than a plain pipe."""
    parts, quote, start = [], "", 0
    for index, character in enumerate(line):
        if quote:
            if character == quote:
                quote = ""
            elif quote == '"' and character in _WITHIN_DOUBLE_QUOTES:
                return []
        elif character in "\"'":
            quote = character
        elif character == "|":
            parts.append(line[start:index])
            start = index + 1
        elif character in _SPECIAL:
            return []
    return [] if quote else [*parts, line[start:]]


def _permits(entry: Permitted, words: Sequence[str]) -> bool:
    head = tuple(words[: len(entry.words)])
    if head != entry.words or posixpath.sep in words[0]:
        return False
    if entry.options is None:
        return True
    options = (word for word in words[len(entry.words) :] if word.startswith("-") and word != "-")
    return all(word.partition("=")[0] in entry.options for word in options)


def _is_texts(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(v, str) for v in value))
