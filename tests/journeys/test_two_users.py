"""The server under one user of the system, the agent under another with a token that only sends.

It is the set-up of docs/deploy.md ("An agent with a shell"). As root two users are really taken; as
anybody else both are one, and what keeps another user out is read off the modes of the files.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.journeys.processes import environment
from tests.signing import bearer
from tests.web.forms import form_token
from tests.web.principals.test_who_decides import DECISIONS

IS_ROOT: Final = os.getuid() == 0
SERVER, AGENT = 65533, 65534  # nobody has these; a person would make users with useradd
MAIN: Final = "import sys; from hansard._cli.main import main; sys.argv[0] = 'hansard'; main()"

PAYS: Final = """
    import sys, hansard
    from hansard import approvals

    @hansard.tool(effect="write", wait_s=60)
    def pay(to: str) -> str:
        return f"paid {to}"

    hansard.init(endpoint=sys.argv[1])
    print(pay(to="Maria"))
    hansard.shutdown()
"""


def become(user: int) -> Callable[[], None]:
    """Between fork and exec: be this user from there on, where that is possible."""

    def change() -> None:
        os.umask(0o022)
        if IS_ROOT:
            os.setgroups([])
            os.setgid(user)
            os.setuid(user)

    return change


def python_for_all(root: Path) -> tuple[Path, dict[str, str]]:
    """Return an interpreter that any user may run, and what its environment needs.

    That of the tests may be root's own (pyenv): then it is copied.
    """
    check = [sys.executable, "-c", "import hansard_web.app.server"]
    with suppress(PermissionError):
        if not subprocess.run(check, preexec_fn=become(AGENT), capture_output=True).returncode:
            return Path(sys.executable), {}
    base, lib = Path(sys.base_prefix), f"lib/python{sys.version_info[0]}.{sys.version_info[1]}"
    leave_out = shutil.ignore_patterns("site-packages", "test", "__pycache__", "idlelib", "*.a")
    shutil.copytree(base / lib, root / "python" / lib, ignore=leave_out, symlinks=True)
    for shared in (base / "lib").glob("libpython*"):
        shutil.copy(shared, root / "python" / "lib")
    made = root / "python" / "python"
    shutil.copy(Path(sys.executable).resolve(), made)
    paths = [one for one in sys.path if one and not one.startswith(str(base / "lib"))]
    return made, {
        "PYTHONHOME": str(root / "python"),
        "PYTHONPATH": os.pathsep.join(paths),
        "LD_LIBRARY_PATH": str(root / "python" / "lib"),
    }


@dataclass(frozen=True)
class House:
    """A server of one user, and what another user has."""

    root: Path
    process: subprocess.Popen[str]
    endpoints: dict[str, str]
    agent_token: str
    person_token: str
    python: Path
    needs: dict[str, str]

    @property
    def data(self) -> Path:
        return self.root / "server" / "data"

    @property
    def http(self) -> str:
        return self.endpoints["http"]

    def as_agent(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program as the agent's user, with its token."""
        return subprocess.run(
            words, capture_output=True, text=True, timeout=120, env=self.agents_environment(),
            cwd=self.root / "agent", preexec_fn=become(AGENT),
        )  # fmt: skip

    def agents_environment(self) -> dict[str, str]:
        home = str(self.root / "agent")
        own = {"HOME": home, "TMPDIR": home, "XDG_STATE_HOME": home, "HANSARD_DATA": f"{home}/own"}
        return environment(HANSARD_TOKEN=self.agent_token, **own, **self.needs)

    def ask(self, method: str, path: str, token: str, **more: Any) -> httpx2.Response:
        own = more.pop("headers", {})
        return httpx2.request(
            method, f"{self.http}{path}", headers={**bearer(token), **own}, timeout=240, **more
        )

    def propose(self, **more: Any) -> Any:
        wire = {"tool": "wire_money", "arguments": {"to": "me"}, "agent": "bot", **more}
        made = self.ask("POST", "/v1/approvals", self.agent_token, json=wire)
        assert made.status_code == 201, made.text
        return made.json()


