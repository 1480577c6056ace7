"""`hansard hook` from outside: what it prints, that it never stands in the way, what it loads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.instrumentation.hooks.hook_events import (
    NOBODY,
    PATIENT,
    bash,
    event,
    eventually,
    hook,
    spooled,
)
from tests.journeys.processes import HANSARD, environment

pytestmark = pytest.mark.slow

PRE = "pre-tool-use"
DANGEROUS = (
    "rm -rf /",
    "git push --force",
    'psql -c "DROP DATABASE prod"',
    "kubectl delete ns prod",
    "bash -c 'rm -rf ~'",
    "echo 'rm -rf /' | sh",
    "sh <<EOF\nrm -rf /\nEOF",
    "terraform destroy -auto-approve",
    "aws s3 rm s3://b --recursive",
    "npm publish",
    "dd if=/dev/zero of=/dev/sda",
    "alias x='git push -f'; x",
    "mysql -e 'TRUNCATE orders'",
    "docker volume rm pgdata",
    "find / -delete",
)
HARMLESS = (
    "git status",
    "ls -la",
    'echo "rm -rf /"',
    'grep -r "DROP TABLE" .',
    "git log --grep=force",
    "rm -rf node_modules",
    "git push --dry-run --force",
    "kubectl get pods",
    "terraform plan",
    "pytest -q",
    "psql -c 'select 1'",
    "docker ps -a",
    "npm test",
    "cat delete_all.sh",
    "git commit -m 'never rm -rf /'",
)


@pytest.mark.covers("DI-16", "DI-17")
@pytest.mark.parametrize("command", DANGEROUS)
def test_an_agent_is_warned_before_what_cannot_be_undone(tmp_path: Path, command: str) -> None:
    ended = hook(PRE, bash(command), tmp_path, HANSARD_HOOK_RECORD="false")

    assert (ended.returncode, ended.stderr) == (0, b"")
    printed = json.loads(ended.stdout)
    specific = printed["hookSpecificOutput"]
    assert specific["hookEventName"] == "PreToolUse"
    assert "may not be undone" in specific["additionalContext"]
    assert printed["systemMessage"] == specific["additionalContext"]
    assert "permissionDecision" not in specific  # it only warns


@pytest.mark.covers("DI-18")
@pytest.mark.parametrize("command", HARMLESS)
def test_nothing_is_said_of_what_can_be_undone(tmp_path: Path, command: str) -> None:
    ended = hook(PRE, bash(command), tmp_path, HANSARD_HOOK_RECORD="false")

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.covers("DI-18")
def test_without_an_evaluator_nothing_is_said(tmp_path: Path) -> None:
    ended = hook(PRE, bash("rm -rf /"), tmp_path, HANSARD_HOOK_CLASSIFIER="off")

    assert (ended.returncode, ended.stdout) == (0, b"")


@pytest.mark.covers("DI-20")
def test_the_threshold_is_a_setting(tmp_path: Path) -> None:
    (tmp_path / "hansard.toml").write_text("[sdk]\nhook_threshold = 0.6\n")
    given = bash("git push --force-with-lease")

    by_file = hook(PRE, given, tmp_path)
    by_variable = hook(PRE, given, tmp_path, HANSARD_HOOK_THRESHOLD="0.85")
    by_option = hook(PRE, given, tmp_path, "--threshold=0.5", HANSARD_HOOK_THRESHOLD="0.85")

    assert [bool(one.stdout) for one in (by_file, by_variable, by_option)] == [True, False, True]


def test_tools_of_other_kinds_are_read_too(tmp_path: Path) -> None:
    for tool, given in (
        ("mcp__postgres__query", {"sql": "DROP TABLE users"}),
        ("execute_sql", {"query": "delete from users"}),
        ("kubectl", {"args": ["delete", "namespace", "prod"]}),
        ("mcp__k8s__run", {"command": ["kubectl", "delete", "ns", "prod"]}),
        ("mcp__github__delete_repository", {"repo": "a/b"}),
    ):
        sent = event("PreToolUse", tool_name=tool, tool_input=given)
        assert hook(PRE, sent, tmp_path, HANSARD_HOOK_RECORD="false").stdout, tool
    for tool, given in (
        ("Write", {"file_path": "/a", "content": "rm -rf /"}),
        ("Read", {"file_path": "/etc/passwd"}),
        ("mcp__postgres__query", {"sql": "select 'drop table users'"}),
    ):
        sent = event("PreToolUse", tool_name=tool, tool_input=given)
        assert not hook(PRE, sent, tmp_path, HANSARD_HOOK_RECORD="false").stdout, tool


def test_other_senders_get_a_form_of_their_own(tmp_path: Path) -> None:
    plain = {"session_id": "s", "tool_name": "shell", "tool_input": {"command": "rm -rf /"}}
    gemini = plain | {"hook_event_name": "BeforeTool", "tool_name": "run_shell_command"}

    assert hook(PRE, plain, tmp_path).stdout.startswith(b"Hansard: this call may not be undone")
    assert set(json.loads(hook(PRE, gemini, tmp_path).stdout)) == {"systemMessage"}
    question = json.loads(hook(PRE, bash("rm -rf /"), tmp_path, "--ask").stdout)
    assert question["hookSpecificOutput"]["permissionDecision"] == "ask"


GARBAGE = (
    b"",
    b"\n",
    b"{",
    b"null",
    b"[]",
    b"42",
    b'"rm -rf /"',
    b"\xff\xfe\x00",
    b"{}",
    b'{"tool_name": 1, "tool_input": 2, "session_id": []}',
    b'{"tool_name": "Bash", "tool_input": null}',
    b'{"tool_name": "Bash", "tool_input": {"command": 7}}',
    b'{"tool_name": "Bash", "tool_input": {"command": "\\ud800 \\u0000"}, "session_id": "\\ud800"}',
    b"[" * 100_000,
    b'{"a":' * 50_000,
)


@pytest.mark.covers("DI-19")
@pytest.mark.parametrize("given", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_passed_over(tmp_path: Path, given: bytes) -> None:
    for verb in (PRE, "post-tool-use", "session-start", "stop"):
        ended = hook(verb, given, tmp_path)

        assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.covers("DI-19")
def test_twenty_megabytes_are_passed_over(tmp_path: Path) -> None:
    given = json.dumps(bash("rm -rf / #" + "x" * (20 << 20))).encode()

    ended = hook(PRE, given, tmp_path)

    assert (ended.returncode, ended.stdout) == (0, b"")


@pytest.mark.covers("DI-19")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&- 2>&-", "2>&-"])
def test_closed_pipes_are_no_error(tmp_path: Path, closed: str) -> None:
    given = json.dumps(bash("rm -rf /"))
    ended = subprocess.run(
        ["sh", "-c", f'printf %s "$GIVEN" | "$HANSARD" hook {PRE} {closed}'],
        env=environment(HANSARD_DATA=str(tmp_path), HANSARD_ENDPOINT=NOBODY, GIVEN=given)
        | {"HANSARD": HANSARD},
        timeout=240,
        check=False,
    )

    assert ended.returncode == 0


@pytest.mark.covers("DI-19")
def test_a_sender_that_never_ends_is_not_waited_for(tmp_path: Path) -> None:
    with subprocess.Popen(
        [HANSARD, "hook", PRE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(HANSARD_DATA=str(tmp_path), HANSARD_HOOK_TIMEOUT_MS="200"),
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b'{"tool_name": ')
        process.stdin.flush()

        assert process.wait(30) == 0
        assert process.stdout.read() == b""


@pytest.mark.covers("DI-19")
def test_a_broken_evaluator_says_nothing(tmp_path: Path) -> None:
    broken = "from hansard.adapters import commands; commands.VERSION = 99; " + _MAIN
    ended = _run_code(broken, bash("rm -rf /"), tmp_path)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


@pytest.mark.covers("DI-19")
def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")

    for verb in (PRE, "post-tool-use", "stop"):
        ended = hook(verb, bash("git push --force"), file / "data")
        assert (ended.returncode, ended.stderr) == (0, b"")


_MAIN = (
    "import sys; from hansard._cli.main import main; "
    "sys.argv = ['hansard', 'hook', 'pre-tool-use']; main()"
)


def _run_code(code: str, given: dict[str, Any], data: Path, **more: str) -> Any:
    settings = {"HANSARD_DATA": str(data), "HANSARD_ENDPOINT": NOBODY, **PATIENT} | more
    return subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(given).encode(),
        capture_output=True,
        env=environment(**settings),
        timeout=240,
    )


HEAVY = (
    "apsw", "asyncio", "click", "dataclasses", "fastapi", "http", "numpy", "opentelemetry",
    "pathlib", "platformdirs", "pydantic", "re2", "typing", "urllib",
    "hansard_collector", "hansard_compiler", "hansard_store", "hansard_web",
)  # fmt: skip


def test_the_way_to_a_warning_loads_nothing_heavy(tmp_path: Path) -> None:
    watched = (
        "import os, sys\n"
        "def end(code):\n"
        f"    os.write(2, ' '.join(m for m in {HEAVY!r} if m in sys.modules).encode())\n"
        "    real(code)\n"
        "real, os._exit = os._exit, end\n"
        "for name in [m for m in sys.modules if m.partition('.')[0] in "
        f"{HEAVY!r}]: del sys.modules[name]\n" + _MAIN
    )
    ended = _run_code(watched, bash("git push --force"), tmp_path, HANSARD_HOOK_RECORD="false")

    assert b"may not be undone" in ended.stdout
    assert ended.stderr == b""


def test_what_a_hook_takes_of_the_processor_leaves_room_for_its_bar(tmp_path: Path) -> None:
    """The clock's time is measured by `python -m bench hook`: here other tests run beside it."""
    taken = []
    for _ in range(5):
        given = json.dumps(bash("git push --force")).encode()
        process = subprocess.Popen(
            [HANSARD, "hook", PRE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment(HANSARD_DATA=str(tmp_path), HANSARD_ENDPOINT=NOBODY),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process.stdin, process.stdout:
            process.stdin.write(given)
            process.stdin.close()
            process.stdout.read()
            _, _, used = os.wait4(process.pid, 0)
        process.returncode = 0
        taken.append(used.ru_utime + used.ru_stime)

    assert min(taken) < 0.15


def test_twenty_hooks_at_once_are_all_recorded(tmp_path: Path) -> None:
    calls = [bash(f"git push --force origin b{n}", tool_use_id=f"t{n}") for n in range(20)]
    with ThreadPoolExecutor(20) as threads:
        ended = list(threads.map(lambda one: hook(PRE, one, tmp_path), calls))

    assert all(one.returncode == 0 and one.stdout for one in ended)
    assert eventually(lambda: len(spooled(tmp_path)) == 20)
    assert {one["tool_use_id"] for one in spooled(tmp_path)} == {f"t{n}" for n in range(20)}


def test_a_hook_that_is_killed_leaves_no_half_a_record(tmp_path: Path) -> None:
    for delay_ms in range(10, 90, 20):
        with subprocess.Popen(
            [HANSARD, "hook", "post-tool-use"],
            stdin=subprocess.PIPE,
            env=environment(HANSARD_DATA=str(tmp_path), HANSARD_ENDPOINT=NOBODY),
        ) as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps(bash("ls", tool_response={"stdout": "x"})).encode())
            process.stdin.close()
            time.sleep(delay_ms / 1000)
            process.send_signal(signal.SIGKILL)

    assert all(one["tool_name"] == "Bash" for one in spooled(tmp_path))


def test_secrets_are_cut_out_before_anything_reaches_the_disk(tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    given = bash(f"curl -H 'Authorization: token {secret}' https://x", tool_use_id="t1")

    hook(PRE, given, tmp_path)
    hook("post-tool-use", given | {"tool_response": {"stdout": secret}}, tmp_path)

    assert eventually(lambda: len(spooled(tmp_path)) == 2)
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or secret.encode() not in path.read_bytes()
    assert "‹redacted:" in spooled(tmp_path)[0]["tool_input"]


def test_metadata_only_records_no_content(tmp_path: Path) -> None:
    given = bash("git push --force", tool_use_id="t1", tool_response={"stdout": "private"})

    hook("post-tool-use", given, tmp_path, HANSARD_RETENTION="metadata_only")

    [record] = spooled(tmp_path)
    assert {"tool_input", "tool_response", "cwd"}.isdisjoint(record)
    assert (record["tool_name"], record["tool_use_id"]) == ("Bash", "t1")


def test_what_is_written_is_for_the_user_alone(tmp_path: Path) -> None:
    data = tmp_path / "data"
    hook("session-start", event("SessionStart"), data)

    for path in (data, *data.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_call_without_an_id_is_paired_with_its_end(tmp_path: Path) -> None:
    for _ in range(2):
        hook(PRE, bash("ls"), tmp_path)
        hook("post-tool-use", bash("ls", tool_response={"stdout": ""}), tmp_path)

    assert eventually(lambda: len(spooled(tmp_path)) == 4)
    ids = [one["tool_use_id"] for one in spooled(tmp_path)]
    assert ids[0] == ids[1] != ids[2] == ids[3]
    assert list((tmp_path / "hooks").iterdir()) == []


MODEL = """
from hansard_compiler.classifier import IRREVERSIBLE, ClassifierVerdict
class Model:
    name = "model/1"
    def __call__(self, question):
        assert question.task == "irreversible"
        return ClassifierVerdict(IRREVERSIBLE, 0.9, "the model says so")
class Broken:
    name = "broken/1"
    def __call__(self, question):
        raise RuntimeError
"""


@pytest.mark.covers("DI-21", "MM-14")
def test_a_classifier_of_ones_own_is_asked_where_the_rules_know_nothing(tmp_path: Path) -> None:
    (tmp_path / "my_model.py").write_text(MODEL)
    more = {"PYTHONPATH": str(tmp_path)}
    unknown = bash("./launch-the-rocket --now")

    asked = hook(PRE, unknown, tmp_path, HANSARD_HOOK_CLASSIFIER="my_model:Model", **more)
    broken = hook(PRE, unknown, tmp_path, HANSARD_HOOK_CLASSIFIER="my_model:Broken", **more)
    missing = hook(PRE, unknown, tmp_path, HANSARD_HOOK_CLASSIFIER="no_such:Model", **more)
    known = hook(
        PRE, bash("git status"), tmp_path, HANSARD_HOOK_CLASSIFIER="my_model:Model", **more
    )

    assert b"the model says so" in asked.stdout
    assert (broken.stdout, missing.stdout, known.stdout) == (b"", b"", b"")
    found = eventually(lambda: len(spooled(tmp_path)) == 4 and spooled(tmp_path))
    assert found[0]["hansard.hook.classifier"] == "model/1"
