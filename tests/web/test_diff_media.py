"""A comparison shows the images and files that only one side has."""

from __future__ import annotations

from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from tests.web.html import Element, parse
from tests.web.recorded_media import SVG, message, png, url
from tests.web.traces import Trace, said

LEFT, RIGHT = "a" * 32, "b" * 32


def call(pipeline: Pipeline, run: str, *images: str) -> str:
    parts = [{"type": "image_url", "image_url": {"url": one}} for one in images]
    trace = Trace(run)
    trace.agent(1)
    trace.chat(2, 1, [message(*parts)], said("assistant", "I see."))  # type: ignore[arg-type]
    return trace.send(pipeline).step(2)


def media(client: TestClient, left: str, right: str) -> tuple[Element, Element]:
    page = parse(client.get(f"/diff/{left}/{right}").text)
    sides = page.one("section", aria_labelledby="h-media").all("div", class_="diff-media")[0]
    first, second = [one for one in sides.all("div") if one.all("h3")][-2:]
    return first, second


def test_a_changed_image_is_shown_on_both_sides(client: TestClient, pipeline: Pipeline) -> None:
    old, new, kept = png(30, 20), png(40, 20), png(50, 20)
    left = call(pipeline, LEFT, url("image/png", kept), url("image/png", old))
    right = call(pipeline, RIGHT, url("image/png", kept), url("image/png", new))

    a, b = media(client, left, right)

    assert [client.get(one["src"]).content for one in a.all("img")] == [old]
    assert [client.get(one["src"]).content for one in b.all("img")] == [new]
    answer = client.get(a.one("img")["src"])
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "1 unchanged" in parse(client.get(f"/diff/{left}/{right}").text).text


def test_what_may_run_or_is_elsewhere_is_named_only(client: TestClient, pipeline: Pipeline) -> None:
    left = call(pipeline, LEFT, "https://elsewhere.example/a.png")
    right = call(pipeline, RIGHT, url("image/svg+xml", SVG))

    a, b = media(client, left, right)

    assert not a.all("img")
    assert not a.all("a")
    assert "not fetched" in a.text
    assert not b.all("img")
    answer = client.get(b.one("a", class_="link")["href"])
    assert answer.headers["content-disposition"].startswith("attachment; ")


def test_a_changed_result_of_a_tool_shows_both_images(
    client: TestClient, pipeline: Pipeline
) -> None:
    steps = []
    for run, data in ((LEFT, png(30, 20)), (RIGHT, png(40, 20))):
        trace = Trace(run)
        trace.agent(1)
        trace.tool(2, 1, "shot", "c1", result=f'{{"shot": "{url("image/png", data)}"}}')
        steps.append(trace.send(pipeline).step(2))

    a, b = media(client, *steps)

    assert client.get(a.one("img")["src"]).content == png(30, 20)
    assert client.get(b.one("img")["src"]).content == png(40, 20)


def test_a_saved_comparison_describes_images_without_links(
    client: TestClient, pipeline: Pipeline
) -> None:
    left = call(pipeline, LEFT, url("image/png", png(30, 20)))
    right = call(pipeline, RIGHT, url("image/png", png(40, 20)))

    page = parse(client.get(f"/v1/diff/saved/{left}/{right}").text)

    figures = page.all("figure")
    assert len(figures) == 2
    assert not page.all("img")
    assert not any(one.all("a") for one in figures)
