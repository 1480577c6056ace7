"""The page about instrumenting: its blocks run as they stand and print what it says they print."""

from __future__ import annotations

import difflib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.instrumentation.clients.provider import providing
from tests.journeys.processes import Serving, hosting, patient

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "instrument.md"
_BLOCK = re.compile(
    r"<!-- (run|before|after) -->\n```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL
)


@dataclass(frozen=True)
class Block:
    mark: str
    code: str
    output: str


BLOCKS = [Block(*found) for found in _BLOCK.findall(PAGE.read_text(encoding="utf-8"))]


README = [Block(*found) for found in _BLOCK.findall((ROOT / "README.md").read_text("utf-8"))]


def block(mark: str) -> Block:
    [found] = [one for one in BLOCKS if one.mark == mark]
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with hosting(tmp_path_factory.mktemp("server")) as running:
        yield running


def run(code: str, server: Serving, folder: Path) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=patient(HANSARD_ENDPOINT=server.http, HANSARD_DATA=str(folder)),
        timeout=240,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return ended.stdout


@pytest.mark.covers("DC-07", "SD-01", "SD-04", "SD-05")
@pytest.mark.parametrize("one", BLOCKS, ids=lambda one: f"{one.mark} {one.code[:40]!r}")
def test_a_block_runs_and_prints_what_the_page_says(
    one: Block, server: Serving, tmp_path: Path
) -> None:
    printed = run(one.code, server, tmp_path)

    assert printed == (block("after").output if one.mark == "before" else one.output)


@pytest.mark.covers("DC-12", "SD-01", "SD-04", "SD-05")
def test_the_readme_shows_three_uses_and_its_snippets_run(server: Serving, tmp_path: Path) -> None:
    printed = [run(one.code, server, tmp_path) for one in README]

    assert printed == ["Your order is in the post.\n", ""]
    [told] = json.loads(server.get("/v1/runs?q=Refund&limit=1"))["items"]
    assert (told["status"], told["tool_calls"], told["last_output"]) == ("ok", 1, "Refunded.")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    uses = re.findall(r"^### \d\. (.+)$", text, re.MULTILINE)
    assert len(uses) == 3


def test_the_model_call_of_the_readme_is_a_conversation_with_its_tokens(
    server: Serving, tmp_path: Path
) -> None:
    [code] = re.findall(
        r"<!-- model -->\n```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL
    )

    with providing() as provider:
        ended = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=patient(
                HANSARD_ENDPOINT=server.http,
                HANSARD_DATA=str(tmp_path),
                OTEL_SERVICE_NAME="the-readme",
                OPENAI_API_KEY="none",
                OPENAI_BASE_URL=f"{provider.address}/v1",
            ),
            timeout=240,
        )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "Grüße!\n", "")
    [shown] = json.loads(server.get("/v1/runs?service=the-readme"))["items"]
    assert (shown["model_calls"], shown["tokens"]["input"], shown["tokens"]["output"]) == (
        1, 100, 20,
    )  # fmt: skip
    page = server.get(f"/runs/{shown['run_id']}?view=conversation").decode()
    assert "Where is order 7?" in page
    assert "Grüße!" in page


@pytest.mark.covers("DC-13", "OT-01")
def test_instrumenting_only_adds_lines_and_the_run_shows_up(
    server: Serving, tmp_path: Path
) -> None:
    before, after = block("before").code.splitlines(), block("after").code.splitlines()
    changes = [line for line in difflib.ndiff(before, after) if not line.startswith("  ")]
    added = [line[2:] for line in changes if line.startswith("+ ") and line[2:].strip()]

    run(block("after").code, server, tmp_path)

    assert [line for line in changes if line.startswith("- ")] == []
    assert added == ["import hansard", "hansard.init()", "@hansard.tool", "@hansard.agent"]
    newest = json.loads(server.get("/v1/runs?agent=clerk&limit=1"))["items"][0]
    steps = json.loads(server.get(f"/v1/runs/{newest['run_id']}/steps"))["items"]
    assert [step["name"] for step in steps] == ["invoke_agent clerk", "execute_tool find_order"]


def test_the_session_of_the_page_shows_all_it_told(server: Serving, tmp_path: Path) -> None:
    [code] = [one.code for one in BLOCKS if "start_run(\n" in one.code]

    run(code, server, tmp_path)

    [told] = json.loads(server.get("/v1/runs?conversation=c-42&limit=1"))["items"]
    assert (told["domain"], told["status"], told["user_id"]) == ("support", "ok", "ada")
    assert (told["first_input"], told["last_output"]) == (
        "Refund order 7",
        "I could not refund it.",
    )
    steps = json.loads(server.get(f"/v1/runs/{told['run_id']}/steps"))["items"]
    assert [(step["name"], step["role"], step["status"]) for step in steps] == [
        ("invoke_agent clerk", "agent", "unset"),
        ("decide", "llm", "unset"),
        ("execute_tool find_order", "tool", "unset"),
        ("execute_tool refund", "tool", "error"),
    ]


def test_no_whole_program_is_left_out() -> None:
    text = PAGE.read_text(encoding="utf-8")
    fenced = re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    whole = [code for code in fenced if "import hansard" in code]

    assert whole == [one.code for one in BLOCKS if one.mark != "before"]
    assert len(whole) >= 4
