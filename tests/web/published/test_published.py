"""The published document is true: whoever writes a client from it meets what it says.

Against a real server over the store of a demo, and more: every answer validates against its schema
with `jsonschema`, every error has the shape and media type of errors, and requests that obey their
schemas are not refused for their form.
"""

from __future__ import annotations

import json
import re
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx2
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from hansard_store.database.connections import open_for_maintenance
from hansard_web.app.route_loading import api_routes
from hansard_web.app.security import is_a_decision
from tests.journeys.processes import hosting
from tests.signing import bearer
from tests.store.empty import empty_store
from tests.web.published.site import Site, ids_for, serving_filled
from tests.web.published.values import Values

pytestmark = pytest.mark.slow

Json = dict[str, Any]
OPERATIONS: Final = sorted(
    (method, route.path.replace(":path}", "}"))
    for route in api_routes()
    for method in route.methods or ()
)
# Those with a body of JSON fields: the bytes of a payload are none, and notifications need none.
_WITHOUT_FIELDS: Final = {
    "/v1/payloads/{ref}",
    "/v1/notifications/test",
    "/v1/notifications/{notification_id}/retry",
}
WITH_FIELDS: Final = [
    (method, path)
    for method, path in OPERATIONS
    if method in ("POST", "PUT", "PATCH") and path not in _WITHOUT_FIELDS
]
# A fork that goes on live needs a model server, and a replay is still running only where it takes
# long; tests/web/replay holds both to their models.
ELSEWHERE: Final = {
    ("POST /v1/replay", 202),
    ("POST /v1/replay/{replay_id}/continue", 201),
    ("POST /v1/replay/{replay_id}/continue", 202),
}
# What fields say together, or with what is stored: no schema can say it, and the words do.
RELATIONS: Final = re.compile(
    r"step_id is not of run_id|hex digits with - between, of its run|chain is not a step of run_id"
    r"|name a run or a step, and not both"
    r"|are a run and a step|this approval is of no batch|the bytes are sha256"
    r"|stable_hash is not the hash of kind and content"
    r"|the window ends before it begins|the window has [0-9,]+ steps of one (hour|day)"
    r"|approvals are required of|this Idempotency-Key came with another body"
)
# Alone such a field is no item's: tests/web/sidecar/test_sidecar_refusals.py sends whole items.
OF_ITEMS: Final = {("inputs", "[]"), ("context_items", "[]")}
_BROKEN: Final = (
    b"", b"{", b"[]", b"null", b'{"a": 1, "a": 2}', b'{"no_such_field": 1}', b'"\xff"',
    b'{"a": "\\ud800"}', b"[" * 200, b'{"a": 1e999}',
)  # fmt: skip
_EXAMPLES: Final = 12
# A stack trace, or the words of an exception of Python's or SQLite's.
_OF_CODE: Final = re.compile(r"Traceback|\.py\b|File \\?\"|[a-z]Error\b|SQLError|no such table")
_HEADER: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving_filled(tmp_path_factory.mktemp("published") / "data") as made:
        yield made


@pytest.fixture(scope="module")
def values(site: Site) -> Values:
    return Values(site.document)


def test_every_answer_of_a_filled_store_fits_its_schema(site: Site) -> None:
    assert site.wrong == []


def test_every_answer_that_the_document_names_was_given(site: Site) -> None:
    named = {
        (f"{method} {path}", int(status))
        for method, path, told in site.operations()
        for status in told["responses"]
        if status.isdigit()
    }
    given_ = {(one, status) for one, statuses in site.answered.items() for status in statuses}

    assert named - given_ - ELSEWHERE == set()
    assert {status for _, status in given_} <= {200, 201, 202, 206, 304, 416}


def test_the_document_describes_every_operation_once_and_closes_every_object(site: Site) -> None:
    schemas = site.document["components"]["schemas"]
    found = sorted((method, path) for method, path, _ in site.operations())
    answered = {
        key
        for _, _, told in site.operations()
        for key in _closure(schemas, told["responses"])
    }  # fmt: skip

    assert found == OPERATIONS
    assert [name for name in answered if _is_open(schemas[name])] == []
    assert list(_beside_refs(site.document)) == []
    for method, path, told in site.operations():
        for status in ("4XX", "5XX"):
            shape = told["responses"][status]["content"]
            assert shape == {
                "application/json": {"schema": {"$ref": "#/components/schemas/Error"}}
            }, (method, path)


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_a_request_that_obeys_its_schema_is_not_refused_for_its_form(
    site: Site, values: Values, method: str, path: str
) -> None:
    told = site.document["paths"][path][method.lower()]

    @settings(
        max_examples=_EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_requests(site, values, method, path, told))
    def check(request: httpx2.Request) -> None:
        answer = site.client.send(request)

        assert site.problems(method, path, answer) == [], request.content[:400]
        if answer.status_code in (400, 405, 413, 415, 422):
            assert RELATIONS.search(answer.text), (answer.text, request.url, request.content[:600])

    check()


