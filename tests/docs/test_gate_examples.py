"""The page about the gate, and its examples: run as they stand, with the words they promise."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright._impl._driver import compute_driver_executable

from tests.journeys.processes import Serving, hosting, patient
from tests.signing import credential
from tests.store.empty import empty_store

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
_BLOCK = re.compile(r"<!-- run -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
BLOCKS = _BLOCK.findall((ROOT / "docs" / "gate.md").read_text(encoding="utf-8"))


def run(*command: str, folder: Path) -> str:
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=patient(HANSARD_DATA=str(empty_store(folder).path)),
        timeout=240,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.parametrize(
    ("code", "output"), BLOCKS, ids=["one tool", "async", "a tool set", "two people"]
)
def test_what_the_page_shows_is_what_happens(code: str, output: str, tmp_path: Path) -> None:
    assert run(sys.executable, "-c", code, folder=tmp_path) == output


_EVERY_TOOL = """
import sys
sys.path.insert(0, sys.argv[1])
import hansard
from crm_agent import Crm, open_chat

hansard.init(embedded=True, service_name="crm")
crm = Crm()
chat = open_chat(crm, lambda text: None)
GIVEN = {
    "query": "Lena", "contact_id": 1, "company_id": 1, "deal_id": 1, "contact": "Lena Berg",
    "name": "Noor", "company": "Acme Corp", "title": "Renewal", "amount": 5, "due": "Friday",
    "kind": "call", "note": "later",
}
NEEDED = {
    "search_contacts": ["query"], "get_contact": ["contact_id"], "search_companies": ["query"],
    "get_company": ["company_id"], "get_deal": ["deal_id"], "list_activities": ["contact"],
    "create_contact": ["name", "company"], "create_deal": ["title", "amount"],
    "create_task": ["title", "due"], "log_activity": ["contact", "kind", "note"],
}
rows = lambda: [len(x) for x in (crm.contacts, crm.deals, crm.tasks, crm.activities)]
before = rows()
for tool in crm.tools():
    name = tool.__name__
    answer = chat.gate.call(name, {key: GIVEN[key] for key in NEEDED.get(name, [])})
    asks = isinstance(answer, hansard.Pending)
    print("asks" if asks else "runs", name)
assert rows() == before
"""


@pytest.mark.covers("CG-26")
def test_of_the_thirteen_tools_of_the_crm_nine_run_and_four_ask(tmp_path: Path) -> None:
    printed = run(sys.executable, "-c", _EVERY_TOOL, str(EXAMPLES), folder=tmp_path).splitlines()

    asking = {line.removeprefix("asks ") for line in printed if line.startswith("asks ")}
    assert asking == {"create_contact", "create_deal", "create_task", "log_activity"}
    assert sum(line.startswith("runs ") for line in printed) == 9


@pytest.mark.covers("CG-26", "CF-32")
def test_the_crm_reads_without_asking_and_asks_before_each_write(tmp_path: Path) -> None:
    told = run(sys.executable, str(EXAMPLES / "crm_agent.py"), folder=tmp_path)

    turns = [one for one in told.split("User: ") if one]
    answers = {turn.partition("\n\n")[0]: turn.partition("\n\n")[2] for turn in turns}
    assert answers["Show me my pipeline"] == "Agent: 1 open deal, worth 12,000.\n\n"
    maria = answers["Create a contact for Maria Garcia at Acme Corp, maria@acme.com"]
    assert "Create contact Maria Garcia, maria@acme.com, Acme Corp\n-- reply" in maria
    assert answers["yes"] == (
        "Agent: Done! Create contact Maria Garcia, maria@acme.com, Acme Corp.\n\n"
    )
    invented = answers["Create a contact for John Smith at Acme Corp"]
    assert "[email is not in the conversation]" in invented
    assert answers["actually, show me my pipeline"].startswith("Agent: Cancelled: Create contact J")
    assert answers["no"] == "Agent: Cancelled.\n\n"
    assert (
        "3. Create contact Cleo Fox"
        in answers["Create contacts for Ann Lee, Bob Ray and Cleo Fox at Acme Corp"]
    )
    assert answers["y"].count("Done!") == 2
    assert answers["Find Cleo"] == "Agent: Cleo Fox, Acme Corp\n\n"


_OFFERED = """
import json
from crm_agent import Crm
from hansard._gate.tools import ToolSet
print(json.dumps({one.name: one.effect for one in ToolSet(Crm().tools())}))
"""


def test_the_crm_offers_nine_tools_that_read_and_four_that_write(tmp_path: Path) -> None:
    # In a process of its own: its tools would be known by their names in this one.
    code = f"import sys; sys.path.insert(0, {str(EXAMPLES)!r}){_OFFERED}"
    offered = json.loads(run(sys.executable, "-c", code, folder=tmp_path))

    writes = {name for name, effect in offered.items() if effect == "write"}
    assert (len(offered), list(offered.values()).count("read")) == (13, 9)
    assert writes == {"create_contact", "create_deal", "create_task", "log_activity"}


# ---- other languages


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


def post(server: Serving, path: str, body: dict[str, Any]) -> None:
    headers = {"content-type": "application/json", **credential(server.data, path)}
    request = urllib.request.Request(f"{server.http}{path}", json.dumps(body).encode(), headers)
    urllib.request.urlopen(request, timeout=60).close()


def node() -> str:
    """Return a Node that takes TypeScript as it is: the one that drives the tests' browser."""
    return compute_driver_executable()[0]


DONE = {
    "approve.sh": "removing files older than 30 days from /srv/cache\ndone\n",
    "approve.ts": 'sent "The offer" to maria@acme.com\n',
}


@pytest.mark.parametrize("program", DONE)
@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_programs_of_other_languages_ask_over_http(
    server: Serving, decision: str, program: str
) -> None:
    with subprocess.Popen(
        [
            "sh" if program.endswith(".sh") else node(),
            str(EXAMPLES / "approvals_from_anywhere" / program),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=patient(HANSARD_ENDPOINT=server.http),
    ) as asking:
        assert asking.stdout is not None
        identity = asking.stdout.readline().split()[-1]
        post(server, f"/v1/approvals/{identity}/{decision}", {"by": "ana"})
        told = asking.stdout.read()

    found = json.loads(server.get(f"/v1/approvals/{identity}"))
    if decision == "approve":
        assert told == DONE[program]
        assert found["execution"]["state"] == "done"
    else:
        assert told == "rejected: nothing was done\n"
        assert found["execution"]["state"] == "none"
