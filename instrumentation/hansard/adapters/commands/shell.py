"""Reads shell text into the simple commands that it would run, as far as the text shows.

A reader for warnings, not a shell: it never runs anything, it goes on where a shell would stop with
an error, and it takes every branch and every function body as run. Quotes, escapes, variables that
the text itself sets, aliases, heredocs, pipes, lists and command substitutions are understood.
No dataclasses and no `typing` in this package: a hook imports it in a new process for each call.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_DEPTH = 6  # of substitutions and scripts within scripts
_MOST_COMMANDS = 2_000
_MOST_EXPANDED = 1 << 18
_MOST_VALUE = 1 << 12
_BLANK = " \t\r"
_ENDS = frozenset(";&|\n()")
_KEYWORDS = frozenset(
    ("if", "then", "elif", "else", "fi", "do", "done", "while", "until", "{", "}", "!", "esac",
     "function", "time", "coproc")
)  # fmt: skip
_DECLARING = frozenset(("export", "declare", "local", "readonly", "typeset"))
_ESCAPED_IN_DOUBLE = '$`"\\\n'
_ANSI = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "e": "\x1b"}


class Word:
    """A word after quotes were removed.

    `is_open` says that a part of it is not known: a variable that the text does not set, or the
    output of a command. `is_quoted` says that a part stood in quotes, so it is no keyword or alias.
    """

    __slots__ = ("is_open", "is_quoted", "plain", "text")

    def __init__(
        self, text: str, *, is_quoted: bool = False, is_open: bool = False, plain: int = 0
    ) -> None:
        self.text = text
        self.plain = plain  # how many characters stand before its first quote
        self.is_quoted = is_quoted
        self.is_open = is_open


class Redirect:
    """`op` is one of > >> >| < <<< << &>; of a heredoc the target is its text."""

    __slots__ = ("op", "target")

    def __init__(self, op: str, target: Word) -> None:
        self.op = op
        self.target = target


class ParsedCommand:
    """A simple command; `source` is the command whose output it reads through a pipe."""

    __slots__ = ("redirects", "source", "words")

    def __init__(self) -> None:
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.source: ParsedCommand | None = None

    def __bool__(self) -> bool:
        return bool(self.words or self.redirects)


class ShellScope:
    """What a text has set so far: variables and aliases."""

    __slots__ = ("aliases", "room", "variables")

    def __init__(self) -> None:
        self.variables: dict[str, str] = {}
        self.aliases: dict[str, str] = {}
        self.room = _MOST_EXPANDED  # characters that variables may still be replaced by


def read_commands(
    text: str, scope: ShellScope | None = None, depth: int = 0
) -> list[ParsedCommand]:
    """Return the simple commands of a shell text, those of substitutions after their own.

    Never raises for any text; time is linear in its length for each level of nesting.
    """
    if depth > _MOST_DEPTH:
        return []
    return _Reader(text, scope or ShellScope(), depth).read()


class _Reader:
    """One pass over one text."""

    def __init__(self, text: str, scope: ShellScope, depth: int) -> None:
        self._text = text
        self._at = 0
        self._scope = scope
        self._depth = depth
        self._found: list[ParsedCommand] = []
        self._inner: list[ParsedCommand] = []  # of substitutions
        self._heredocs: list[tuple[Redirect, str, bool, bool]] = []
        self._command = ParsedCommand()
        self._source: ParsedCommand | None = None
        self._is_named = False  # the next word is a function's name
        self._loop: str | None = None  # a `for` whose list is being read

    def read(self) -> list[ParsedCommand]:
        text, size = self._text, len(self._text)
        while self._at < size and len(self._found) < _MOST_COMMANDS:
            character = text[self._at]
            if character in _BLANK:
                self._at += 1
            elif character == "#":
                end = text.find("\n", self._at)
                self._at = size if end < 0 else end
            elif character == "\n":
                self._at += 1
                self._end(is_pipe=False)
                self._read_heredocs()
            elif character in "<>" or text.startswith("&>", self._at) or self._is_numbered():
                self._redirect()
            elif character in _ENDS:
                self._operator(character)
            else:
                self._add_word(self._word())
        self._end(is_pipe=False)
        self._read_heredocs()
        return self._found + self._inner

    def _is_numbered(self) -> bool:
        """Whether a redirect with a file descriptor is here: `2>`."""
        following = self._text[self._at : self._at + 2]
        return len(following) == 2 and following[0].isdigit() and following[1] in "<>"

    def _operator(self, character: str) -> None:
        text = self._text
        double = text[self._at : self._at + 2]
        self._at += 2 if double in ("&&", "||", ";;", "|&") else 1
        is_pipe = character == "|" and double != "||"
        self._end(is_pipe=is_pipe)

    def _end(self, *, is_pipe: bool) -> None:
        command = self._command
        self._command = ParsedCommand()
        if self._loop is not None:
            listed = " ".join(word.text for word in command.words)
            self._scope.variables[self._loop] = listed[:_MOST_VALUE]
            self._loop, command = None, ParsedCommand()
        if command:
            command.source = self._source
            self._found.append(command)
        self._source = command if is_pipe and command else None

    def _add_word(self, word: Word) -> None:
        command = self._command
        name, equals, value = word.text.partition("=")
        is_assigned = equals and name.rstrip("+").isidentifier()
        if is_assigned and not command.words and (not word.is_quoted or len(name) < word.plain):
            self._scope.variables[name.rstrip("+")] = value[:_MOST_VALUE]
            return
        if self._is_named:
            self._is_named = False  # the name of a function
            return
        if command.words or word.is_quoted:
            if len(command.words) == 2 and command.words[0].text == "for" and word.text == "in":
                self._loop = command.words[1].text
                self._command = ParsedCommand()
                return
            if len(command.words) == 2 and command.words[0].text == "case" and word.text == "in":
                self._command = ParsedCommand()
                return
            command.words.append(word)
            self._note_alias()
            self._note_exported(word)
            return
        if word.text in _KEYWORDS:
            self._is_named = word.text == "function"
            return
        alias = self._scope.aliases.get(word.text)
        if alias is None:
            command.words.append(word)
            return
        inner = read_commands(alias, ShellScope(), self._depth + 1)
        if not inner:
            return
        self._found += inner[:-1]
        command.words += inner[-1].words

    def _note_exported(self, word: Word) -> None:
        name, equals, value = word.text.partition("=")
        if equals and self._command.words[0].text in _DECLARING and name.isidentifier():
            self._scope.variables[name] = value[:_MOST_VALUE]

    def _note_alias(self) -> None:
        words = self._command.words
        if words[0].text != "alias":
            return
        name, equals, value = words[-1].text.partition("=")
        if equals:
            self._scope.aliases[name] = value

    # ---- redirects and heredocs

    def _redirect(self) -> None:
        text = self._text
        if text[self._at].isdigit():
            self._at += 1
        for op in ("<<<", "<<-", "<<", "&>>", "&>", ">>", ">|", ">&", "<&", "<(", ">(", ">", "<"):
            if text.startswith(op, self._at):
                break
        self._at += len(op)
        if op in ("<(", ">("):
            self._substitution(")")
            self._command.words.append(Word("/dev/fd/63"))
            return
        while self._at < len(text) and text[self._at] in _BLANK:
            self._at += 1
        is_end = self._at >= len(text) or text[self._at] in "\n;&|<>()"
        if is_end and op not in (">&", "<&"):
            return
        word = self._word()
        if op in (">&", "<&"):
            return  # of one descriptor to another
        redirect = Redirect({"<<-": "<<", "&>>": ">>", "&>": ">"}.get(op, op), word)
        self._command.redirects.append(redirect)
        if op in ("<<", "<<-"):
            self._heredocs.append((redirect, word.text, op == "<<-", word.is_quoted))

    def _read_heredocs(self) -> None:
        for redirect, mark, strips, is_quoted in self._heredocs:
            lines = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                end = len(self._text) if end < 0 else end
                line = self._text[self._at : end]
                self._at = end + 1
                if (line.lstrip("\t") if strips else line) == mark:
                    break
                lines.append(line)
            body = "\n".join(lines)
            if not is_quoted:
                body = self._expanded(body)
            redirect.target = Word(body, is_quoted=True)
        self._heredocs = []

    def _expanded(self, body: str) -> str:
        """Return the text of an unquoted heredoc with what the text itself has set."""
        for name, value in self._scope.variables.items():
            count = body.count(f"${name}") + body.count(f"${{{name}}}") if name else 0
            if count and self._scope.room > count * len(value):
                self._scope.room -= count * len(value)
                body = body.replace(f"${{{name}}}", value).replace(f"${name}", value)
        start = body.find("$(")
        if start >= 0:
            inner = _Reader(body, self._scope, self._depth)
            inner._at = start + 2
            inner._substitution(")")
            self._inner += inner._inner
        return body

    # ---- words

    def _word(self) -> Word:
        text, size = self._text, len(self._text)
        parts: list[str] = []
        is_quoted = is_open = False
        plain = 0
        while self._at < size:
            character = text[self._at]
            if not is_quoted and character in "'\"":
                plain = sum(map(len, parts))
            if character in _BLANK or character in _ENDS or character in "<>":
                if character == "(" and parts and text.startswith("()", self._at):
                    self._at += 2  # a function: its body is read like any command
                    return Word("{")
                break
            self._at += 1
            if character == "\\":
                if self._at < size and text[self._at] != "\n":
                    parts.append(text[self._at])
                self._at += 1
            elif character == "'":
                is_quoted = True
                end = text.find("'", self._at)
                end = size if end < 0 else end
                parts.append(text[self._at : end])
                self._at = end + 1
            elif character == '"':
                is_quoted = True
                is_open |= self._double(parts)
            elif character == "$" and text.startswith("'", self._at):
                is_quoted = True
                self._ansi(parts)
            elif character in "$`":
                is_open |= self._dollar(character, parts)
            elif character == "{" and (choice := self._braces("".join(parts))) is not None:
                return Word(choice, is_quoted=is_quoted, is_open=is_open)
            else:
                parts.append(character)
        return Word("".join(parts), is_quoted=is_quoted, is_open=is_open, plain=plain)

    def _double(self, parts: list[str]) -> bool:
        text, size = self._text, len(self._text)
        is_open = False
        while self._at < size and text[self._at] != '"':
            character = text[self._at]
            self._at += 1
            if character == "\\" and self._at < size and text[self._at] in _ESCAPED_IN_DOUBLE:
                if text[self._at] != "\n":
                    parts.append(text[self._at])
                self._at += 1
            elif character in "$`":
                is_open |= self._dollar(character, parts)
            else:
                parts.append(character)
        self._at += 1
        return is_open

    def _ansi(self, parts: list[str]) -> None:
        """Read $'…', with the escapes that hide letters: \\x72, \\162."""
        text, size = self._text, len(self._text)
        self._at += 1
        while self._at < size and text[self._at] != "'":
            character = text[self._at]
            self._at += 1
            if character != "\\" or self._at >= size:
                parts.append(character)
                continue
            kind = text[self._at]
            self._at += 1
            digits = (
                text[self._at : self._at + 2] if kind == "x" else text[self._at - 1 : self._at + 2]
            )
            base = 16 if kind == "x" else 8
            try:
                if kind != "x" and not kind.isdigit():
                    raise ValueError
                parts.append(chr(int(digits, base)))
                self._at += 2
            except ValueError:
                parts.append(_ANSI.get(kind, kind))
        self._at += 1

    def _dollar(self, character: str, parts: list[str]) -> bool:
        """Read a variable or a substitution; True when its value is not known."""
        text = self._text
        if character == "`":
            return self._substituted(parts, "`")
        if text.startswith("((", self._at):
            end = text.find("))", self._at)
            self._at = len(text) if end < 0 else end + 2
            parts.append("0")
            return False
        if text.startswith("(", self._at):
            self._at += 1
            return self._substituted(parts, ")")
        if text.startswith("{", self._at):
            end = text.find("}", self._at)
            end = len(text) if end < 0 else end
            inside = text[self._at + 1 : end]
            self._at = end + 1
            return self._variable(inside, parts)
        start = self._at
        while self._at < len(text) and (text[self._at].isalnum() or text[self._at] == "_"):
            self._at += 1
        if self._at == start and self._at < len(text) and text[self._at] in "@*#?!$-":
            self._at += 1
        return self._variable(text[start : self._at], parts)

    def _variable(self, inside: str, parts: list[str]) -> bool:
        name = ""
        for character in inside:
            if not (character.isalnum() or character == "_"):
                break
            name += character
        if not name:
            parts.append(f"${inside}")
            return bool(inside)
        value = self._scope.variables.get(name)
        rest = inside[len(name) :]
        if value is not None and self._scope.room > len(value):
            self._scope.room -= len(value)
            parts.append(_cut(value, rest))
            return False
        if name == "IFS":
            parts.append(" ")
            return False
        if rest[:2] in (":-", "-"):
            parts.append(rest.lstrip(":-"))
            return False
        parts.append(f"${name}")
        return True

    def _substituted(self, parts: list[str], closing: str) -> bool:
        inner = self._substitution(closing)
        output = output_of(inner[-1]) if len(inner) == 1 or (inner and inner[-1].source) else None
        if output is None:
            parts.append("$()")
            return True
        parts.append(output.rstrip("\n"))
        return False

    def _substitution(self, closing: str) -> list[ParsedCommand]:
        """Read up to the closing mark; the commands in between are run too."""
        text, start = self._text, self._at
        depth, quote = 1, ""
        while self._at < len(text):
            character = text[self._at]
            self._at += 1
            if quote:
                if character == "\\" and quote == '"':
                    self._at += 1
                elif character == quote:
                    quote = ""
            elif character in "'\"" and closing == ")":
                quote = character
            elif character == "\\":
                self._at += 1
            elif character == closing:
                depth -= 1
                if not depth:
                    break
            elif character == "(" and closing == ")":
                depth += 1
        inside = text[start : self._at - (0 if depth else 1)]
        found = read_commands(inside, self._scope, self._depth + 1)
        self._inner += found
        return found

    def _braces(self, before: str) -> str | None:
        """Read {a,b}: the words that it makes; None where it is no choice of words."""
        text = self._text
        end = self._at
        while end < len(text) and text[end] not in " \t\n;|&'\"(){":
            end += 1
            if text[end - 1] == "}":
                break
        inside = text[self._at : end]
        if not inside.endswith("}") or "," not in inside or inside.startswith(","):
            return None
        after = end
        while after < len(text) and text[after] not in " \t\n;|&<>()'\"$`":
            after += 1
        suffix = text[end:after]
        self._at = after
        words = [f"{before}{one}{suffix}" for one in inside[:-1].split(",")]
        for word in words[:-1]:
            self._add_word(Word(word))
        return words[-1]


def _cut(value: str, rest: str) -> str:
    """Return a value as `${name%/}`, `${name:0:2}` and the like leave it; other forms leave all."""
    if rest.startswith(":") and rest[1:2].isdigit():
        numbers = rest[1:].split(":")
        if all(one.isdigit() for one in numbers):
            start = int(numbers[0])
            return value[start : start + int(numbers[1])] if len(numbers) > 1 else value[start:]
    return value


def output_of(command: ParsedCommand | None, depth: int = 0) -> str | None:
    """Return what a command prints, where the text alone shows it; None where it does not."""
    if command is None or not command.words or depth > _MOST_DEPTH:
        return None
    name, words = program_of(command.words[0].text), command.words[1:]
    if name == "pwd":
        return "."
    if name == "mktemp" and not any(word.text.startswith(("-p", "--tmpdir")) for word in words):
        return "/tmp/made"  # a file or folder of the command's own
    if name in ("echo", "printf"):
        return _printed(name, words)
    for redirect in command.redirects:
        if redirect.op in ("<<", "<<<") and name in ("cat", "tee", "base64"):
            return _filtered(name, words, redirect.target.text)
    if name in ("base64", "cat", "tee", "tr", "rev", "xxd"):
        before = output_of(command.source, depth + 1)
        return None if before is None else _filtered(name, words, before)
    return None


def _printed(name: str, words: list[Word]) -> str | None:
    if any(word.is_open for word in words):
        return None
    texts = [word.text for word in words]
    while name == "echo" and texts and texts[0] in ("-e", "-n", "-en", "-ne", "-E"):
        texts.pop(0)
    if name == "printf" and texts:
        form, *values = texts[1:] if texts[0] == "--" else texts
        for value in values:
            form = form.replace("%s", value, 1).replace("%b", value, 1)
        return form.replace("\\n", "\n")
    return " ".join(texts).replace("\\n", "\n")


def _filtered(name: str, words: list[Word], text: str) -> str | None:
    if name in ("cat", "tee"):
        return text
    if name == "rev":
        return text.rstrip("\n")[::-1]
    options = [word.text for word in words]
    if name == "base64" and any(one in ("-d", "-D", "--decode", "-di") for one in options):
        import binascii

        try:
            return binascii.a2b_base64(text.encode()).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return None
    if name == "xxd" and "-r" in "".join(options):
        try:
            return bytes.fromhex(text.strip()).decode("utf-8", "replace")
        except ValueError:
            return None
    return None


def program_of(text: str) -> str:
    """Return a program's name without its path, as `/bin/rm` is `rm`."""
    return text.replace("\\", "/").rpartition("/")[2]


def short_options(word: str) -> Iterator[str]:
    """Yield the options in a word: `-rf` is -r and -f, `--force=x` is --force."""
    if word.startswith("--"):
        yield word.partition("=")[0]
    elif len(word) > 1 and word[0] == "-":
        yield word.partition("=")[0]
        for character in word[1:]:
            yield f"-{character}"
