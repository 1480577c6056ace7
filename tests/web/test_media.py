"""Images, sound and files of recorded content: on pages, and by their address."""

from __future__ import annotations

import hashlib

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.html import Element, parse
from tests.web.recorded_media import GIF, PDF, SVG, b64, message, png, shapes, url, wav
from tests.web.traces import Trace, said

RUN = "c" * 32
SAFE = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "sandbox; default-src 'none'",
    "cross-origin-resource-policy": "same-origin",
}


def conversation(client: TestClient, pipeline: Pipeline, *parts: object) -> Element:
    trace = Trace(RUN)
    trace.agent(1)
    trace.chat(2, 1, [message(*parts)], said("assistant", "I see."))  # type: ignore[arg-type]
    trace.send(pipeline)
    answer = client.get(f"/runs/{RUN}?view=conversation")
    assert answer.status_code == 200
    return parse(answer.text)


def address(page: Element) -> str:
    return page.one("figure").one("a", class_="link")["href"]


@pytest.mark.parametrize("library", shapes(b""))
def test_an_image_of_every_library_is_shown_from_this_server(
    client: TestClient, pipeline: Pipeline, library: str
) -> None:
    data = png(300, 200)

    page = conversation(client, pipeline, shapes(data)[library])

    image = page.one("figure").one("img")
    answer = client.get(image["src"])
    assert answer.content == data
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-disposition"].startswith("inline; ")
    assert SAFE.items() <= dict(answer.headers).items()
    assert hashlib.sha256(data).hexdigest()[:12] in page.one("figure").text
    assert b64(data)[:60] not in page.text


def test_sound_can_be_read_in_ranges(client: TestClient, pipeline: Pipeline) -> None:
    data = wav()
    part = {"type": "input_audio", "input_audio": {"format": "wav", "data": b64(data)}}

    src = conversation(client, pipeline, part).one("audio")["src"]

    some = client.get(src, headers={"Range": "bytes=10-19"})
    assert (some.status_code, some.content) == (206, data[10:20])
    assert some.headers["content-range"] == f"bytes 10-19/{len(data)}"
    assert client.get(src, headers={"Range": "bytes=-5"}).content == data[-5:]
    assert client.get(src, headers={"Range": f"bytes={len(data)}-"}).status_code == 416
    etag = some.headers["etag"]
    assert client.get(src, headers={"If-None-Match": etag}).status_code == 304


@pytest.mark.parametrize(
    ("declared", "data"),
    [
        ("image/svg+xml", SVG),
        ("text/html", b"<script>alert(1)</script>" * 4),
        ("image/png", b"<html><script>alert(1)</script></html>" * 4),
        ("image/jpeg", png()),  # its bytes are another type
        ("text/html", png()),
        ("application/pdf", PDF),
        ("image/png", png(claimed=(60_000, 60_000))),
        ("image/png", png()[:20] + b""),
    ],
)
def test_what_may_not_be_shown_is_a_download(
    client: TestClient, pipeline: Pipeline, declared: str, data: bytes
) -> None:
    page = conversation(
        client, pipeline, {"type": "blob", "mime_type": declared, "content": b64(data)}
    )

    if data == png()[:20]:  # the type agrees; a browser shows what there is of it
        assert page.one("figure").all("img")
        return
    assert not page.one("figure").all("img")
    answer = client.get(address(page))
    assert answer.content == data
    assert answer.headers["content-disposition"].startswith("attachment; ")
    assert answer.headers["content-type"].partition(";")[0] in (
        "application/octet-stream",
        "application/pdf",
        "image/png",
    )
    assert SAFE.items() <= dict(answer.headers).items()


def test_html_behind_an_image_is_served_as_the_image(
    client: TestClient, pipeline: Pipeline
) -> None:
    data = GIF + b"<script>alert(1)</script>" * 10
    part = {"type": "image_url", "image_url": {"url": url('image/gif;name="><script>', data)}}
    part["image_url"] = {"url": f"data:image/gif;charset=x;base64,{b64(data)}"}

    answer = client.get(conversation(client, pipeline, part).one("figure").one("img")["src"])

    assert answer.headers["content-type"] == "image/gif"
    assert SAFE.items() <= dict(answer.headers).items()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://elsewhere.example/a.png"}},
        {"type": "file", "modality": "image", "file_id": "file-123"},
        {"fileData": {"mimeType": "image/png", "fileUri": "gs://bucket/a.png"}},
    ],
)
def test_references_are_named_and_never_loaded(
    client: TestClient, pipeline: Pipeline, part: dict[str, object]
) -> None:
    figure = conversation(client, pipeline, part).one("figure")

    assert not figure.all("img")
    assert not figure.all("a")
    assert "not fetched" in figure.text
    assert figure.one("code").text in (
        "https://elsewhere.example/a.png",
        "file-123",
        "gs://bucket/a.png",
    )


def test_input_and_output_and_attributes_show_media(client: TestClient, pipeline: Pipeline) -> None:
    data = png(64, 64)
    result = f'{{"shot": "{url("image/png", data)}", "n": 1}}'
    trace = Trace(RUN)
    trace.agent(1)
    trace.tool(2, 1, "screenshot", "c1", result=result)
    trace.send(pipeline)

    page = parse(client.get(f"/steps/{RUN}-{2:016x}?tab=io").text)
    attributes = client.get(f"/steps/{RUN}-{2:016x}?tab=attributes").text

    assert client.get(page.one("figure").one("img")["src"]).content == data
    assert b64(data)[:80] not in page.text
    assert b64(data)[:80] not in attributes
    assert hashlib.sha256(data).hexdigest()[:12] in attributes


def test_a_page_of_fifty_images_stays_small(client: TestClient, pipeline: Pipeline) -> None:
    data = png() + b"\0" * 150_000
    parts = [{"type": "blob", "mime_type": "image/png", "content": b64(data)}] * 50

    page = conversation(client, pipeline, *parts)

    assert len(page.all("figure")) == 50
    assert len(client.get(f"/runs/{RUN}?view=conversation").content) < 250_000


def test_a_stored_payload_is_shown_and_a_missing_one_is_named(
    client: TestClient, pipeline: Pipeline
) -> None:
    data = png()
    ref = f"sha256:{hashlib.sha256(data).hexdigest()}"
    missing = f"sha256:{'0' * 64}"
    stored = client.put(f"/v1/payloads/{ref}", content=data, headers={"Content-Type": "image/png"})
    assert stored.status_code == 201

    page = conversation(
        client,
        pipeline,
        {"type": "blob", "mime_type": "image/png", "content": url("image/png", data)},
        {"type": "uri", "mime_type": "image/png", "uri": missing},
    )

    answer = client.get(f"/v1/payloads/{ref}/media")
    assert (answer.content, answer.headers["content-type"]) == (data, "image/png")
    assert len(page.all("figure")) == 2


@pytest.mark.parametrize("path", ["0/9", "9/0", "x/0", "0/-1", "0/99999999999999999999"])
def test_unknown_media_is_not_found(client: TestClient, pipeline: Pipeline, path: str) -> None:
    page = conversation(client, pipeline, shapes(png())["anthropic"])
    base = address(page).rpartition("/media/")[0]

    assert client.get(f"{base}/media/{path}").status_code == 404
    assert client.get(f"/v1/messages/zz/media/{path}").status_code == 404
