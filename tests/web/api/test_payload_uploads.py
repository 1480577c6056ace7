"""Uploads by anybody: hostile names, types and sizes, and what the store has afterwards."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from hansard_store.content.payloads import INLINE_BYTES
from hansard_web.payloads.api import MAX_BYTES
from tests.collector.ingesting import logs
from tests.collector.payload_maker import SECRET, kept_in_files, record, ref_of
from tests.web.api.conftest import Api

DATA = b"\0some\0bytes"
HOSTILE = [
    "..%2F..%2Fetc%2Fpasswd",
    "sha256:..%2F" + "0" * 61,
    "sha256:" + "0" * 63 + "%00",
    "sha256:" + "0" * 63,
    "sha256:" + "0" * 65,
    "sha256:" + "g" * 64,
    quote("sha256:" + "٣" * 64),
    "sha512:" + "0" * 128,
    "%0d%0aSet-Cookie:x",
    "x" * 5_000,
]


@pytest.mark.parametrize("ref", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_digest_is_refused_and_touches_no_file(api: Api, ref: str) -> None:
    put = api.http.put(f"/v1/payloads/{ref}", content=DATA)
    got = api.http.get(f"/v1/payloads/{ref}")

    assert put.status_code in (400, 404, 405)
    assert got.status_code in (400, 404)
    assert "set-cookie" not in got.headers
    assert kept_in_files(api.folder.path, DATA) == []


def test_a_digest_in_capitals_is_the_same_payload(api: Api) -> None:
    ref = ref_of(DATA).replace("sha256:", "SHA256:").upper()
    assert api.http.put(f"/v1/payloads/{ref}", content=DATA).status_code == 201

    assert api.http.get(f"/v1/payloads/{ref_of(DATA)}").content == DATA


@pytest.mark.parametrize(
    "content_type",
    [
        "",
        "text/html, text/plain",
        "text/html\t;charset=utf-8",
        "../../x",
        "a/" + "b" * 300,
        f"text/{SECRET[:78]}",
    ],
)
def test_a_type_that_is_none_is_that_of_bytes(api: Api, content_type: str) -> None:
    headers = {"content-type": content_type}
    assert api.http.put(f"/v1/payloads/{ref_of(DATA)}", content=DATA, headers=headers).is_success

    got = api.http.get(f"/v1/payloads/{ref_of(DATA)}")
    assert (got.content, got.headers["content-type"]) == (DATA, "application/octet-stream")


def test_the_largest_that_is_taken_comes_back(api: Api) -> None:
    data = bytes(MAX_BYTES)
    assert api.http.put(f"/v1/payloads/{ref_of(data)}", content=data).status_code == 201
    one_more = api.http.put(f"/v1/payloads/{ref_of(data)}", content=data + b"\0")

    assert (one_more.status_code, api.error_of(one_more)["code"]) == (413, "too_large")
    assert len(api.http.get(f"/v1/payloads/{ref_of(data)}").content) == MAX_BYTES


@pytest.mark.parametrize("size", [10, INLINE_BYTES + 1], ids=["inline", "in a file"])
def test_a_payload_by_both_ways_is_stored_once(api: Api, size: int) -> None:
    data = b"x" * size
    api.send(logs([record(data, media_type="text/plain")]))
    again = api.http.put(f"/v1/payloads/{ref_of(data)}", content=data)

    assert again.status_code == 200
    files = [path for path in api.folder.blobs.rglob("*") if path.is_file()]
    assert len(files) == (size > INLINE_BYTES)


def test_an_upload_of_wrong_bytes_leaves_the_right_ones(api: Api) -> None:
    assert api.http.put(f"/v1/payloads/{ref_of(DATA)}", content=DATA).status_code == 201
    wrong = api.http.put(f"/v1/payloads/{ref_of(DATA)}", content=b"other")

    assert (wrong.status_code, api.error_of(wrong)["code"]) == (400, "digest_mismatch")
    assert api.http.get(f"/v1/payloads/{ref_of(DATA)}").content == DATA


def test_an_upload_in_chunks_is_one_payload(api: Api) -> None:
    parts = [b"a" * 70_000, b"b" * 70_000]
    data = b"".join(parts)
    answer = api.http.put(f"/v1/payloads/{ref_of(data)}", content=iter(parts))

    assert answer.status_code == 201
    assert api.http.get(f"/v1/payloads/{ref_of(data)}").content == data


def test_a_secret_in_an_upload_is_on_no_disk(sparing_api: Api) -> None:
    data = f"word {SECRET} word".encode() * 3_000
    answer = sparing_api.http.put(f"/v1/payloads/{ref_of(data)}", content=data)

    assert answer.is_success
    assert kept_in_files(sparing_api.folder.path, SECRET.encode()) == []


def test_the_digest_of_the_rest_is_known_too(sparing_api: Api) -> None:
    data = f"word {SECRET} word".encode()
    told = sparing_api.http.put(f"/v1/payloads/{ref_of(data)}", content=data).json()
    if not told["stored"]:
        assert told["reason"] == "metadata_only"
        return

    rest = sparing_api.http.get(f"/v1/payloads/{told['stored_ref']}")
    assert ref_of(rest.content) == told["stored_ref"]
    assert "hansard-redacted" not in rest.headers
