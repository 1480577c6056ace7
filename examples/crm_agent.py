"""A chat over a small CRM: nine tools read, four write, and every write asks first.

    pip install 'hansard[embedded]'
    python examples/crm_agent.py               # plays a conversation and prints it
    python examples/crm_agent.py --talk        # talk to it yourself; Ctrl-D ends

No model and no key: the agent is a few rules, and it invents an e-mail address as models do. What
it asks for is real: it waits in the store of the data folder, and shows on the page `/approvals`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

import hansard
from hansard.chat import ChatGate, TextChannel

PLAYED = (
    "Show me my pipeline",
    "Create a contact for Maria Garcia at Acme Corp, maria@acme.com",
    "yes",
    "Create a contact for John Smith at Acme Corp",
    "actually, show me my pipeline",
    "Log a call with Maria Garcia: she wants the offer by Friday",
    "no",
    "Create contacts for Ann Lee, Bob Ray and Cleo Fox at Acme Corp",
    "remove 2",
    "y",
    "Find Cleo",
)


def _away(arguments: dict[str, Any], result: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Say how a new contact is taken back."""
    return "delete_contact", {"contact_id": result["id"]}


class Crm:
    """Contacts, companies, deals, tasks and activities, in memory."""

    def __init__(self) -> None:
        self.contacts: list[dict[str, Any]] = [
            {"id": 1, "name": "Lena Berg", "company": "Nordwind"}
        ]
        self.companies = [{"id": 1, "name": "Acme Corp"}, {"id": 2, "name": "Nordwind"}]
        self.deals: list[dict[str, Any]] = [
            {"id": 1, "title": "Nordwind renewal", "amount": 12_000, "stage": "offer"}
        ]
        self.tasks: list[dict[str, Any]] = []
        self.activities: list[dict[str, Any]] = []

    # ---- nine that read

    @hansard.tool(effect="read")
    def search_contacts(self, query: str) -> list[dict[str, Any]]:
        return [one for one in self.contacts if query.lower() in str(one["name"]).lower()]

    @hansard.tool(effect="read")
    def get_contact(self, contact_id: int) -> dict[str, Any] | None:
        return _by_id(self.contacts, contact_id)

    @hansard.tool(effect="read")
    def search_companies(self, query: str) -> list[dict[str, Any]]:
        return [one for one in self.companies if query.lower() in str(one["name"]).lower()]

    @hansard.tool(effect="read")
    def get_company(self, company_id: int) -> dict[str, Any] | None:
        return _by_id(self.companies, company_id)

    @hansard.tool(effect="read")
    def list_deals(self) -> list[dict[str, Any]]:
        return list(self.deals)

    @hansard.tool(effect="read")
    def get_deal(self, deal_id: int) -> dict[str, Any] | None:
        return _by_id(self.deals, deal_id)

    @hansard.tool(effect="read")
    def list_tasks(self) -> list[dict[str, Any]]:
        return list(self.tasks)

    @hansard.tool(effect="read")
    def list_activities(self, contact: str) -> list[dict[str, Any]]:
        return [one for one in self.activities if one["contact"] == contact]

    @hansard.tool(effect="read")
    def pipeline(self) -> dict[str, Any]:
        return {"open": len(self.deals), "worth": sum(one["amount"] for one in self.deals)}

    # ---- four that write

    @hansard.tool(effect="write", describe="Create contact {name}, {email}, {company}", undo=_away)
    def create_contact(self, name: str, company: str, email: str | None = None) -> dict[str, Any]:
        return _added(self.contacts, name=name, company=company, email=email)

    @hansard.tool(effect="write", describe="Create deal {title}, {amount}, in stage {stage}")
    def create_deal(self, title: str, amount: int, stage: str = "new") -> dict[str, Any]:
        return _added(self.deals, title=title, amount=amount, stage=stage)

    @hansard.tool(effect="write", describe="Create task {title}, due {due}")
    def create_task(self, title: str, due: str) -> dict[str, Any]:
        return _added(self.tasks, title=title, due=due)

    @hansard.tool(effect="write", describe="Log a {kind} with {contact}: {note}")
    def log_activity(self, contact: str, kind: str, note: str) -> dict[str, Any]:
        return _added(self.activities, contact=contact, kind=kind, note=note)

    # ---- what takes back; no agent is offered it

    @hansard.tool(effect="write", describe="Delete contact {contact_id}")
    def delete_contact(self, contact_id: int) -> None:
        self.contacts = [one for one in self.contacts if one["id"] != contact_id]

    def tools(self) -> list[Callable[..., Any]]:
        """The thirteen tools that an agent is offered."""
        return [
            *(self.search_contacts, self.get_contact, self.search_companies, self.get_company),
            *(self.list_deals, self.get_deal, self.list_tasks, self.list_activities, self.pipeline),
            *(self.create_contact, self.create_deal, self.create_task, self.log_activity),
        ]


def _by_id(rows: list[dict[str, Any]], wanted: int) -> dict[str, Any] | None:
    return next((one for one in rows if one["id"] == wanted), None)


def _added(rows: list[dict[str, Any]], **values: Any) -> dict[str, Any]:
    row = {"id": max((one["id"] for one in rows), default=0) + 1, **values}
    rows.append(row)
    return row


class Clerk:
    """The agent: rules where another has a model."""

    def __init__(self, call: Callable[[str, dict[str, Any]], Any]) -> None:
        self._call = call

    def answer(self, message: str) -> str:
        """Answer a message with the tools; what writes is only announced."""
        if found := re.match(
            r"Create (?:a )?contacts? for (.+?) at ([^,]+)(?:, (\S+@\S+))?$", message
        ):
            return self._create(re.split(r", | and ", found[1]), found[2], found[3])
        if found := re.match(r"Log a (\w+) with ([^:]+): (.+)", message):
            self._call("log_activity", {"kind": found[1], "contact": found[2], "note": found[3]})
            return f"I'll note the {found[1]} with {found[2]}."
        if found := re.match(r"Find (.+)", message):
            rows = self._call("search_contacts", {"query": found[1]})
            return "; ".join(f"{one['name']}, {one['company']}" for one in rows) or "Nobody."
        if "pipeline" in message:
            told = self._call("pipeline", {})
            return f"{told['open']} open deal, worth {told['worth']:,}."
        return "I can create contacts, log activities, find people and show the pipeline."

    def _create(self, names: list[str], company: str, email: str | None) -> str:
        for name in names:
            # As a model would, it makes up what it was not given.
            invented = f"{name.split()[0].lower()}@company.com"
            self._call(
                "create_contact", {"name": name, "company": company, "email": email or invented}
            )
        return f"I'll create {len(names)} contact{'s' if len(names) > 1 else ''} at {company}."


def open_chat(crm: Crm, write: Callable[[str], object]) -> ChatGate:
    """Return the conversation over a CRM."""
    clerk = Clerk(lambda name, arguments: chat.gate.call(name, arguments).for_model())
    chat = ChatGate(
        TextChannel("crm-demo", write), agent=clerk.answer, tools=crm.tools(), batch=True
    )
    return chat


def main(arguments: list[str]) -> None:
    hansard.init(embedded=True, service_name="crm")
    chat = open_chat(Crm(), lambda text: sys.stdout.write(f"Agent: {text}\n\n"))
    for message in sys.stdin if "--talk" in arguments else PLAYED:
        message = message.strip()
        if "--talk" not in arguments:
            sys.stdout.write(f"User: {message}\n\n")
        chat.handle(message, by="demo")


if __name__ == "__main__":
    main(sys.argv[1:])