@pytest.mark.covers("SC-20")
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_what_is_refused_is_answered_with_the_published_error(
    site: Site, method: str, path: str
) -> None:
    told = site.document["paths"][path][method.lower()]
    address = re.sub(r"\{\w+\}", "nothing-of-this-name", path)
    is_json = "application/json" in told.get("requestBody", {}).get("content", {})
    body: Json = {"content": b"{}", "headers": {"content-type": "application/json"}}
    requests: list[tuple[set[int], Json]] = [
        ({400, 404}, {"params": {"schema_version": "2"}, **(body if is_json else {})}),
        ({403}, {"headers": {"host": "evil.example"}, "auth": None}),
        ({404, 405}, {"method": "DELETE"}),
    ]
    if is_a_decision(method, address):
        requests.append(({401}, {"headers": bearer("wrong-token-of-nobody")}))
    if is_json:
        requests += [({400, 404}, {**body, "content": broken}) for broken in _BROKEN]
        requests.append(({415}, {"content": b"a=1", "headers": {"content-type": "text/plain"}}))
    for statuses, more in requests:
        answer = site.client.request(**{"method": method, "url": address, **more})
        if not statuses & {answer.status_code} and answer.status_code < 300:
            continue  # a body that no field is needed in
        assert answer.status_code in statuses, (more, answer.text[:300])
        assert answer.headers["content-type"] == "application/json", (more, answer.text[:300])
        assert site.misfits({"$ref": "#/components/schemas/Error"}, answer.json()) == []
        assert not _OF_CODE.search(answer.text), (more, answer.text[:300])


@pytest.mark.covers("SC-20")
@pytest.mark.parametrize(("method", "path"), WITH_FIELDS)
def test_what_was_sent_is_not_repeated_by_its_refusal(site: Site, method: str, path: str) -> None:
    fields = _fields_of(site.document, method, path)
    address = re.sub(r"\{\w+\}", "nothing-of-this-name", path)
    secret = "hunter2-of-somebody"

    for wrong in ([[secret]], {"a": secret}):
        answer = site.client.request(method, address, json=dict.fromkeys(fields, wrong))

        assert answer.status_code == 400, answer.text[:300]
        assert secret not in answer.text
        assert not _OF_CODE.search(answer.text)


@pytest.mark.covers("SC-18")
@pytest.mark.parametrize(("method", "path"), WITH_FIELDS)
def test_a_body_of_another_schema_version_is_refused_by_name(
    site: Site, method: str, path: str
) -> None:
    ids = {"log_id": f"conv_{'0' * 32}", "branch_id": f"br_{'0' * 32}"}
    address = re.sub(r"\{(\w+)\}", lambda one: ids.get(one[1], "0" * 32), path)

    assert "schema_version" in _fields_of(site.document, method, path)
    for version in ("999", 999):
        answer = site.client.request(method, address, json={"schema_version": version})

        assert answer.status_code == 400, answer.text[:300]
        assert "schema_version" in json.dumps(answer.json()["error"])


@pytest.mark.parametrize(("method", "path"), WITH_FIELDS)
def test_true_and_false_are_no_numbers(site: Site, method: str, path: str) -> None:
    described = site.document["paths"][path][method.lower()]["requestBody"]["content"]
    ids = {"log_id": f"conv_{'0' * 32}", "branch_id": f"br_{'0' * 32}"}
    address = re.sub(r"\{(\w+)\}", lambda one: ids.get(one[1], "0" * 32), path)
    taken = []
    for place in _numbers_in(site.document, described["application/json"]["schema"]):
        if place[:2] in OF_ITEMS:
            continue
        body: Any = True
        for name in reversed(place):
            body = [body] if name == "[]" else {name: body}

        answer = site.client.request(method, address, json=body)

        if answer.status_code < 400 or "not true or false" not in answer.text:
            taken.append((place, answer.status_code, answer.text[:300]))

    assert taken == []


def _numbers_in(document: Json, schema: Json, depth: int = 6) -> Iterator[tuple[str, ...]]:
    """Yield the places of the numbers that a body may have."""
    if depth == 0:
        return
    if schema.get("type") in ("integer", "number"):
        yield ()
    if "$ref" in schema:
        named = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        yield from _numbers_in(document, named, depth)
    for branch in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
        yield from _numbers_in(document, branch, depth)
    for name, of in schema.get("properties", {}).items():
        yield from ((name, *rest) for rest in _numbers_in(document, of, depth - 1))
    if isinstance(schema.get("items"), dict):
        yield from (("[]", *rest) for rest in _numbers_in(document, schema["items"], depth - 1))
    for of in schema.get("patternProperties", {}).values():
        yield from (("0" * 32, *rest) for rest in _numbers_in(document, of, depth - 1))


