"""Payloads over HTTP: checked, kept or not, and handed out as nothing but bytes."""

from __future__ import annotations

import contextlib
import hashlib
import os
import time

import apsw
import pytest

from hansard_store.content.payloads import blob_path
from hansard_store.verification.integrity import verify_store
from hansard_web.payloads.api import MAX_BYTES
from tests.web.api.conftest import Api

SECRET = b"sk-ant-api03-" + b"Ab1" * 31 + b"AA"
LARGE = b"0123456789" * 10_000


def digest_of(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def ref(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def put(api: Api, data: bytes, *, media_type: str = "text/plain", status: int = 201) -> None:
    path = f"/v1/payloads/{ref(data)}"
    answer = api.http.put(path, content=data, headers={"content-type": media_type})
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("data", [b"", b"small", LARGE], ids=["empty", "small", "large"])
def test_bytes_come_back_and_sent_again_are_known(api: Api, data: bytes) -> None:
    put(api, data)
    put(api, data, status=200)

    answer = api.http.get(f"/v1/payloads/{ref(data)}")

    assert answer.content == data
    assert answer.headers["hansard-payload"] == ref(data)
    assert "hansard-redacted" not in answer.headers


def test_recorded_bytes_are_never_shown_as_a_page(api: Api) -> None:
    page = b"<script>alert(1)</script>"
    put(api, page, media_type="text/html")

    headers = api.http.get(f"/v1/payloads/{ref(page)}").headers

    assert headers["x-content-type-options"] == "nosniff"
    assert headers["content-disposition"].startswith("attachment;")
    assert "sandbox" in headers["content-security-policy"]


def test_a_media_type_that_is_none_is_not_repeated(api: Api) -> None:
    put(api, b"x", media_type="text/html, <b>")

    content_type = api.http.get(f"/v1/payloads/{ref(b'x')}").headers["content-type"]
    assert content_type == "application/octet-stream"


def test_large_payloads_are_read_in_ranges(api: Api) -> None:
    put(api, LARGE)

    answer = api.http.get(f"/v1/payloads/{ref(LARGE)}", headers={"range": "bytes=5-9"})

    assert (answer.status_code, answer.content) == (206, b"56789")


@pytest.mark.parametrize("is_restored", [False, True], ids=["altered", "with its old times"])
def test_a_file_that_was_altered_is_not_given_out_and_a_put_of_the_right_bytes_heals_it(
    api: Api, is_restored: bool
) -> None:
    put(api, LARGE)
    path, address = blob_path(api.folder, digest_of(LARGE)), f"/v1/payloads/{ref(LARGE)}"
    before = path.stat()
    os.utime(path, ns=(1, 1))  # long ago, so that it may be remembered
    assert api.http.get(address).content == LARGE
    path.write_bytes(LARGE[:-1] + b"!")
    if is_restored:
        os.utime(path, ns=(1, 1))

    whole = api.http.get(address)
    part = api.http.get(address, headers={"range": "bytes=5-9"})
    put(api, LARGE, status=200)

    assert (whole.status_code, api.error_of(whole)["code"]) == (409, "payload_altered")
    assert (part.status_code, api.error_of(part)["code"]) == (409, "payload_altered")
    assert api.http.get(address).content == LARGE
    assert path.stat().st_ino != before.st_ino


def test_bytes_in_the_database_that_were_altered_are_not_given_out_either(api: Api) -> None:
    data, address = b"small", f"/v1/payloads/{ref(b'small')}"
    put(api, data)
    with contextlib.closing(apsw.Connection(str(api.folder.database))) as connection:
        connection.execute("UPDATE payload SET body = ?", (b"other",))

    refused = api.refused(409, address)
    put(api, data, status=200)

    assert refused["code"] == "payload_altered"
    assert api.http.get(address).content == data
    # What happened stays to be seen: the row is not as it was sealed.
    assert verify_store(api.folder).findings != []


def test_a_large_file_that_was_read_is_not_read_again_for_each_range(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(api, LARGE)
    read: list[str] = []
    real = hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda *given: (read.append(given[1]), real(*given))[1]
    )
    # A file that changed within the last second is read again by each request.
    deadline_s = time.monotonic() + 30
    while api.http.get(f"/v1/payloads/{ref(LARGE)}").is_success and read:
        assert time.monotonic() < deadline_s
        read.clear()
        time.sleep(0.05)

    for start in range(20):
        answer = api.http.get(
            f"/v1/payloads/{ref(LARGE)}", headers={"range": f"bytes={start}-{start}"}
        )
        assert answer.content == LARGE[start : start + 1]

    assert read == []


def test_bytes_of_another_digest_are_refused_and_not_kept(api: Api) -> None:
    path = f"/v1/payloads/{ref(b'these')}"
    answer = api.http.put(path, content=b"those")

    assert answer.status_code == 400
    assert api.error_of(answer)["code"] == "digest_mismatch"
    assert api.refused(404, path)["code"] == "not_found"


def test_bodies_that_are_too_large_or_compressed_are_refused(api: Api) -> None:
    path = f"/v1/payloads/{ref(b'x')}"
    large = api.http.put(path, content=b"x" * (MAX_BYTES + 1))
    packed = api.http.put(path, content=b"x", headers={"content-encoding": "gzip"})

    assert (large.status_code, api.error_of(large)["code"]) == (413, "too_large")
    assert (packed.status_code, api.error_of(packed)["code"]) == (415, "unsupported_encoding")


@pytest.mark.parametrize("wanted", ["x", "sha256:12", "md5:" + "0" * 64, "sha256:" + "z" * 64])
def test_what_is_no_reference_is_refused(api: Api, wanted: str) -> None:
    assert api.refused(400, f"/v1/payloads/{wanted}")["details"] == {"parameter": "ref"}
    assert api.http.put(f"/v1/payloads/{wanted}", content=b"").status_code == 400


def test_a_secret_in_a_payload_is_taken_out_and_told(sparing_api: Api) -> None:
    data = b"the key is " + SECRET + b" and the rest"
    answer = sparing_api.http.put(f"/v1/payloads/{ref(data)}", content=data)

    body = sparing_api.checked(answer)
    found = sparing_api.http.get(f"/v1/payloads/{ref(data)}")
    if body["stored"]:
        assert found.headers["hansard-redacted"] == "true"
        assert body["stored_ref"] == ref(found.content)
        assert found.content.endswith(b" and the rest")
    else:
        assert body["reason"] == "metadata_only"
        assert found.status_code == 404
    for path in sparing_api.folder.path.rglob("*"):
        assert not path.is_file() or SECRET not in path.read_bytes()
