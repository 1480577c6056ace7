"""Recorded text that tries to print lines of its own on a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import Result

from hansard_store.approvals.records import Proposal
from hansard_store.approvals.service import ApprovalService
from hansard_store.database.data_folder import DataFolder
from tests.collector.ingesting import TRACE, Ingesting, log, logs, span, traces
from tests.journeys.processes import HANSARD
from tests.web.cli.conftest import Cli

FORGED = "approval    ffff"
BREAKS = ("\n", "\r", "\r\n", "\x0b", "\x0c", "\x1b[2J\x1b[H", "\x85", "\u2028", "\u202e", "\x00")
HOSTILE = "".join(f"a{one}{FORGED}" for one in BREAKS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Ingesting]:
    """A store in which everything that a sender says is hostile."""
    made = Ingesting(tmp_path / "data")
    message = json.dumps([{"role": "user", "content": HOSTILE}, {"role": HOSTILE, "content": "x"}])
    call = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": HOSTILE,
        "gen_ai.input.messages": message,
        "gen_ai.conversation.id": HOSTILE,
        "gen_ai.agent.name": HOSTILE,
        "user.id": HOSTILE,
        HOSTILE: HOSTILE,
    }
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": HOSTILE,
        "gen_ai.tool.call.arguments": json.dumps({"to": HOSTILE}),
        "gen_ai.tool.call.result": HOSTILE,
    }
    made.send(
        traces(
            [
                span(1, name=HOSTILE, attributes=call),
                span(2, parent=1, name=HOSTILE, attributes=tool, status=2),
            ],
        )
    )
    made.send(logs([log(1, text=HOSTILE)]))
    yield made
    made.close()


def propose(folder: DataFolder) -> str:
    """Propose an action, send it back with a note and bring it back; returns its id."""
    arguments = {"to": HOSTILE, f"na{HOSTILE}me": "x"}
    with ApprovalService(folder) as desk:
        made = desk.propose(Proposal("send", arguments, description=HOSTILE, agent="clerk"))
        identity = made.approval.approval_id
        desk.revise(identity, note=HOSTILE, by=HOSTILE)
        desk.repropose(identity, arguments, proposal_key=made.proposal_key)
        return identity


def lines_of(ended: Result) -> list[str]:
    assert ended.exit_code == 0, ended.output
    return re.split(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", ended.output)


def forged(lines: list[str]) -> list[str]:
    """Return lines that recorded text began, or in which it drives the terminal."""
    return [
        line for line in lines if line.startswith(FORGED) or not line.expandtabs().isprintable()
    ]


def test_no_command_prints_a_line_that_a_record_wrote(anywhere: Cli, store: Ingesting) -> None:
    approval = propose(store.folder)
    step = f"{TRACE.hex()}-{(2).to_bytes(8).hex()}"
    commands = [
        ["approvals", "list"],
        ["approvals", "show", approval],
        ["events", "list"],
        ["runs", "list"],
        ["runs", "show", TRACE.hex()],
        ["steps", "show", step],
        ["steps", "show", f"{TRACE.hex()}-{(1).to_bytes(8).hex()}"],
        ["search", "ffff"],
        ["usage"],
        ["verify"],
        ["annotations", "list"],
        ["detect"],
        ["diff", TRACE.hex(), TRACE.hex()],
        ["doctor"],
        ["memory", "list"],
        ["policy", "check", "--tool", HOSTILE.replace("\0", "")],
        ["receipts", "list"],
        ["runs", "record", TRACE.hex()],
        ["tasks", "list"],
        ["tokens", "list"],
        ["transcripts", "list"],
        ["gc"],
        ["repair"],
    ]

    printed = {
        " ".join(command[:2]): lines_of(anywhere(*command, "--data", str(store.folder.path)))
        for command in commands
    }

    assert {name: bad for name, lines in printed.items() if (bad := forged(lines))} == {}
    shown = "\n".join(printed["approvals show"])
    assert "\\n" in shown or "  │ " in shown
    assert "hidden: " in shown


def test_an_error_that_names_recorded_text_is_one_line(anywhere: Cli, store: Ingesting) -> None:
    ended = anywhere(
        "approvals", "show", HOSTILE.replace("\0", ""), "--data", str(store.folder.path)
    )

    assert ended.exit_code != 0
    assert forged(re.split(r"[\n\r]", ended.stderr)) == []


def on_a_terminal(*arguments: str, exits: int = 0, **environment: str) -> str:
    """Return what a command prints on a terminal, errors too."""
    ours, theirs = os.openpty()
    told = bytearray()
    with subprocess.Popen(
        [HANSARD, *arguments], stdout=theirs, stderr=theirs, env={**os.environ, **environment}
    ) as process:
        os.close(theirs)
        with suppress(OSError):  # the other end is closed
            while chunk := os.read(ours, 65_536):
                told += chunk
    os.close(ours)
    assert process.returncode == exits, told
    return told.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("export",), ("runs", "export", TRACE.hex()), ("events", "export"),
        ("steps", "show", f"{TRACE.hex()}-{1:016x}", "--raw"),
    ],
    ids=lambda command: command[0],
)  # fmt: skip
def test_an_export_on_a_terminal_has_no_control_characters(
    store: Ingesting, command: tuple[str, ...]
) -> None:
    told = on_a_terminal(*command, "--data", str(store.folder.path))

    assert not re.search("[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f\u2028-\u202e]", told)
    assert "\\u0085" in told or command[0] == "events"
    for line in told.splitlines():
        json.loads(line)


@pytest.mark.slow
@pytest.mark.parametrize("width", [40, 61, 80])
def test_no_text_that_is_folded_begins_a_line(tmp_path: Path, width: int) -> None:
    """A terminal breaks a long line wherever its edge is: a text chooses what stands there."""
    text = f"pay {FORGED} " * 60
    made = Ingesting(tmp_path / "data")
    message = json.dumps([{"role": "user", "content": f"needle {text}"}])
    call = {"gen_ai.operation.name": "chat", "gen_ai.input.messages": message}
    made.send(traces([span(1, name="chat", attributes=call)]))
    made.close()
    with ApprovalService(made.folder) as desk:
        identity = desk.propose(Proposal("send", {"to": text}, agent="clerk")).approval.approval_id
    altered = tmp_path / f"{text[:80].strip()}.json"
    altered.write_text("{")

    printed = {
        command: on_a_terminal(
            command, *more, "--data", str(made.folder.path), exits=exits,
            COLUMNS=str(width), TERM="dumb",
        )
        for command, exits, more in (
            ("search", 0, ["needle"]), ("approvals", 0, ["approve", identity]),
            ("import", 1, [str(altered)]), ("diff", 2, [text, text]),
        )
    }  # fmt: skip

    for command, told in printed.items():
        lines = told.splitlines()
        assert "ffff" in told
        assert forged(lines) == [], command
        assert [one for one in lines if len(one) > width] == [], command


def test_an_argument_too_many_is_named_in_one_line(anywhere: Cli) -> None:
    ended = anywhere("runs", "show", "1" * 32, f"two\n{FORGED}\x1b[2J")

    assert ended.exit_code == 2
    assert forged(re.split(r"[\n\r]", ended.stderr)) == []
    assert "unexpected extra argument" in ended.stderr
