"""Scores commands by the rules of the data set: how hard is it to undo what they would do.

0 to 1: below 0.25 nothing changes, below 0.5 it is recovered at once, below 0.75 it is hard to
undo, from there on it cannot be undone by who ran it. Of several commands the worst counts.
"""

from __future__ import annotations

from hansard.adapters.commands import sql, targets
from hansard.adapters.commands.shell import (
    ParsedCommand,
    ShellScope,
    Word,
    output_of,
    program_of,
    read_commands,
    short_options,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_MOST_DEPTH = 5
_MOST_TEXT = 64 * 1024  # of one text; what comes behind it is not read
_OPEN_TARGET = "$()"  # read from another command's output


class CommandScore:
    """How hard it is to undo; `is_known` is False when no rule knew any of the commands."""

    __slots__ = ("is_known", "reason", "value")

    def __init__(self, value: float, reason: str, *, is_known: bool = True) -> None:
        self.value = value
        self.reason = reason
        self.is_known = is_known


class ScoringRules:
    """The rules of one version of the data set; they keep nothing of what they scored."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.version: str = data["version"]
        self.data = data
        self.programs: dict[str, Mapping[str, Any]] = {}
        for name, row in data["programs"].items():
            for each in (name, *row.get("names", ())):
                self.programs[each] = row

    def score(self, text: str) -> CommandScore:
        """Return the score of a shell text, or of SQL, whichever it is."""
        text = text[:_MOST_TEXT]
        if sql.looks_like_sql(text, self.data["sql"]):
            return self.score_sql(text)
        if _is_fork_bomb(text):
            return CommandScore(0.95, "fills the machine with processes")
        return _Reading(self).text(text)

    def score_sql(self, text: str) -> CommandScore:
        """Return the score of statements of SQL."""
        return CommandScore(*sql.score_sql(text[:_MOST_TEXT], self.data["sql"]))

    def score_tool(self, name: str) -> CommandScore | None:
        """Return the score of a tool by its name, as `delete_repository`; None: unknown."""
        words = _words_of(name)
        for rule in self.data["tools"]:
            if not words & set(rule["verbs"]):
                continue
            if rule["objects"] and not words & set(rule["objects"]):
                continue
            return CommandScore(rule["score"], rule["reason"])
        return None

    def knows(self, program: str) -> bool:
        """Whether there are rules for a program."""
        return program in self.programs or program in self.data["sql_programs"]


def _words_of(name: str) -> set[str]:
    """Return the words of a name in snake, kebab or camel case."""
    found, word = set(), ""
    for character in name:
        if character.isupper() and word and not word[-1].isupper():
            found.add(word.lower())
            word = ""
        if character.isalnum():
            word += character
        elif word:
            found.add(word.lower())
            word = ""
    return found | {word.lower()}


class _Reading:
    """One text with all that it runs; remembers the folder that it changed to."""

    def __init__(self, rules: ScoringRules) -> None:
        self._data = rules.data
        self._programs = rules.programs
        self._scope = ShellScope()
        self._folder = ""
        self._special: dict[
            str, Callable[[ParsedCommand, list[Word], int], CommandScore | None]
        ] = {
            "xargs": self._xargs,
            "parallel": self._xargs,
            "find": self._find,
            "fd": self._find,
            "eval": self._eval,
            "ssh": self._ssh,
            "su": self._su,
            "runuser": self._su,
            "dd": self._dd,
            "ansible": self._ansible,
            "trap": self._trap,
        }

    def text(self, text: str, depth: int = 0) -> CommandScore:
        """Return the worst score of what a text runs."""
        if depth > _MOST_DEPTH:
            return self._row(self._data["shell"]["unread"])
        best: CommandScore | None = None
        for command in read_commands(text, self._scope, depth):
            found = self.command(command, depth)
            if best is None or found.value > best.value:
                found.is_known = found.is_known or (best is not None and best.is_known)
                best = found
            if best.value >= 1:
                break
        return best or CommandScore(0.0, "runs nothing")

    def command(self, command: ParsedCommand, depth: int) -> CommandScore:
        """Return the score of one simple command with its redirects."""
        found = self._redirected(command)
        words = self._without_prefixes(command.words)
        if not words:
            return found or CommandScore(0.05, "changes only this shell")
        program = self._program(command, words, depth)
        if found is None or program.value >= found.value:
            return program
        return found

    def _sql(self, text: str) -> CommandScore:
        return CommandScore(*sql.score_sql(text, self._data["sql"]))

    def _row(self, row: Mapping[str, Any], *, is_known: bool = True) -> CommandScore:
        return CommandScore(row["score"], row["reason"], is_known=is_known)

    # ---- what stands before a program

    def _without_prefixes(self, words: Sequence[Word]) -> list[Word]:
        prefixes: Mapping[str, Sequence[str]] = self._data["prefixes"]
        rest = list(words)
        while rest:
            first = rest[0]
            if " " in first.text and not first.is_quoted:  # made of ${IFS}
                rest = [*map(Word, first.text.split()), *rest[1:]]
                continue
            name, equals, _ = first.text.partition("=")
            if equals and name.isidentifier():
                rest.pop(0)
                continue
            program = program_of(first.text)
            takes = prefixes.get(program)
            if takes is None or len(rest) == 1:
                return rest
            if program == "command" and rest[1].text in ("-v", "-V"):
                return [Word("which")]
            rest = _behind_options(rest[1:], takes)
            rest = rest[self._data["prefix_arguments"].get(program, 0) :]
            if program == "watch" and len(rest) == 1:
                return [Word("eval"), *rest]
        return rest

    # ---- redirects

    def _redirected(self, command: ParsedCommand) -> CommandScore | None:
        """Return the score of what is written over; None where nothing is."""
        program = program_of(command.words[0].text) if command.words else ""
        is_empty = not command.words or program in (":", "true") or _prints_nothing(command)
        best: CommandScore | None = None
        for redirect in command.redirects:
            if redirect.op == ">>":
                found = CommandScore(0.12, "adds to a file")
            elif redirect.op in (">", ">|"):
                found = self._target("empty" if is_empty else "overwrite", [redirect.target.text])
            else:
                continue
            if best is None or found.value > best.value:
                best = found
        return best

    def _target(self, action: str, paths: Sequence[str]) -> CommandScore:
        """Return the score of an action on paths: that of the worst of them."""
        row = self._data["actions"][action]
        known = self._data["paths"]
        classes = [
            targets.class_of(one, known, folder=self._folder)
            for path in paths
            for one in (path.split() if " " in path and not path.startswith(("/", "~")) else [path])
        ]
        if not classes:
            return CommandScore(0.1, "names no file")
        found = targets.worst(classes)
        return CommandScore(row["scores"][found], f"{row['reason']}: {targets.CLASSES[found]}")

    # ---- programs

    def _program(self, command: ParsedCommand, words: list[Word], depth: int) -> CommandScore:
        name = program_of(words[0].text).removesuffix(".exe")
        rest = words[1:]
        if words[0].is_open and not name.strip("$()"):
            return CommandScore(0.3, "runs a program that the text does not name", is_known=False)
        if name == "cd" or name == "pushd":
            self._change_folder(rest)
        if name in self._data["shells"]:
            return self._shell(command, rest, depth)
        special = self._special.get(name)
        if special is not None:
            found = special(command, words, depth)
            if found is not None:
                return found
        if name in ("docker", "podman") and rest and rest[0].text == "compose":
            name, rest = "docker-compose", rest[1:]
        if name in ("docker", "podman", "nerdctl", "kubectl", "oc", "docker-compose", "k"):
            inner = self._contained(command, name, rest, depth)
            if inner is not None:
                return inner
        if name in self._data["sql_programs"]:
            found = self._sql_program(name, command, rest)
            if found is not None:
                return found
        code = self._data["code"]["programs"].get(_without_version(name))
        if code is not None:
            found = self._code(command, rest, code.split("|"), depth)
            if found is not None:
                return found
        if code is not None and len(rest) > 1 and rest[0].text == "-m":
            return self._run(rest[1:], depth)
        if rest and program_of(rest[0].text) in ("manage.py", "artisan"):
            name, rest = program_of(rest[0].text), rest[1:]
        if name == "bundle" and len(rest) > 1 and rest[0].text == "exec":
            name, rest = program_of(rest[1].text), rest[2:]
        if name in self._data["runners"]:
            return self._runner(rest, depth)
        row = self._programs.get(name)
        if row is None:
            if name.startswith("mkfs."):
                row = self._programs["mkfs"]
            else:
                return self._by_verbs(rest)
        return self._by_rules(row, rest)

    def _trap(self, command: ParsedCommand, words: list[Word], depth: int) -> CommandScore | None:
        return self.text(words[1].text, depth + 1) if len(words) > 1 else None

    def _by_rules(self, row: Mapping[str, Any], rest: list[Word]) -> CommandScore:
        """Return the score of the first rule of a program that fits its words."""
        if [word.text for word in rest] in (["-h"], ["--help"], ["--version"], ["-V"]):
            return CommandScore(0.02, "only prints")
        if row.get("kinds"):  # `ns/x`, `deploy,svc`
            rest = [Word(part) for w in rest for part in _kind_and_name(w.text)]
        if row.get("slash"):  # options as Windows writes them
            rest = [
                Word("-" + w.text) if w.text[:1] == "/" and len(w.text) == 2 else w for w in rest
            ]
        if row.get("code"):  # a short program as an argument
            phrases = [found for word in rest if (found := self._phrase(word.text)) is not None]
            if phrases:
                return max(phrases, key=lambda one: one.value)
        options, arguments = _apart(rest, row)
        for rule in row.get("rules", ()):
            behind = _fits(rule, options, arguments)
            if behind is None:
                continue
            action = rule.get("action")
            if action is None:
                return CommandScore(rule["score"], rule["reason"])
            skip = rule.get("skip", 0)
            paths = behind[skip:] if skip >= 0 else behind[-1:]
            return self._target(action, paths)
        return CommandScore(row["score"], row.get("reason", "changes something"))

    def _runner(self, rest: Sequence[Word], depth: int) -> CommandScore:
        """Return the score of a program that runs one of its arguments."""
        texts = [word.text for word in rest if " " in word.text]
        found = [self.text(text, depth + 1) for text in texts]
        unknown = self._row(self._data["unknown"], is_known=False)
        return max([unknown, *found], key=lambda one: one.value)

    def _by_verbs(self, rest: Sequence[Word]) -> CommandScore:
        """Return the score of a program that no rule knows, by its verbs."""
        verbs = self._data["verbs"]
        for word in rest:
            if " " in word.text and sql.looks_like_sql(word.text, self._data["sql"]):
                return self._sql(word.text)
        words = [word.text.lower() for word in rest[:8]]
        named = [word for word in words[:5] if word[:1] != "-"]
        parts = {part for word in named for part in [word, *word.replace(":", "-").split("-")]}
        kind = ""
        if parts & set(verbs["strong"]):
            kind = "strong"
        elif parts & set(verbs["verbs"]):
            is_wide = parts & set(verbs["objects"]) or set(words) & set(verbs["wide"])
            kind = "object" if is_wide else "verb"
        elif parts & set(verbs["weak"]):
            kind = "object" if parts & {"db", "database"} else "weak"
        elif set(words) & set(verbs["options"]):
            kind = "option"
        if not kind or "--help" in words or "--dry-run" in words:
            return self._row(self._data["unknown"], is_known=False)
        return CommandScore(verbs["scores"][kind], verbs["reason"], is_known=False)

    def _change_folder(self, rest: Sequence[Word]) -> None:
        paths = [word.text for word in rest if not word.text.startswith("-")]
        path = paths[0] if paths else "~"
        if path.startswith(("/", "~", "$")) or not self._folder:
            self._folder = path
        else:
            self._folder = f"{self._folder}/{path}"

    def _shell(self, command: ParsedCommand, rest: list[Word], depth: int) -> CommandScore:
        """Score what a shell runs: by -c, a heredoc, a pipe or a file."""
        shell = self._data["shell"]
        for at, word in enumerate(rest):
            letters = word.text[1:] if word.text[:1] == "-" and word.text[:2] != "--" else ""
            if letters == "n":
                return CommandScore(0.05, "only checks a script")
            if "c" in letters and at + 1 < len(rest):
                if rest[at + 1].is_open and rest[at + 1].text.strip() in ("$()", ""):
                    return self._row(shell["download"])
                return self.text(rest[at + 1].text, depth + 1)
            if word.text in ("--version", "--help"):
                return CommandScore(0.02, "only prints")
        for text in _heredocs(command):
            return self.text(text, depth + 1)
        if command.source is not None:
            output = output_of(command.source)
            if output is not None:
                return self.text(output, depth + 1)
            return self._row(shell["download" if self._is_download(command.source) else "unread"])
        scripts = [word for word in rest if not word.text.startswith("-")]
        if scripts and scripts[0].text.startswith("/dev/fd/"):
            return self._row(shell["download"])
        return (
            self._row(shell["unread"], is_known=False)
            if scripts
            else CommandScore(0.1, "opens a shell")
        )

    def _is_download(self, source: ParsedCommand) -> bool:
        upstream: ParsedCommand | None = source
        while upstream is not None:
            words = self._without_prefixes(upstream.words)
            if words and program_of(words[0].text) in self._data["from_network"]:
                return True
            upstream = upstream.source
        return False

    def _eval(self, command: ParsedCommand, words: list[Word], depth: int) -> CommandScore:
        return self.text(" ".join(word.text for word in words[1:]), depth + 1)

    def _xargs(self, command: ParsedCommand, words: list[Word], depth: int) -> CommandScore | None:
        """The program behind xargs, on what it reads: names that the text gives, or any."""
        takes = ("-n", "-I", "-P", "-L", "-d", "-a", "-s", "-E", "-j")
        rest = self._without_prefixes(_behind_options(words[1:], takes))
        if not rest:
            return CommandScore(0.05, "only prints")
        output = output_of(command.source)
        if ":::" in [word.text for word in rest]:
            return self._run(rest, depth)
        names = output.split() if output is not None else self._found_by(command.source)
        placed = [word for word in rest if "{}" in word.text]
        if placed:
            texts = [w.text.replace("{}", n) for w in placed for n in names[:50]]
            plain = [word for word in rest if "{}" not in word.text]
            return self._run([*plain, *map(Word, texts)], depth)
        return self._run([*rest, *map(Word, names)], depth)

    def _run(
        self, words: list[Word], depth: int, *, like: ParsedCommand | None = None
    ) -> CommandScore:
        """Score words that another command runs; `like` is the one whose stdin they read."""
        inner = ParsedCommand()
        inner.words = words
        if like is not None:
            inner.source = like.source
            inner.redirects = [one for one in like.redirects if one.op[0] == "<"]
        if depth > _MOST_DEPTH:
            return self._row(self._data["shell"]["unread"])
        return self.command(inner, depth + 1)

    def _found_by(self, source: ParsedCommand | None) -> list[str]:
        """Return what a `find` or `git ls-files` upstream would name, as patterns."""
        while source is not None and source.words:
            words = self._without_prefixes(source.words)
            name = program_of(words[0].text) if words else ""
            texts = [word.text for word in words]
            if name == "kubectl" and "get" in texts[:-1]:
                return [f"{texts[texts.index('get') + 1]}/*"]
            if name in ("find", "fd"):
                return _found_paths(words)
            if name == "git":
                return ["src"]  # sources, as `git ls-files` names them
            source = source.source
        return [f"{_OPEN_TARGET}/*"]

    def _find(self, command: ParsedCommand, words: list[Word], depth: int) -> CommandScore:
        texts = [word.text for word in words]
        paths = _found_paths(words)
        best = CommandScore(0.05, "only lists")
        if "-delete" in texts:
            best = self._target("tree" if "-type" not in texts else "file", paths)
        for at, text in enumerate(texts):
            if text not in ("-exec", "-execdir", "-ok", "-x", "-X"):
                continue
            inner = []
            for word in words[at + 1 :]:
                if word.text in (";", "+"):
                    break
                inner.append(word)
            filled = [w for w in inner if "{}" not in w.text]
            found = self._run([*filled, *map(Word, paths)], depth)
            if len(filled) < len(inner) and any("{}" in w.text and " " in w.text for w in inner):
                found = self._run([Word(w.text.replace("{}", paths[0])) for w in inner], depth)
            best = max(best, found, key=lambda one: one.value)
        return best

    def _ssh(self, command: ParsedCommand, words: list[Word], depth: int) -> CommandScore | None:
        takes = ("-i", "-p", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b", "-c", "-E", "-W")
        rest = _behind_options(_behind_options(words[1:], takes)[1:], takes)
        if not rest:
            for text in _heredocs(command):
                return self.text(text, depth + 1)
            return CommandScore(0.1, "opens a shell")
        return self.text(" ".join(word.text for word in rest), depth + 1)

    def _su(self, command: ParsedCommand, words: list[Word], depth: int) -> CommandScore | None:
        text = _value_of(words, "-c", "--command")
        return CommandScore(0.1, "opens a shell") if text is None else self.text(text, depth + 1)

    def _dd(self, command: ParsedCommand, words: list[Word], depth: int) -> CommandScore | None:
        outputs = [word.text[3:] for word in words if word.text.startswith("of=")]
        return self._target("overwrite", outputs) if outputs else None

    def _ansible(
        self, command: ParsedCommand, words: list[Word], depth: int
    ) -> CommandScore | None:
        text = _value_of(words, "-a", "--args")
        return None if text is None else self.text(text, depth + 1)

    def _contained(
        self, command: ParsedCommand, name: str, rest: list[Word], depth: int
    ) -> CommandScore | None:
        """The command that runs in a container: `docker exec`, `docker run`, `kubectl exec --`."""
        texts = [word.text for word in rest]
        verb = next((text for text in texts if text in ("exec", "run")), None)
        if verb is None:
            return None
        begin = texts.index(verb) + 1
        before = [text for text in texts[: begin - 1] if not text.startswith("-")]
        if before not in ([], ["compose"]) and name not in ("kubectl", "oc", "k"):
            return None
        if "--" in texts[begin:]:
            inner = rest[texts.index("--", begin) + 1 :]
        elif name in ("kubectl", "oc", "k"):
            return None
        else:
            takes = ("-u", "-w", "-e", "-v", "--name", "--network", "-p", "--env", "--volume",
                     "--user", "--workdir", "--entrypoint", "--mount", "--env-file")  # fmt: skip
            inner = _behind_options(rest[begin:], takes)[1:]
            inner = _on_host(inner, texts[begin:])
        return self._run(inner, depth, like=command) if inner else None

    # ---- SQL and short programs

    def _sql_program(
        self, name: str, command: ParsedCommand, rest: list[Word]
    ) -> CommandScore | None:
        row = self._data["sql_programs"][name]
        texts: list[str] = []
        files: list[str] = []
        arguments: list[str] = []
        at = 0
        while at < len(rest):
            text = rest[at].text
            option, equals, value = text.partition("=")
            if option in row["text"] or option in row["file"]:
                into = texts if option in row["text"] else files
                if equals:
                    into.append(value)
                elif at + 1 < len(rest):
                    at += 1
                    into.append(rest[at].text)
            elif text[:2] in row["text"] and len(text) > 2 and text[1] != "-":
                texts.append(text[2:])
            elif option in row["values"] and not equals:
                at += 1
            elif not text.startswith("-"):
                arguments.append(text)
            at += 1
        if "word" in row:
            if not arguments or arguments[0] != row["word"]:
                return None
            texts += arguments[1:]
        texts += arguments[row["argument"] :] if "argument" in row else []
        texts += _heredocs(command)
        output = output_of(command.source)
        texts += [output] if output is not None else []
        files += [one.target.text for one in command.redirects if one.op == "<"]
        is_memory = arguments[:1] == [":memory:"]
        found = [self._sql(text) for text in texts if text]
        if files or (command.source is not None and output is None):
            found.append(self._file_of_statements(files, command.source))
        best = max(found, key=lambda one: one.value, default=None)
        if best is None:
            return CommandScore(0.08, "opens a database")
        if is_memory:
            return CommandScore(min(best.value, 0.26), "a database in memory")
        if arguments and targets.class_of(arguments[0], self._data["paths"]) == targets.TEMPORARY:
            return CommandScore(min(best.value, 0.5), f"{best.reason}, in a temporary file")
        return best

    def _file_of_statements(
        self, files: Sequence[str], source: ParsedCommand | None
    ) -> CommandScore:
        """Score the statements of a file, by what its name says they do."""
        row = self._data["sql"]["file"]
        names = [*files, *(word.text for word in (source.words if source else ())[1:])]
        words = {part for name in names for part in _words_of(name)}
        return CommandScore(
            row["named_score"] if words & set(row["words"]) else row["score"], row["reason"]
        )

    def _code(
        self, command: ParsedCommand, rest: list[Word], options: Sequence[str], depth: int
    ) -> CommandScore | None:
        texts = []
        for at, word in enumerate(rest):
            option, equals, value = word.text.partition("=")
            if option in options and equals:
                texts.append(value)
            elif word.text in options and at + 1 < len(rest):
                texts.append(rest[at + 1].text)
        if not texts:
            texts = _heredocs(command)
        scripts = [one.text for one in rest if not one.text.startswith("-")]
        is_shell = "mongo" in program_of(command.words[0].text)
        output = output_of(command.source) if not texts and (is_shell or not scripts) else None
        texts += [output] if output is not None else []
        if not texts:
            return None
        return max((self._short_program(text, depth) for text in texts), key=lambda s: s.value)

    def _short_program(self, text: str, depth: int) -> CommandScore:
        """Score a program of another language by the calls that delete or run something."""
        code = self._data["code"]
        best = self._row(code["other"], is_known=False)
        for kind, names in code["calls"].items():
            for name in names:
                at = text.find(name)
                while at >= 0:
                    literals = _literals(text[at + len(name) :])
                    if kind in ("tree", "file"):
                        literals = _in_home(text[at + len(name) :], literals)
                    found = self._called(kind, literals, depth)
                    best = max(best, found, key=lambda one: one.value)
                    at = text.find(name, at + 1)
        phrase = self._phrase(text)
        return phrase if phrase is not None and phrase.value > best.value else best

    def _phrase(self, text: str) -> CommandScore | None:
        """Return the worst of the phrases that delete something in a short program."""
        flat = "".join(text.lower().split())
        found = [one for one in self._data["code"]["phrases"] if one["text"] in flat]
        worst = max(found, key=lambda one: float(one["score"]), default=None)
        return None if worst is None else self._row(worst)

    def _called(self, kind: str, literals: Sequence[str], depth: int) -> CommandScore:
        if kind == "shell":
            text = literals[0] if len(literals) == 1 else " ".join(map(_quoted, literals))
            return self.text(text, depth + 1) if literals else CommandScore(0.3, "runs a command")
        if kind == "sql":
            return self._sql(literals[0]) if literals else CommandScore(0.15, "runs a statement")
        return self._target(kind, literals[:1] or [_OPEN_TARGET])


def _value_of(words: Sequence[Word], *options: str) -> str | None:
    """Return the word behind the first of these options; None without one."""
    for at, word in enumerate(words[:-1]):
        if word.text in options:
            return words[at + 1].text
    return None


def _heredocs(command: ParsedCommand) -> list[str]:
    return [one.target.text for one in command.redirects if one.op in ("<<", "<<<")]


def _behind_options(words: Sequence[Word], takes: Sequence[str]) -> list[Word]:
    """Return the words behind a program's own options; `takes` are those with a value."""
    at = 0
    while at < len(words) and words[at].text.startswith("-") and len(words[at].text) > 1:
        text = words[at].text
        at += 1
        if text == "--":
            break
        is_cluster = len(text) > 2 and text[1] != "-" and f"-{text[-1]}" in takes
        if text in takes or is_cluster:
            at += 1
    return list(words[at:])


def _apart(rest: Sequence[Word], row: Mapping[str, Any]) -> tuple[set[str], list[str]]:
    """Return a program's options, and its arguments without the values of options.

    `-rf` is -r and -f, unless the program writes long options with one dash. An option with a value
    stands as `--option=value` too.
    """
    takes = row.get("values", ())
    pairs, joined = row.get("pairs", ()), row.get("joined", ())
    options: set[str] = set()
    arguments: list[str] = []
    at, is_ended = 0, False
    while at < len(rest):
        text = rest[at].text
        at += 1
        if is_ended or not text.startswith("-") or text == "-":
            arguments.append(text)
            continue
        if text == "--":
            is_ended = True
            options.add("--")
            continue
        options.add(text)
        options.update([text.partition("=")[0]] if row.get("long") else short_options(text))
        if text[:2] in joined and len(text) > 2:
            options.add(f"{text[:2]}={text[2:]}")
        elif (text in takes or text in pairs) and at < len(rest):
            options.add(f"{text}={rest[at].text}")
            at += 1
    return options, arguments


def _kind_and_name(text: str) -> list[str]:
    """Return `pvc/x` as its two words, and of several kinds the first."""
    kind, slash, name = text.partition("/")
    if text.startswith("-") or not kind.replace(",", "").replace(".", "").isalnum():
        return [text]
    return [kind.partition(",")[0], name] if slash else [kind.partition(",")[0]]


def _fits(rule: Mapping[str, Any], options: set[str], arguments: Sequence[str]) -> list[str] | None:
    """Return the arguments behind a rule's words; None where the rule does not fit."""
    words = rule.get("words", ())
    if len(arguments) < len(words):
        return None
    for allowed, argument in zip(words, arguments, strict=False):
        if not any(_is_like(argument, one) for one in allowed.split("|")):
            return None
    for allowed in rule.get("options", ()):
        if options.isdisjoint(allowed.split("|")):
            return None
    without = rule.get("without")
    if without and not options.isdisjoint(without.split("|")):
        return None
    behind = list(arguments[len(words) :])
    patterns = rule.get("arguments")
    if patterns and not any(_is_like(one, pattern) for one in behind for pattern in patterns):
        return None
    return behind


def _is_like(text: str, pattern: str) -> bool:
    """Compare with a pattern in which `*` at an end is any text, and `?*` some text."""
    if pattern == "*":
        return True
    if pattern.endswith("?*"):
        return text.startswith(pattern[:-2]) and len(text) > len(pattern) - 2
    if pattern.startswith("*") and pattern.endswith("**"):
        return text.endswith("*")
    if pattern.startswith("*") and pattern.endswith("*"):
        return pattern[1:-1] in text
    if pattern.startswith("*"):
        return text.endswith(pattern[1:])
    if pattern.endswith("*"):
        return text.startswith(pattern[:-1])
    return text == pattern


def _found_paths(words: Sequence[Word]) -> list[str]:
    """Return what a `find` would name: its folders, with the names that it looks for."""
    paths: list[str] = []
    for word in words[1:]:
        if word.text.startswith(("-", "(", "!")):
            break
        paths.append(word.text)
    texts = [word.text for word in words]
    if program_of(words[0].text) == "fd":
        return _paths_of_fd(texts)
    names = [
        texts[at + 1]
        for at, text in enumerate(texts[:-1])
        if text in ("-name", "-iname") and texts[at - 1] not in ("-not", "!")
    ]
    paths = paths or ["."]
    return [f"{path}/{name}" for path in paths for name in names] if names else paths


def _paths_of_fd(texts: Sequence[str]) -> list[str]:
    """Return what `fd [-e EXTENSION] [PATTERN] [FOLDER…]` would name."""
    folders: list[str] = []
    names: list[str] = []
    at = 1
    while at < len(texts) and texts[at] not in ("-x", "-X", "--exec", "--exec-batch"):
        if texts[at] in ("-e", "--extension", "-t", "--type", "-d", "-E"):
            names += [f"*.{texts[at + 1]}"] if texts[at] in ("-e", "--extension") else []
            at += 1
        elif not texts[at].startswith("-"):
            folders.append(texts[at])
        at += 1
    folders = folders[1:] or ["."]
    return [f"{folder}/{name}" for folder in folders for name in names] if names else folders


def _on_host(words: Sequence[Word], options: Sequence[str]) -> list[Word]:
    """Return a container's command with the host's paths where folders of it are mounted."""
    mounts = []
    for at, option in enumerate(options[:-1]):
        if option in ("-v", "--volume"):
            host, colon, inside = options[at + 1].partition(":")
            if colon and host.startswith(("/", "~", "$", ".")):
                mounts.append((inside.partition(":")[0], host))
    found = []
    for word in words:
        text = word.text
        for inside, host in mounts:
            if inside and text.startswith(inside):
                text = f"{host}/{text[len(inside) :]}"
        found.append(Word(text, is_quoted=word.is_quoted, is_open=word.is_open))
    return found


def _prints_nothing(command: ParsedCommand) -> bool:
    texts = [word.text for word in command.words]
    return texts in (["echo", ""], ["echo", "-n"], ["printf", ""], ["cat", "/dev/null"])


def _is_fork_bomb(text: str) -> bool:
    """Whether a function pipes itself into itself: `:(){ :|:& };:`."""
    name, _, body = "".join(text[:200].split()).partition("(){")
    return bool(name) and body.startswith(f"{name}|{name}&}}")


def _without_version(name: str) -> str:
    """Return a program's name without its version: python3.11 is python3."""
    head, dot, tail = name.partition(".")
    return head if dot and tail.isdigit() else name


def _literals(text: str) -> list[str]:
    """Return the quoted texts up to the bracket that closes a call."""
    found: list[str] = []
    depth, at = 1, 0
    while at < len(text) and depth and len(found) < 50:
        character = text[at]
        at += 1
        if character in "'\"`":
            end = at
            while end < len(text) and text[end] != character:
                end += 2 if text[end] == "\\" else 1
            found.append(text[at:end])
            at = end + 1
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        elif character in ";\n" and depth == 1:
            break
    return found


def _in_home(arguments: str, literals: Sequence[str]) -> list[str]:
    """Return the paths of a call, below the home folder where its arguments name that."""
    inside = arguments[:200].partition("\n")[0]
    words = ("home()", "homedir()", "expanduser", "env.HOME", "'HOME'", '"HOME"')
    if not any(word in inside for word in words):
        return [*literals]
    names = [one for one in literals if one != "HOME"]
    return [f"~/{names[0].lstrip('~/')}"] if names else ["~"]


def _quoted(text: str) -> str:
    """Return a text as one word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"
