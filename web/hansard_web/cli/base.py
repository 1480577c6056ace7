"""What all commands share: errors in one line, options from the table of settings, output."""

from __future__ import annotations

import codecs
import getpass
import json
import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, TypeVar

import apsw
import click

from hansard_compiler.errors import ConfigError, HansardError
from hansard_store.database.cursors import Page
from hansard_store.principals.model import is_own_name
from hansard_web.api.values import page_body
from hansard_web.app.config import Config, load_config, setting
from hansard_web.ui.format import file_size, printable

# Log lines of a command, on stderr: one mechanism for all loggers.

_BAR = "  │ "  # before the lines of a traceback


class _LogLine(logging.Formatter):
    """A record as one line, and its traceback set off below it.

    What is logged may hold recorded text: it begins no line of its own, and drives no terminal.
    """

    def __init__(self) -> None:
        super().__init__("%(levelname)s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without control characters and line breaks but those of the log."""
        record.message = record.getMessage()
        lines = [printable(self.formatMessage(record))]
        below = [self.formatException(record.exc_info)] if record.exc_info else []
        below += [record.stack_info] if record.stack_info else []
        lines += [_BAR + printable(one) for text in below for one in text.split("\n")]
        return "\n".join(lines)


def log_to_stderr() -> None:
    """Have warnings and errors of this process on stderr, unless a program logs by itself."""
    if logging.root.handlers:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(_LogLine())
    logging.root.addHandler(handler)
    logging.captureWarnings(True)
    threading.excepthook = _log_thread
    sys.excepthook = _log_end


def _log_thread(failure: threading.ExceptHookArgs) -> None:
    if failure.exc_value is None or issubclass(failure.exc_type, SystemExit):
        return
    name = failure.thread.name if failure.thread is not None else "a thread"
    error = (failure.exc_type, failure.exc_value, failure.exc_traceback)
    logging.getLogger("hansard").error("%s ended", name, exc_info=error)


def _log_end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    logging.getLogger("hansard").critical("ended", exc_info=(kind, error, trace))


_Function = TypeVar("_Function", bound=Callable[..., Any])
_Item = TypeVar("_Item")


class _Ended(click.ClickException):
    """An error in one line, whatever recorded text its message holds."""

    def format_message(self) -> str:
        return printable(self.message)

    def show(self, file: IO[Any] | None = None) -> None:
        from hansard_web.cli.tables import (
            print_lines,  # Rich: only what fails or prints pays for it
        )

        print_lines([f"Error: {self.format_message()}"], err=True)


class Failed(_Ended):
    """The command was understood and could not be done."""

    exit_code = 1


class Misused(_Ended):
    """The command cannot be meant; click exits 2 for its own such errors too."""

    exit_code = 2


class Command(click.Command):
    """A command whose own errors are one line: exit 2 for wrong use, 1 for what failed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            if type(error) is not click.UsageError:
                raise  # these name what was given as Python writes it
            raise click.UsageError(printable(error.message), ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        log_to_stderr()
        try:
            return super().invoke(ctx)
        except HansardError as error:
            kind = Misused if isinstance(error, ConfigError) else Failed
            raise kind(str(error)) from None
        except UnicodeEncodeError as error:
            if error.reason != "surrogates not allowed":
                raise
            raise Misused("a text that was given is not UTF-8") from None
        except apsw.Error as error:
            raise Failed(f"the store cannot be used: {error}") from None


class CommandGroup(click.Group):
    """A noun; its verbs are Commands."""

    command_class = Command
    group_class = type


def setting_options(*names: str) -> Callable[[_Function], _Function]:
    """Add an option for each named setting; values are read by `read_config`, not by click."""

    def add(function: _Function) -> _Function:
        for name in reversed(names):
            row = setting(name)
            function = click.option(
                row.flag,
                name,
                multiple=row.is_list,
                metavar=row.kind.upper() if "|" not in row.kind else f"[{row.kind}]",
                help=f"{row.sentence} Default: {row.default}. [{row.variable}]",
            )(function)
        return function

    return add


def json_option(function: _Function) -> _Function:
    """Add --json."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")(
        function
    )


