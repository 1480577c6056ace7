"""`hansard payload`: the exact bytes, and the truth about them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from click.testing import Result

from hansard_compiler.retention_modes import RetentionMode
from hansard_store.content.payloads import INLINE_BYTES, blob_path
from hansard_store.content.retention import Retention
from hansard_store.database.data_folder import DataFolder
from hansard_web.app.config import load_config
from hansard_web.app.server import Server, running
from tests.collector.ingesting import Ingesting, traces
from tests.collector.payload_maker import SECRET, chat, digest_of, ref_of
from tests.store.payloads import put_payload
from tests.web.cli.conftest import Cli

SMALL, LARGE = b'{"small": true}', b"large\0" * INLINE_BYTES
SECRETIVE = f"my key is {SECRET}".encode()
TOKEN = "a-token-for-the-test"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    """A store with three payloads; one lost a secret, and a run names a fourth."""
    ingesting = Ingesting(tmp_path_factory.mktemp("payloads") / "data")
    ingesting.send(traces([chat({"gen_ai.input.messages": b"never came"})]))
    ingesting.close()
    folder = ingesting.folder
    retain = Retention.of(folder, RetentionMode.REDACTED_PAYLOADS).payload
    for data in (SMALL, LARGE, SECRETIVE):
        put_payload(
            folder,
            data,
            expected=digest_of(data),
            media_type="application/json",
            received_ns=1,
            retain=retain,
        )
    return folder


@pytest.fixture(scope="module")
def server(folder: DataFolder) -> Iterator[Server]:
    arguments = {"data": str(folder.path), "http_port": "0", "grpc_port": "0", "token": TOKEN}
    with running(load_config(arguments, {})) as server:
        yield server


@pytest.fixture(params=["store", "server"])
def payload(request: pytest.FixtureRequest, anywhere: Cli, folder: DataFolder) -> Cli:
    """Run `hansard payload` on the data folder, and over HTTP."""
    if request.param == "store":
        return lambda *words: anywhere("payload", *words, HANSARD_DATA=str(folder.path))
    address = request.getfixturevalue("server").endpoints.http

    def ask(*words: str) -> Result:
        return anywhere("payload", *words, "--server", address, HANSARD_TOKEN=TOKEN)

    return ask


@pytest.mark.covers("OT-08")
@pytest.mark.parametrize("data", [SMALL, LARGE], ids=["inline", "in a file"])
def test_the_exact_bytes_are_written(payload: Cli, tmp_path: Path, data: bytes) -> None:
    to_stdout = payload("get", ref_of(data))
    to_file = payload("get", ref_of(data), "-o", str(tmp_path / "out"))

    assert (to_stdout.exit_code, to_stdout.stdout_bytes) == (0, data)
    assert (to_file.exit_code, to_file.stdout_bytes) == (0, b"")
    assert (tmp_path / "out").read_bytes() == data


def test_what_was_redacted_is_given_and_said(payload: Cli) -> None:
    ended = payload("get", ref_of(SECRETIVE))

    assert ended.exit_code == 0
    assert ended.stdout.startswith("my key is ‹redacted:anthropic:")
    assert ended.stderr == "redacted at retention: these are not the bytes that were sent\n"


def test_a_program_gets_facts_instead_of_bytes(payload: Cli, tmp_path: Path) -> None:
    told = json.loads(payload("get", ref_of(SMALL), "--json", "-o", str(tmp_path / "out")).stdout)

    assert told == {
        "ref": ref_of(SMALL),
        "stored_ref": ref_of(SMALL),
        "media_type": "application/json",
        "size": len(SMALL),
        "redacted": False,
        "state": "intact",
    }
    assert (tmp_path / "out").read_bytes() == SMALL


@pytest.mark.covers("OT-08")
def test_each_payload_is_told_to_be_what_it_is(payload: Cli) -> None:
    ended = payload("verify", ref_of(SMALL), ref_of(LARGE), ref_of(SECRETIVE))

    assert ended.exit_code == 0
    assert [line.split("  ") for line in ended.stdout.splitlines()] == [
        [ref_of(SMALL), "intact"],
        [ref_of(LARGE), "intact"],
        [ref_of(SECRETIVE), "redacted at retention"],
    ]


def test_one_that_is_not_stored_fails(payload: Cli) -> None:
    ended = payload("verify", ref_of(SMALL), ref_of(b"unknown"), "--json")

    assert ended.exit_code == 1
    assert json.loads(ended.stdout)["states"] == {"intact": 1, "not stored here": 1}
    assert "1 payload of 2 cannot be had as sent" in ended.stderr
    assert payload("get", ref_of(b"unknown")).exit_code == 1


@pytest.mark.parametrize(
    "ref", ["", "9f86d0", "sha256:9f86", "sha256:" + "0" * 63 + "/", "../../../etc/passwd"]
)
@pytest.mark.parametrize("verb", ["get", "verify"])
def test_what_is_no_reference_is_wrong_use(payload: Cli, verb: str, ref: str) -> None:
    ended = payload(verb, ref)

    assert ended.exit_code == 2
    assert "one is named sha256:<64 hex digits>" in ended.stderr


def test_a_digest_in_capitals_is_the_same(payload: Cli) -> None:
    assert payload("get", ref_of(SMALL).upper()).stdout_bytes == SMALL


def test_all_of_them_are_verified_and_the_ones_that_never_came_are_named(
    anywhere: Cli, folder: DataFolder
) -> None:
    data = ("--data", str(folder.path))
    ended = anywhere("payload", "verify", "--all", *data)
    told = json.loads(anywhere("payload", "verify", "--all", "--json", *data).stdout)

    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        "3 payloads: 2 intact, 1 redacted at retention",
        "1 payload that runs name never arrived (--json lists them)",
    ]
    assert told["checked"] == 3
    assert told["never_arrived"] == [{"ref": ref_of(b"never came"), "runs": 1}]


@pytest.mark.parametrize("words", [(), ("--all", "sha256:" + "0" * 64)])
def test_verify_wants_names_or_all(anywhere: Cli, words: tuple[str, ...]) -> None:
    ended = anywhere("payload", "verify", *words)

    assert (ended.exit_code, "name payloads, or --all of them" in ended.stderr) == (2, True)


def test_all_of_a_server_is_wrong_use(anywhere: Cli) -> None:
    assert anywhere("payload", "verify", "--all", "--server", "http://x").exit_code == 2


# ---- damage


@pytest.fixture
def damaged(tmp_path: Path) -> DataFolder:
    folder = DataFolder(tmp_path / "damaged")
    ingesting = Ingesting(folder.path)
    ingesting.close()
    for data in (SMALL, LARGE, LARGE + b"2"):
        put_payload(
            folder,
            data,
            expected=digest_of(data),
            media_type="text/plain",
            received_ns=1,
            retain=Retention.of(folder, RetentionMode.FULL_PAYLOADS).payload,
        )
    connection = apsw.Connection(str(folder.database))
    connection.execute("UPDATE payload SET body = ? WHERE body IS NOT NULL", (b"something else",))
    connection.close()
    blob_path(folder, digest_of(LARGE)).unlink()
    return folder


@pytest.mark.covers("OT-08")
def test_altered_and_missing_bytes_are_found(anywhere: Cli, damaged: DataFolder) -> None:
    ended = anywhere("payload", "verify", "--all", "--data", str(damaged.path))

    assert ended.exit_code == 1
    lines = set(ended.stdout.splitlines())
    assert lines == {
        f"{ref_of(SMALL)}  altered",
        f"{ref_of(LARGE)}  missing",
        "3 payloads: 1 altered, 1 intact, 1 missing",
    }
    assert anywhere("payload", "get", ref_of(LARGE), "--data", str(damaged.path)).exit_code == 1


def test_altered_and_missing_bytes_are_found_over_http(anywhere: Cli, damaged: DataFolder) -> None:
    arguments = {"data": str(damaged.path), "http_port": "0", "grpc_port": "0"}
    with running(load_config(arguments, {})) as server:
        refs = (ref_of(SMALL), ref_of(LARGE))
        ended = anywhere("payload", "verify", *refs, "--json", "--server", server.endpoints.http)

    assert ended.exit_code == 1
    assert json.loads(ended.stdout)["states"] == {"altered": 1, "missing": 1}


# ---- no store, no server


def test_without_a_store_the_server_option_is_named(anywhere: Cli, tmp_path: Path) -> None:
    ended = anywhere("payload", "get", ref_of(SMALL), "--data", str(tmp_path))

    assert ended.exit_code == 1
    assert "--server URL" in ended.stderr


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "file:///etc/passwd", "nonsense"])
def test_a_server_that_is_none_is_one_line(anywhere: Cli, address: str) -> None:
    ended = anywhere("payload", "get", ref_of(SMALL), "--server", address)

    assert (ended.exit_code, ended.stdout_bytes) == (1, b"")
    assert len(ended.stderr.splitlines()) == 1


def test_a_wrong_token_is_told(anywhere: Cli, server: Server) -> None:
    words = ("payload", "get", ref_of(SMALL), "--server", server.endpoints.http)
    ended = anywhere(*words, "--token", "wrong")

    assert ended.exit_code == 1
    assert "401" in ended.stderr