def _home(root: Path, name: str, user: int) -> Path:
    made = root / name
    made.mkdir(mode=0o700)
    if IS_ROOT:
        os.chown(made, user, user)
    return made


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    root = Path(tempfile.mkdtemp(prefix="hansard-two-"))
    root.chmod(0o755)
    home = _home(root, "server", SERVER)
    _home(root, "agent", AGENT)
    python, needs = python_for_all(root)
    own = {"HOME": str(home), "TMPDIR": str(home), "XDG_STATE_HOME": str(home / "state"), **needs}
    hansard = [str(python), "-c", MAIN]

    def as_server(*words: str) -> list[str]:
        ended = subprocess.run(
            [*hansard, *words, "--data", str(home / "data")], capture_output=True, text=True,
            env=environment(**own), cwd=home, preexec_fn=become(SERVER), timeout=240, check=True,
        )  # fmt: skip
        return ended.stdout.split()

    # What docs/deploy.md says, in its order.
    [agent_token] = as_server("tokens", "add", "crm-agent", "--scope", "ingest")
    [person_token] = as_server("tokens", "add", "ana", "--scope", "decide")
    settings = home / "data" / "hansard.toml"
    settings.write_text('token = ["admin:a-secret-of-nobody-else"]\n')
    settings.chmod(0o600)
    if IS_ROOT:
        os.chown(settings, SERVER, SERVER)
    command = [*hansard, "serve", "--json", "--data", str(home / "data"), "--http-port", "0"]
    with subprocess.Popen(
        [*command, "--grpc-port", "0", "--socket", str(home / "socket")], stdout=subprocess.PIPE,
        text=True, env=environment(**own), cwd=home, preexec_fn=become(SERVER),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            endpoints = json.loads(process.stdout.readline())
            yield House(root, process, endpoints, agent_token, person_token, python, needs)
        finally:
            process.terminate()
            process.wait(30)
            shutil.rmtree(root)


def test_the_agent_sends_proposes_waits_runs_and_reports_with_a_token_that_only_sends(
    house: House,
) -> None:
    program = house.root / "pays.py"
    program.write_text(textwrap.dedent(PAYS))
    decided: list[int] = []

    def decide() -> None:
        for _ in range(400):
            found = house.ask(
                "GET", "/v1/approvals?status=awaiting&tool=pay", house.person_token
            ).json()
            for one in found["items"]:
                path = f"/v1/approvals/{one['approval_id']}/approve"
                decided.append(house.ask("POST", path, house.person_token, json={}).status_code)
                return
            threading.Event().wait(0.1)

    person = threading.Thread(target=decide)
    person.start()
    ended = house.as_agent(str(house.python), str(program), house.http)
    person.join()

    assert (ended.returncode, ended.stdout) == (0, "paid Maria\n"), ended.stderr
    assert decided == [200]
    [one] = house.ask("GET", "/v1/approvals?execution=done&tool=pay", house.person_token).json()[
        "items"
    ]
    assert (one["tool"], one["decided_by"], one["decided_method"]) == ("pay", "ana", "token")
    assert (one["requested_by"], one["execution"]["state"]) == (["crm-agent"], "done")
    runs = house.ask("GET", "/v1/runs", house.person_token).json()["items"]
    assert [run["status"] for run in runs] == ["ok"]


def test_the_agents_user_can_open_nothing_of_the_server(house: House) -> None:
    pid = house.process.pid
    paths = [house.data, *sorted(house.data.rglob("*")), house.root / "server" / "socket"]
    paths += [one for one in (house.root / "server" / "state").rglob("*") if one.is_file()]
    names = {path.name for path in paths}
    assert names >= {"hansard.db", "key", "hansard.toml", "server.json"}
    private = [path for path in paths if stat.S_IMODE(path.lstat().st_mode) & 0o077]
    assert private == []  # nothing of it is anybody else's, whichever user runs this test
    if not IS_ROOT:
        return

    proc = [f"/proc/{pid}/{one}" for one in ("environ", "mem", "maps", "fd", "cwd", "root/etc")]
    code = """
        import json, os, sys
        found = []
        for path in json.loads(sys.argv[1]):
            for act in (os.listdir, os.readlink, lambda one: open(one, "rb").read(1),
                        lambda one: open(one, "ab")):
                try:
                    act(path)
                except OSError:
                    continue
                found.append(path)
        try:
            os.kill(int(sys.argv[2]), 0)
            found.append("kill")
        except PermissionError:
            pass
        print(os.getuid(), found)
    """
    given = json.dumps([*map(str, paths), *proc])
    ended = house.as_agent(str(house.python), "-c", textwrap.dedent(code), given, str(pid))

    assert ended.stdout == f"{AGENT} []\n", ended.stderr
    # What anybody may read of a process says no secret.
    shown = Path(f"/proc/{pid}/cmdline").read_text()
    assert not re.search("secret|hst_|/signin", shown)


@pytest.mark.parametrize(
    "words",
    [
        ("approvals", "approve", "ID"),
        ("tokens", "add", "eve", "--scope", "decide"),
        ("tokens", "list"),
        ("open", "--print"),
        ("runs", "list"),
        ("backup", "./stolen.tar.zst"),
    ],
)
def test_no_command_on_the_data_folder_works_for_the_agents_user(
    house: House, words: tuple[str, ...]
) -> None:
    approval_id = house.propose()["approval_id"]
    given = [approval_id if word == "ID" else word for word in words]
    if not IS_ROOT:  # the folder would be this user's own: its mode is held above
        assert stat.S_IMODE(house.data.stat().st_mode) == 0o700
        return

    ended = house.as_agent(str(house.python), "-c", MAIN, *given, "--data", str(house.data))

    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    found = house.ask("GET", f"/v1/approvals/{approval_id}", house.person_token).json()
    assert found["status"] == "awaiting"


def test_no_route_decides_with_the_agents_token(house: House) -> None:
    made = house.propose()
    key = {"Hansard-Proposal-Key": made["proposal_key"]}
    answers = {}
    for route in sorted(DECISIONS):
        method, _, path = route.partition(" ")
        path = re.sub(r"\{[^}]+\}", made["approval_id"], path)
        answers[route] = house.ask(method, path, house.agent_token, json={}, headers=key)

    assert {one.status_code for one in answers.values()} == {403}
    found = house.ask("GET", f"/v1/approvals/{made['approval_id']}", house.person_token).json()
    assert found["status"] == "awaiting"


def test_a_browser_that_the_agent_signs_in_decides_nothing(house: House) -> None:
    made = house.propose()
    with httpx2.Client(base_url=house.http) as browser:
        page = browser.get("/signin")
        form = {"csrf": form_token(page.text), "token": house.agent_token}
        signed_in = browser.post("/signin", data=form)
        told = {"csrf": form["csrf"], "decision": "approve", "by": "ana"}
        decided = browser.post(f"/approvals/{made['approval_id']}", data=told)
        listed = browser.get("/approvals")

    assert signed_in.status_code == 303
    assert (decided.status_code, listed.status_code) == (403, 403)
    found = house.ask("GET", f"/v1/approvals/{made['approval_id']}", house.person_token).json()
    assert found["status"] == "awaiting"


def test_the_agent_reads_what_it_proposed_and_nothing_else(house: House) -> None:
    mine, other = house.propose(), house.propose(tool="other")
    path = f"/v1/approvals/{mine['approval_id']}"
    key = {"Hansard-Proposal-Key": mine["proposal_key"]}
    wrong = {"Hansard-Proposal-Key": other["proposal_key"]}

    own = house.ask("GET", path, house.agent_token, headers=key)
    refused = [
        house.ask("GET", path, house.agent_token),
        house.ask("GET", path, house.agent_token, headers=wrong),
        house.ask("GET", f"/v1/approvals/{'0' * 32}", house.agent_token, headers=key),
        house.ask("GET", "/v1/approvals", house.agent_token, headers=key),
        house.ask("GET", f"/approvals/{mine['approval_id']}", house.agent_token, headers=key),
        house.ask("GET", "/v1/runs", house.agent_token),
        house.ask("GET", "/v1/events", house.agent_token),
        house.ask("GET", "/v1/sql?q=SELECT+1", house.agent_token),
        house.ask("GET", "/live/runs", house.agent_token),
    ]

    assert (own.status_code, own.json()["status"]) == (200, "awaiting")
    assert [one.status_code for one in refused] == [403] * len(refused)


def test_mcp_opens_nothing_for_the_agents_token_and_nobody_is_anybody(house: House) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    accepts = {"Accept": "application/json, text/event-stream"}
    by_mcp = house.ask("POST", "/mcp", house.agent_token, json=call, headers=accepts)
    made = house.propose()
    path = f"/v1/approvals/{made['approval_id']}/approve"

    without = httpx2.post(f"{house.http}{path}", json={"by": "ana"})
    guessed = httpx2.post(f"{house.http}{path}", json={"by": "ana"}, headers=bearer("ana"))

    assert by_mcp.status_code == 403
    assert (without.status_code, guessed.status_code) == (401, 401)


def test_the_person_decides_and_the_agent_runs_it_once(house: House) -> None:
    made = house.propose()
    path = f"/v1/approvals/{made['approval_id']}"
    key = {"Hansard-Proposal-Key": made["proposal_key"]}

    early = house.ask("POST", f"{path}/claim", house.agent_token, json={}, headers=key)
    approved = house.ask("POST", f"{path}/approve", house.person_token, json={})
    waited = house.ask("GET", f"{path}?wait=5", house.agent_token, headers=key)
    claimed = house.ask("POST", f"{path}/claim", house.agent_token, json={}, headers=key)
    again = house.ask("POST", f"{path}/claim", house.agent_token, json={}, headers=key)
    body = {"claim_id": claimed.json()["claim_id"], "ok": True}
    reported = house.ask("POST", f"{path}/result", house.agent_token, json=body)

    assert (early.status_code, approved.status_code) == (409, 200)
    assert waited.json()["status"] == "approved"
    assert (claimed.status_code, again.status_code, reported.status_code) == (200, 409, 200)
    assert reported.json()["execution"]["state"] == "done"
