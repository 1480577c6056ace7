"""Payloads: the bytes that were sent, or what retention leaves of them, never half of either."""

from __future__ import annotations

import hashlib
import stat
from functools import partial
from pathlib import Path

import pytest

from hansard_compiler.errors import NotFoundError
from hansard_store.content.payloads import (
    INLINE_BYTES,
    PayloadState,
    Retained,
    blob_path,
    get_payload,
    parse_payload_ref,
    payload_ref,
    read_payload,
    redaction_item,
    verify_payload,
)
from hansard_store.database.transactions import transaction
from hansard_store.errors import (
    DigestMismatchError,
    InvalidQueryError,
    StoreBusyError,
    StoreCorruptError,
)
from hansard_store.ingest.redactions import RemovedSecret, redactions_of
from tests.store.maker import NOW, StoreMaker
from tests.store.payloads import put_payload

SMALL, LARGE = b"small", b"x" * (INLINE_BYTES + 1)


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def keep(data: bytes, _: str) -> Retained:
    return Retained(data)


def cut(secret: bytes, data: bytes, _: str) -> Retained:
    removed = [RemovedSecret("test-rule", "body", data.count(secret))]
    return Retained(data.replace(secret, b"***"), "redacted_payloads", removed)


def put(store: StoreMaker, data: bytes, retain: object = keep) -> None:
    put_payload(
        store.folder,
        data,
        expected=digest(data),
        media_type="text/plain",
        received_ns=NOW,
        retain=retain,  # type: ignore[arg-type]  # a partial
    )


@pytest.mark.parametrize("data", [b"", SMALL, b"x" * INLINE_BYTES, LARGE])
def test_bytes_come_back_as_they_were_sent(store: StoreMaker, data: bytes) -> None:
    put(store, data)
    put(store, data)

    payload = get_payload(store.db, digest(data))
    assert read_payload(store.folder, payload) == data
    assert (payload.size, payload.media_type, payload.redacted) == (len(data), "text/plain", None)
    assert verify_payload(store.folder, payload) is PayloadState.INTACT


def test_only_large_payloads_are_files_and_only_the_owner_reads_them(store: StoreMaker) -> None:
    put(store, SMALL)
    put(store, LARGE)

    [path] = (path for path in store.folder.blobs.rglob("*") if path.is_file())
    assert path == blob_path(store.folder, digest(LARGE))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_bytes_of_another_digest_are_refused(store: StoreMaker) -> None:
    with pytest.raises(DigestMismatchError):
        put_payload(
            store.folder,
            b"these",
            expected=digest(b"those"),
            media_type="text/plain",
            received_ns=NOW,
            retain=keep,
        )
    with pytest.raises(NotFoundError):
        get_payload(store.db, digest(b"those"))


@pytest.mark.parametrize("body", [b"a secret", b"a secret" + LARGE])
def test_what_retention_cuts_is_never_stored_and_the_sent_ref_leads_to_the_rest(
    store: StoreMaker, body: bytes
) -> None:
    put(store, body, partial(cut, b"secret"))

    payload = get_payload(store.db, digest(body))
    left = body.replace(b"secret", b"***")
    assert read_payload(store.folder, payload) == left
    assert payload.digest == digest(left)
    assert payload.redacted == "redacted_payloads"
    assert verify_payload(store.folder, payload) is PayloadState.REDACTED
    [removed] = redactions_of(store.db, "payload", redaction_item(digest(body)))
    assert (removed.rule, removed.count) == ("test-rule", 1)
    for path in store.folder.path.rglob("*"):
        assert not path.is_file() or b"a secret" not in path.read_bytes()


def test_a_redacted_payload_sent_again_is_noted_once(store: StoreMaker) -> None:
    put(store, b"a secret", partial(cut, b"secret"))
    put(store, b"a secret", partial(cut, b"secret"))

    assert len(redactions_of(store.db, "payload", redaction_item(digest(b"a secret")))) == 1


def test_where_nothing_may_be_kept_nothing_is(store: StoreMaker) -> None:
    put(store, LARGE, lambda *_: Retained(None, "metadata_only"))

    with pytest.raises(NotFoundError):
        get_payload(store.db, digest(LARGE))
    assert list(store.folder.blobs.iterdir()) == []


def test_an_altered_or_missing_file_is_told(store: StoreMaker) -> None:
    put(store, LARGE)
    payload = get_payload(store.db, digest(LARGE))
    path = blob_path(store.folder, digest(LARGE))

    path.write_bytes(LARGE[:-1] + b"y")
    altered = verify_payload(store.folder, payload)
    path.unlink()

    assert altered is PayloadState.ALTERED
    assert verify_payload(store.folder, payload) is PayloadState.MISSING
    with pytest.raises(StoreCorruptError):
        read_payload(store.folder, payload)


@pytest.mark.covers("ST-10")
def test_no_row_is_written_where_the_file_cannot_be(store: StoreMaker) -> None:
    # A file stands where the folder of the blob has to be made, as a full disk would.
    blob_path(store.folder, digest(LARGE)).parent.write_bytes(b"in the way")

    with pytest.raises(StoreBusyError):
        put(store, LARGE)
    with pytest.raises(NotFoundError):
        get_payload(store.db, digest(LARGE))


@pytest.mark.covers("ST-10")
def test_a_file_stands_whole_before_its_row_can(store: StoreMaker) -> None:
    with transaction(store.ingest), pytest.raises(StoreBusyError):
        # The row cannot be written while another holds the lock; the file is there already.
        put(store, LARGE)

    assert blob_path(store.folder, digest(LARGE)).read_bytes() == LARGE
    assert _temporary(store.folder.blobs) == []
    with pytest.raises(NotFoundError):
        get_payload(store.db, digest(LARGE))


def _temporary(folder: Path) -> list[Path]:
    return [path for path in folder.rglob(".*") if path.is_file()]


def test_a_torn_file_of_a_killed_process_is_written_again(store: StoreMaker) -> None:
    path = blob_path(store.folder, digest(LARGE))
    path.parent.mkdir()
    path.write_bytes(LARGE[:100])

    put(store, LARGE)

    assert path.read_bytes() == LARGE


@pytest.mark.parametrize(
    "text", ["", "sha256:", "sha256:" + "0" * 63, "sha256:" + "g" * 64, "md5:" + "0" * 64, "../x"]
)
def test_what_is_no_reference_is_refused(text: str) -> None:
    with pytest.raises(InvalidQueryError):
        parse_payload_ref(text)


def test_a_reference_is_read_in_any_case() -> None:
    assert payload_ref(parse_payload_ref("SHA256:" + "AB" * 32)) == "sha256:" + "ab" * 32