def _fields_of(document: Json, method: str, path: str) -> set[str]:
    """Return the names of the fields that a request's body may have."""
    body = document["paths"][path][method.lower()]["requestBody"]
    todo, found = [body["content"]["application/json"]["schema"]], set()
    while todo:
        schema = todo.pop()
        found |= set(schema.get("properties", ()))
        todo += [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
        if "$ref" in schema:
            todo.append(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]])
    assert found
    return found


@pytest.mark.covers("SC-20")
def test_an_internal_error_is_answered_without_a_trace_of_the_code(tmp_path: Path) -> None:
    """A store that lost its table of searched texts makes the server's own statement fail."""
    data = empty_store(tmp_path / "data")
    with hosting(data.path) as server:
        altered = open_for_maintenance(data)
        altered.execute("DROP TABLE text_fts")
        altered.close()
        with pytest.raises(urllib.error.HTTPError) as failed:
            server.get("/v1/search?q=refund")
        answer = failed.value.read().decode()

    error = json.loads(answer)["error"]
    assert failed.value.code == 500
    assert error["code"] == "internal"
    assert not _OF_CODE.search(answer)
    assert "text_fts" not in answer


@pytest.mark.parametrize(
    "path",
    ["/v1", "/v1/", "/v1/nothing", "/v1/runs/%00", "/v1/runs/%ff%fe", "/v1/runs/a%2fb", "/v1//runs",
     "/v1/runs/" + "a" * 5000, "/v1/payloads/..%2f..%2fhansard.key", "/healthz?schema_version=2",
     "/v1/policy/versions/0", "/v1/policy/versions/1e3", "/v1/policy/versions/" + "9" * 30],
)  # fmt: skip
def test_an_address_that_makes_no_sense_is_refused_as_json(site: Site, path: str) -> None:
    answer = site.client.get(path)

    assert answer.status_code in (400, 404), answer.text[:200]
    assert answer.headers["content-type"] == "application/json"
    assert site.misfits({"$ref": "#/components/schemas/Error"}, answer.json()) == []


# ---- requests out of their schemas


def _requests(
    site: Site, values: Values, method: str, path: str, told: Json
) -> SearchStrategy[httpx2.Request]:
    """Return requests of an operation as its parameters and its body are described."""

    @st.composite
    def made(draw: DrawFn) -> httpx2.Request:
        return _request(draw, site, values, method, path, told)

    return made()


def _request(
    draw: DrawFn, site: Site, values: Values, method: str, path: str, told: Json
) -> httpx2.Request:
    query: list[tuple[str, Any]] = []
    headers: dict[str, str] = {}
    names: dict[str, str] = {}
    for one in told.get("parameters", ()):
        name, where = one["name"], one["in"]
        if where == "path":
            names[name] = draw(_of_path(site, values, path, one))
        elif name != "wait" and (one.get("required") or draw(st.booleans())):
            value = draw(_without_cursors(values, one["schema"]))
            if where == "query":
                query += [(name, _text(each)) for each in _each(value)]
            elif value is not None and _HEADER.fullmatch(str(value)):
                headers[name] = str(value)
    content: bytes | None = None
    for kind, shape in told.get("requestBody", {}).get("content", {}).items():
        headers["content-type"] = kind
        is_json = kind == "application/json"
        content = json.dumps(draw(values.of(shape["schema"]))).encode() if is_json else b"bytes"
    address = path
    for name, value in names.items():
        address = address.replace(f"{{{name}}}", quote(value, safe=""))
    return site.client.build_request(
        method, address, params=query, headers=headers, content=content
    )


def _of_path(site: Site, values: Values, path: str, told: Json) -> SearchStrategy[str]:
    known = ids_for(site, path, told["name"])
    made = values.of(told["schema"]).map(str)
    return st.sampled_from(known) | made.filter(lambda text: re.search(r"[^.]", text) is not None
                                                and "/" not in text)  # fmt: skip


def _without_cursors(values: Values, schema: Json) -> SearchStrategy[Any]:
    """Return values of a parameter; cursors, which only an answer has, are left out."""
    return values.of(schema)


def _each(value: Any) -> list[Any]:
    found = value if isinstance(value, list) else [value]
    return [one for one in found if one is not None]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---- the document itself


def _closure(schemas: Json, told: Any) -> set[str]:
    done: set[str] = set()
    todo = set(re.findall(r"#/components/schemas/([\w.-]+)", json.dumps(told)))
    while todo:
        name = todo.pop()
        done.add(name)
        more = re.findall(r"#/components/schemas/([\w.-]+)", json.dumps(schemas[name]))
        todo |= set(more) - done
    return done


def _is_open(schema: Json) -> bool:
    return "properties" in schema and schema.get("additionalProperties") is not False


def _beside_refs(value: Any) -> Iterator[Json]:
    """Yield schemas that say a type beside a reference: both would have to hold."""
    if isinstance(value, dict):
        if "$ref" in value and "type" in value:
            yield value
        for one in value.values():
            yield from _beside_refs(one)
    elif isinstance(value, list):
        for one in value:
            yield from _beside_refs(one)
