"""What leaves the process of a gated call's arguments, and the keys that stay."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from hansard._gate.redaction import Veil, is_veiled
from hansard._runtime.data_folder import FOLDER, Keys
from hansard_compiler.retention_modes import RetentionMode

SECRET = "sk-proj-" + "q1W2e3R4t5Y6u7I8" * 3
KEY = bytes(32)
EXACT: dict[str, Any] = {
    "to": "maria@acme.com",
    "password": "Tr0ub4dor&3",
    "rows": [1, {"note": f"Use {SECRET}", "left": 2.5}],
}


def veil(mode: RetentionMode = RetentionMode.REDACTED_PAYLOADS, key: bytes = KEY) -> Veil:
    return Veil.of(mode, key)


def test_secrets_stay_and_all_else_goes_as_it_is() -> None:
    told = veil().arguments(EXACT)

    assert (told["to"], told["rows"][0], told["rows"][1]["left"]) == ("maria@acme.com", 1, 2.5)
    assert "Tr0ub4dor&3" not in str(told)
    assert SECRET not in str(told)
    assert is_veiled(told)
    plain = {"to": "maria@acme.com", "amount": 12}
    assert veil().arguments(plain) == plain
    assert not is_veiled(plain)


def test_a_mark_is_bound_to_its_secret_and_to_this_data_folder() -> None:
    other = {**EXACT, "password": "Tr0ub4dor&4"}

    assert veil().arguments(EXACT) == veil().arguments(dict(EXACT))
    assert veil().arguments(EXACT)["password"] != veil().arguments(other)["password"]
    assert veil().arguments(EXACT) != veil(key=bytes(31) + b"1").arguments(EXACT)


def test_the_retention_mode_decides() -> None:
    withheld = veil(RetentionMode.METADATA_ONLY).arguments(EXACT)

    assert veil(RetentionMode.FULL_PAYLOADS).arguments(EXACT) == EXACT
    assert withheld.keys() == EXACT.keys()
    assert all(is_veiled(one) for one in withheld.values())
    assert veil(RetentionMode.METADATA_ONLY).text("Send to Maria") is None
    assert SECRET not in str(veil().text(f"Use {SECRET}"))


def test_keys_are_the_owners_alone_and_gone_when_used(tmp_path: Path) -> None:
    keys, identity = Keys(tmp_path), "a" * 32
    keys.keep(identity, "hpk_1")
    file = tmp_path / FOLDER / identity

    assert keys.find(identity) == "hpk_1"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    keys.forget(identity)
    assert keys.find(identity) is None
    assert list((tmp_path / FOLDER).iterdir()) == []


@pytest.mark.parametrize("identity", ["../key", "", "A" * 32, "a" * 31 + "/"])
def test_what_is_no_id_is_no_file(tmp_path: Path, identity: str) -> None:
    keys = Keys(tmp_path)
    keys.keep(identity, "hpk_1")
    keys.forget(identity)

    assert keys.find(identity) is None
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_told_and_harms_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / FOLDER).touch()
    Keys(tmp_path).keep("a" * 32, "hpk_1")

    assert "cannot be run after a restart" in caplog.text
