"""steps why, receipts list, verify compile: what they print, and how they end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.tokens.estimators import estimator_for
from tests.collector.compile_maker import Told, candidates, compiled_files, send_payloads, tell
from tests.collector.ingesting import Ingesting, span, traces
from tests.collector.payload_maker import SECRET, ref_of
from tests.compiler.compiling import KEY, item, ports, request
from tests.web.cli.conftest import Cli

COUNTER = estimator_for("local", "test")


def counted(items: list[Any] | None = None, *, key: bytes = KEY, **more: Any) -> CompileResult:
    """Compile with the counter of the model, as programs do."""
    wanted = request(candidates(6) if items is None else items, budget=500, **more)
    return compile_context(wanted, ports(counter=COUNTER, redactor=Redactor(key)))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Ingesting]:
    ingesting = Ingesting(tmp_path / "data")
    yield ingesting
    ingesting.close()


def ask(cli: Cli, store: Ingesting, *arguments: str) -> Result:
    return cli(*arguments, HANSARD_DATA=str(store.folder.path))


def answer(cli: Cli, store: Ingesting, *arguments: str) -> Any:
    ended = ask(cli, store, *arguments, "--json")
    assert ended.exit_code == 0, ended.output
    return json.loads(ended.stdout)


# ---- steps why


def test_why_prints_a_line_for_every_candidate(anywhere: Cli, store: Ingesting) -> None:
    told = Told(compiled_files())
    sent = tell(store, told)

    ended = ask(anywhere, store, "steps", "why", sent.call_id)

    assert ended.exit_code == 0, ended.output
    assert f"compile  {told.result.id}" in ended.stdout
    lines = {line.split()[0]: line for line in ended.stdout.splitlines() if line.strip()}
    out = next(one for one in told.result.receipts if one.decision == "exclude")
    line = lines[out.item_id]
    assert "did not fit into what its class and those before it left" in line
    assert f"{out.missed_by_tokens:,} tokens" in line
    assert all(one.item_id in lines for one in told.result.receipts)


def test_a_word_that_is_no_decision_is_told_so(anywhere: Cli, store: Ingesting) -> None:
    sent = tell(store, Told(compiled_files()))

    for command in (("steps", "why", sent.step_id), ("receipts", "list")):
        ended = ask(anywhere, store, *command, "--decision", "excluded")

        assert ended.exit_code == 2
        assert "'excluded' is no decision; there are include, exclude," in ended.stderr
        assert ended.stdout == ""


@pytest.mark.parametrize("which", ["step_id", "parent_id", "call_id"])
def test_why_can_be_asked_of_every_step_around_a_compile(
    anywhere: Cli, store: Ingesting, which: str
) -> None:
    sent = tell(store, Told(compiled_files()))

    body = answer(anywhere, store, "steps", "why", getattr(sent, which))

    assert len(body["receipts"]) == 13


def test_why_of_one_item_shows_the_terms_of_its_score(anywhere: Cli, store: Ingesting) -> None:
    told = Told(compiled_files())
    sent = tell(store, told)

    ended = ask(anywhere, store, "steps", "why", sent.step_id, "--item", "file-0")

    made = told.result.receipts[0]
    assert made.score is not None
    points = [line.rpartition("=")[2] for line in ended.stdout.splitlines() if " = " in line]
    assert sum(map(Decimal, points)) * 10**9 == made.score.total
    assert "source    file src/money_0.py" in ended.stdout


def test_why_is_narrowed_by_decision(anywhere: Cli, store: Ingesting) -> None:
    sent = tell(store, Told(compiled_files()))

    body = answer(anywhere, store, "steps", "why", sent.step_id, "--decision", "exclude")

    assert {one["decision"] for one in body["receipts"]} == {"exclude"}
    assert body["items"]["excluded"] == len(body["receipts"])


def test_why_says_what_it_cannot(anywhere: Cli, store: Ingesting) -> None:
    sent = tell(store, Told(compiled_files(3)))
    gone = ask(anywhere, store, "steps", "why", sent.step_id, "--item", "nothing")
    assert (gone.exit_code, "item 'nothing' was no candidate" in gone.stderr) == (1, True)

    store.send(traces([span(1)]))
    plain = ask(anywhere, store, "steps", "why", f"{bytes(range(16)).hex()}-{1:016x}")
    assert (plain.exit_code, "has no compile" in plain.stderr) == (1, True)


# ---- receipts list


@pytest.mark.covers("RC-27")
def test_every_run_in_which_a_file_was_excluded_by_budget_is_listed(
    anywhere: Cli, store: Ingesting
) -> None:
    sent = [tell(store, Told(compiled_files(12 + at))) for at in range(2)]

    asked = ("receipts", "list", "--source", "src/money_9.py", "--reason", "over_budget")
    body = answer(anywhere, store, *asked)
    shown = ask(anywhere, store, *asked)

    assert [one["run_id"] for one in body["items"]] == [one.run_id for one in reversed(sent)]
    heading, *lines = shown.stdout.splitlines()
    assert heading.split()[:2] == ["RUN", "COMPILED"]
    assert [line.split()[0] for line in lines] == [one.run_id[:8] for one in reversed(sent)]


def test_every_filter_of_the_api_is_an_option_of_receipts(anywhere: Cli, store: Ingesting) -> None:
    sent = tell(store, Told(compiled_files()))
    listed = {
        option: len(answer(anywhere, store, "receipts", "list", *option.split())["items"])
        for option in (
            "--item file-3", "--kind user_msg", "--pass budget", "--decision exclude",
            "--rule none", "--until 2001-01-01", f"--run {sent.run_id[:10]}", "--limit 2",
            "--source user", "--since 2001-01-01",
        )
    }  # fmt: skip

    excluded = store.one("SELECT excluded FROM compilation")
    assert list(listed.values()) == [1, 1, 13, excluded, 0, 0, 13, 2, 1, 13]


def test_pages_of_receipts_go_on(anywhere: Cli, store: Ingesting) -> None:
    tell(store, Told(compiled_files()))
    first = ask(anywhere, store, "receipts", "list", "--limit", "12")
    cursor = first.stderr.split()[-1]

    second = answer(anywhere, store, "receipts", "list", "--limit", "12", "--cursor", cursor)

    assert [one["item_id"] for one in second["items"]] == ["ask"]


# ---- verify compile


def verdict(cli: Cli, store: Ingesting, made_id: str) -> tuple[int, str, str]:
    """Return exit code, verdict and reasons."""
    ended = ask(cli, store, "verify", "compile", made_id, "--json")
    body = json.loads(ended.stdout)
    return ended.exit_code, body["verdict"], "; ".join(body["reasons"])


@pytest.mark.covers("RC-15")
def test_a_compile_is_made_again_from_the_store_with_the_same_hash(
    anywhere: Cli, store: Ingesting
) -> None:
    rules = [{"id": "no-logs", "name": "No logs", "effect": "deny",
              "conditions": {"item.id": {"equals": "file-2"}}}]  # fmt: skip
    for result in (counted(), counted(policy_rules=rules)):
        tell(store, Told(result))
        assert verdict(anywhere, store, result.id) == (0, "equal", "")

    shown = ask(anywhere, store, "verify", "compile", result.id[:12])
    assert (shown.exit_code, "verdict   equal" in shown.stdout) == (0, True)


@pytest.mark.covers("RC-15")
def test_a_compile_that_comes_out_otherwise_differs(anywhere: Cli, store: Ingesting) -> None:
    result, other = counted(), counted(response_reserve=250)
    told = Told(result)
    odd = Told(result, {"hansard.compilation.request_ref": Told(other).attributes()[
        "hansard.compilation.request_ref"]})  # fmt: skip
    send_payloads(store, [Told(other).request_bytes])
    tell(store, odd)

    code, said, why = verdict(anywhere, store, result.id)

    assert (code, said) == (1, "differs")
    assert "now exclude (over_budget)" in why
    assert told.result.id == result.id


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ({"hansard.compilation.ports": ["policy", "renderer"]}, "policy, renderer of its own"),
        ({"hansard.compilation.counter": "abacus/1"}, "tokens were counted by abacus/1"),
        ({"hansard.compilation.request_ref": "sha256:" + "0" * 64}, "not stored here"),
        ({"hansard.compilation.request_ref": ""}, "names no hash or no stored request"),
    ],
)
def test_a_compile_of_which_something_is_missing_cannot_be_made_again(
    anywhere: Cli, store: Ingesting, extra: dict[str, Any], why: str
) -> None:
    result = counted()
    tell(store, Told(result, extra))

    code, said, reasons = verdict(anywhere, store, result.id)
    assert (code, said) == (2, "missing")
    assert why in reasons


def test_a_request_that_is_none_is_missing(anywhere: Cli, store: Ingesting) -> None:
    result = counted()
    for number, data in enumerate((b"no JSON", b'{"schema_version": "99"}', b"[]")):
        send_payloads(store, [data])
        extra = {"hansard.compilation.request_ref": ref_of(data),
                 "hansard.compilation.id": f"compile-{number}"}  # fmt: skip
        tell(store, Told(result, extra), payloads=False)
        code, said, why = verdict(anywhere, store, f"compile-{number}")
        assert (code, said) == (2, "missing")
        assert "cannot be read by this version" in why


@pytest.mark.parametrize("mode", ["redacted_payloads", "metadata_only", "full_payloads"])
def test_a_request_without_its_secrets_is_redacted(
    anywhere: Cli, tmp_path: Path, mode: str
) -> None:
    store = Ingesting(tmp_path, retention=mode)
    items = [item("env", "file", f"KEY={SECRET}"), *candidates(2)]
    here, elsewhere = counted(items, key=store.folder.key()), counted(items)
    for result in (here, elsewhere):
        tell(store, Told(result))

    found = [verdict(anywhere, store, result.id) for result in (here, elsewhere)]
    store.close()
    assert [one[:2] for one in found] == {
        "redacted_payloads": [(2, "redacted"), (2, "redacted")],
        "metadata_only": [(2, "missing"), (2, "missing")],
        "full_payloads": [(0, "equal"), (2, "redacted")],
    }[mode]  # fmt: skip


def test_verify_alone_still_checks_the_store(anywhere: Cli, store: Ingesting) -> None:
    tell(store, Told(compiled_files()))

    whole = ask(anywhere, store, "verify")
    unknown = ask(anywhere, store, "verify", "compile", "nothing-like-it")

    assert (whole.exit_code, "sound:" in whole.stdout) == (0, True)
    assert (unknown.exit_code, "no compilation" in unknown.stderr) == (1, True)