def by_option(
    sentence: str = "Who says so. Default: the user of this machine.",
) -> Callable[[_Function], _Function]:
    """Add --by: the name of a person, that of the user unless given."""
    return click.option(
        "--by", callback=lambda _context, _option, name: name or user_name(), help=sentence
    )


def filter_options(
    sentences: Mapping[str, str], renamed: Mapping[str, str] = {}
) -> Callable[[_Function], _Function]:
    """Add an option for each filter of a list; `renamed` are those with another name inside."""

    def add(function: _Function) -> _Function:
        for name in reversed(tuple(sentences)):
            inside = renamed.get(name, name.replace("-", "_"))
            function = click.option(f"--{name}", inside, help=sentences[name])(function)
        return function

    return add


def read_option(flag: str, text: str, read: Callable[[str], _Item]) -> _Item:
    """Return what the text of an option says; raises Misused."""
    try:
        return read(text)
    except ValueError as error:
        raise Misused(f"{flag} is {text!r}; write {error}") from None


def read_config(**arguments: str | Sequence[str] | None) -> Config:
    """Return the configuration from options, environment and file."""
    return load_config(arguments, os.environ)


def confirm(question: str, *, yes: bool) -> None:
    """Ask, unless `--yes` is there; without a terminal nobody can be asked, so it must be."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise Misused(f"{question} Without a terminal --yes says so")
    click.confirm(question, abort=True)


def page_options(function: _Function) -> _Function:
    """Add --limit, --cursor and --json, as every list by pages has them."""
    cursor = click.option("--cursor", help="next_cursor of the page before.")
    limit = click.option("--limit", default="50", show_default=True, help="1 to 500.")
    return limit(cursor(json_option(function)))


def print_page(
    page: Page[_Item],
    body: Callable[[_Item], object],
    show: Callable[[Sequence[_Item]], None],
    *,
    as_json: bool,
) -> None:
    """Print a page of a list: as JSON, or as `show` does it, and how to ask for the next one."""
    if as_json:
        print_json(page_body(page, body))
        return
    show(page.items)
    if page.next_cursor:
        click.echo(f"more: --cursor {page.next_cursor}", err=True)


def print_answer(body: _Item, show: Callable[[_Item], None], *, as_json: bool) -> None:
    """Print a body: as JSON, or as `show` does it for people."""
    if as_json:
        print_json(body)
    else:
        show(body)


def print_json(value: object) -> None:
    """Print one JSON document on stdout; what senders put into it stays valid UTF-8."""
    click.echo(json.dumps(value, indent=2))


# Controls but line ends and tabs, and marks that reorder or break lines. In JSON these stand in
# strings alone, where the escape means the same.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)


def _for_terminal(chunks: Iterable[bytes]) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in (*chunks, b""):
        text = decoder.decode(chunk, final=not chunk)
        yield _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text).encode()


def write_bytes(chunks: Iterable[bytes], output: Path | None) -> None:
    """Write to a file, and say so on stderr; or to stdout, where a terminal gets no control
    characters.
    """
    try:
        if output is None:
            shown = _for_terminal(chunks) if sys.stdout.isatty() else chunks
            sys.stdout.buffer.writelines(shown)
            sys.stdout.buffer.flush()
            return
        with output.open("wb") as file:
            file.writelines(chunks)
            size_bytes = file.tell()
        click.echo(f"wrote {output}, {file_size(size_bytes)}", err=True)
    except BrokenPipeError:
        raise  # click ends quietly: the reader has seen enough
    except OSError as error:
        raise Failed(f"cannot write {output or 'to stdout'}: {error.strerror}") from None


# Who uses the command line.


def user_name() -> str:
    """Return the name of the user, as the record has it; a number where there is none.

    A user of the system whose name is one of Hansard's own, as servers have it, is `user-hansard`.
    """
    try:
        name = getpass.getuser()
    except (OSError, KeyError):  # a process without a name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return f"user-{name}" if is_own_name(name) else name
