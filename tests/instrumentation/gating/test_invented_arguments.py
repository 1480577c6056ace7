"""What a person is shown of an argument that nobody mentioned: page, command line and chat."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hansard
from hansard._backend.http import HttpDecisions
from hansard._config.settings import load_settings
from hansard.chat import ChatGate, TextChannel
from tests.journeys.processes import Serving, hosting
from tests.journeys.processes import hansard as run_command
from tests.web.html import parse

pytestmark = pytest.mark.slow

ASKED = "Create a contact for Maria Garcia. Her mail is Maria@Acme.com."
GIVEN, INVENTED = "maria@acme.com", "maria@company.com"


@hansard.tool(effect="write", describe="Create contact {name}, {email}")
def add_person(name: str, email: str) -> None: ...


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


@pytest.fixture
def decisions(server: Serving, tmp_path: Path) -> Iterator[HttpDecisions]:
    made = HttpDecisions(load_settings({"endpoint": server.http, "data": tmp_path}, {}))
    yield made
    made.close()


def on_the_page(server: Serving, identity: str) -> dict[str, str]:
    """Return the rows of the arguments that the page marks, as a person reads them."""
    page = parse(server.get(f"/approvals/{identity}").decode())
    rows = page.one("table", class_="args").all("tr", class_="is-flagged")
    return {row.one("th").text: row.text for row in rows}


@pytest.mark.covers("CG-29")
@pytest.mark.parametrize("email", [GIVEN, INVENTED])
def test_an_invented_address_is_marked_wherever_a_person_decides(
    server: Serving, decisions: HttpDecisions, email: str
) -> None:
    with hansard.gate(tools=[add_person], decisions=decisions) as gate:
        gate.note(ASKED)
        answer: Any = gate.call("add_person", {"name": "Maria Garcia", "email": email}).for_model()
    identity = answer["approval_id"]

    page = on_the_page(server, identity)
    shown = run_command("approvals", "show", identity, "--data", str(server.data)).stdout

    said = [line for line in shown.splitlines() if "not_in_context" in line]
    if email == GIVEN:
        assert (page, said) == ({}, [])
        return
    assert list(page) == ["email"]
    assert INVENTED in page["email"]
    assert "in no recorded input" in page["email"]
    assert len(said) == 1
    assert said[0].split()[0] == "email"
    assert INVENTED in said[0]


@hansard.tool(effect="write")
def pay(to: str, amount: float, lines: list[dict[str, Any]], urgent: bool) -> None: ...


@pytest.mark.covers("CG-29")
def test_invented_numbers_and_parts_of_lists_are_marked_as_texts_are(
    server: Serving, decisions: HttpDecisions
) -> None:
    asked = "Pay 1,200 to Noor Said: order 7741, and order 7742."
    lines = [{"order": 7741}, {"order": 7742}]
    with hansard.gate(tools=[pay], decisions=decisions) as gate:
        gate.note(asked)
        arguments = {"to": "Noor Said", "amount": 1200, "lines": lines, "urgent": True}
        as_asked: Any = gate.call("pay", arguments).for_model()
        wrong = {**arguments, "amount": 1300, "lines": [lines[0], {"order": 9999}]}
        invented: Any = gate.call("pay", wrong).for_model()

    assert on_the_page(server, as_asked["approval_id"]) == {}
    assert sorted(on_the_page(server, invented["approval_id"])) == ["amount", "lines"]


@pytest.mark.covers("CG-29")
def test_a_chat_says_it_before_the_yes(decisions: HttpDecisions) -> None:
    shown: list[str] = []

    def agent(message: str) -> str:
        chat.gate.call("add_person", {"name": "Maria Garcia", "email": INVENTED})
        return "Shall I?"

    channel = TextChannel("invented", shown.append)
    chat = ChatGate(channel, agent=agent, tools=[add_person], decisions=decisions)
    chat.handle(ASKED)

    assert f"{INVENTED} [email is not in the conversation]\n-- reply" in shown[0]
