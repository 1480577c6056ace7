"""docs/api: what the application says of itself, and examples that it understands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import unified_diff

import pytest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings
from tests.docs.api_examples import BODIES, QUERIES
from tests.docs.api_reference import COMMAND, Reference, reference_of
from tests.docs.write_reference import API
from tests.signing import People
from tests.store.empty import empty_store

MISUNDERSTOOD = {400, 405, 415, 422, 500}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = empty_store(tmp_path_factory.mktemp("api") / "data")
    pipeline = Pipeline(folder, RetentionPolicy("redacted_payloads", Redactor(folder.key())))
    pipeline.start()
    with TestClient(
        create_app(folder, pipeline, WebSettings()), base_url="http://localhost"
    ) as client:
        client.auth = People(folder)
        yield client
    pipeline.close()


@pytest.fixture(scope="module")
def reference(client: TestClient) -> Reference:
    return reference_of(client.app)  # type: ignore[arg-type]  # starlette has it as any ASGI app


@pytest.mark.covers("DC-04")
def test_the_pages_are_what_the_routes_say(reference: Reference) -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in API.glob("*.md")}
    pages = reference.pages()

    assert sorted(found) == sorted(pages), f"docs/api is out of date: run `{COMMAND}`"
    for name, text in pages.items():
        changed = "\n".join(unified_diff(found[name].splitlines(), text.splitlines(), n=0))
        assert not changed, f"docs/api/{name} is out of date: run `{COMMAND}`\n{changed}"


@pytest.mark.covers("DC-04")
def test_every_route_is_there_with_its_purpose_scope_answer_and_an_example(
    reference: Reference,
) -> None:
    text = "".join(reference.pages().values())
    sections = dict(re.findall(r"^## ((?:GET|PUT|POST|PATCH|DELETE) \S+)\n(.+?)(?=^## |\Z)", text,
                               re.MULTILINE | re.DOTALL))  # fmt: skip

    assert set(sections) == {route.name for route in reference.routes}
    assert len(sections) > 70
    for name, section in sections.items():
        assert re.search(r"^Scope: (`(read|ingest|decide|admin)`|none)", section, re.M), name
        assert re.search(r"^- `20\d`: \S", section, re.M), name
        assert "errors [of any route]" in section, name
        assert re.search(r'^curl -sS .*"\$H/', section, re.M), name


def test_every_example_is_understood(client: TestClient, reference: Reference) -> None:
    """Nothing that it names is there, so most are answered with 404; none with *bad request*."""
    wrong = []
    for route in reference.routes:
        address, body = reference.example(route)
        if body is None and route.body is not None:
            continue  # bytes of a payload, under a digest that is made up
        answer = client.request(route.method, address, json=body)
        if answer.status_code in MISUNDERSTOOD:
            wrong.append((route.name, answer.text))

    assert wrong == []


def test_examples_are_of_routes_that_are_there(reference: Reference) -> None:
    names = {route.name for route in reference.routes}

    assert set(BODIES) - names == set()
    assert {f"GET {path}" for path in QUERIES} - names == set()
