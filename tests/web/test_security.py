"""Who may ask: every door against every way a foreign page, name or token can come along."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_web.app.config import WebSettings, parse_token
from hansard_web.app.security import CONTENT_SECURITY_POLICY
from hansard_web.principals.dependencies import SESSION_COOKIE
from hansard_web.ui.forms import MAX_BYTES, MAX_OPEN_BYTES
from tests.web.conftest import MakeClient
from tests.web.html import parse
from tests.web.makers import RunMaker

ALL, SENDER, READER = "all-scopes-0001", "ingest:sender-0001", "read:reader-0001"
GUARDED = WebSettings(tokens=tuple(map(parse_token, (ALL, SENDER, READER))))
PROTOBUF = {"Content-Type": "application/x-protobuf"}

PAGE, API, OTLP = ("GET", "/"), ("GET", "/v1/openapi.json"), ("POST", "/v1/traces")
DOORS = {"page": PAGE, "api": API, "otlp": OTLP}

FOREIGN = {
    "another host": {"Host": "evil.example"},
    "a name that resolves here": {"Host": "localhost.evil.example:4318"},
    "an empty host": {"Host": ""},
    "another origin": {"Origin": "https://evil.example"},
    "another port": {"Origin": "http://localhost:3000"},
    "an origin without address": {"Origin": "null"},
    "a broken origin": {"Origin": "http://[::1"},
    "a cross-site request": {"Sec-Fetch-Site": "cross-site"},
}
OWN = {
    "localhost": {"Host": "localhost:4318"},
    "LOCALHOST.": {"Host": "LOCALHOST.:4318"},
    "127.0.0.1": {"Host": "127.0.0.1"},
    "::1": {"Host": "[::1]:4318"},
    "own origin": {"Host": "localhost:4318", "Origin": "http://localhost:4318"},
    "own site": {"Sec-Fetch-Site": "same-origin"},
    "typed address": {"Sec-Fetch-Site": "none"},
}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token.rpartition(':')[2]}"}


@pytest.fixture
def open_client(make_client: MakeClient, pipeline: Pipeline) -> TestClient:
    """An app with all doors and no tokens."""
    return make_client(WebSettings(), pipeline)


@pytest.fixture
def guarded_client(make_client: MakeClient, pipeline: Pipeline) -> TestClient:
    """An app with all doors, behind tokens of different scopes."""
    return make_client(GUARDED, pipeline)


def ask(client: TestClient, door: tuple[str, str], headers: Mapping[str, str]) -> tuple[int, bytes]:
    method, path = door
    body = ExportTraceServiceRequest().SerializeToString() if method == "POST" else None
    typed = PROTOBUF if method == "POST" else {}
    answer = client.request(method, path, content=body, headers={**typed, **headers})
    return answer.status_code, answer.content


@pytest.mark.covers("SC-23")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN.keys())
def test_requests_of_other_sites_are_refused_at_every_door(
    open_client: TestClient, door: tuple[str, str], headers: Mapping[str, str]
) -> None:
    status, body = ask(open_client, door, headers)

    assert status == 403
    if door == OTLP:
        assert Status.FromString(body).code == 7
    if door == API:
        assert body.startswith(b'{"schema_version":"1","error":{"code":')
    if door == PAGE:
        assert parse(body.decode()).one("h1").text == "Forbidden"


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
@pytest.mark.parametrize("headers", OWN.values(), ids=OWN.keys())
def test_requests_of_our_own_pages_and_programs_pass_every_door(
    open_client: TestClient, door: tuple[str, str], headers: Mapping[str, str]
) -> None:
    status, _ = ask(open_client, door, headers)

    assert status == 200


def test_two_host_headers_are_refused(open_client: TestClient) -> None:
    answer = open_client.get("/", headers=[("Host", "localhost"), ("Host", "evil.example")])

    assert answer.status_code == 403


def test_an_allowed_host_passes(make_client: MakeClient) -> None:
    client = make_client(WebSettings(allow_hosts=("Traces.Example",)))

    assert client.get("/", headers={"Host": "traces.example:8080"}).status_code == 200
    assert client.get("/", headers={"Host": "other.example"}).status_code == 403


def test_health_may_be_asked_under_any_name_and_without_a_token(guarded_client: TestClient) -> None:
    assert guarded_client.get("/healthz", headers={"Host": "probe.internal"}).status_code == 200


def test_a_valid_token_skips_the_host_check_only(guarded_client: TestClient) -> None:
    headers = {"Host": "traces.internal", **bearer(ALL)}

    assert guarded_client.get("/", headers=headers).status_code == 200
    foreign = {**headers, "Origin": "https://evil.example"}
    assert guarded_client.get("/", headers=foreign).status_code == 403


SCOPES = [
    (PAGE, ALL, 200),
    (PAGE, READER, 200),
    (PAGE, SENDER, 403),
    (API, ALL, 200),
    (API, READER, 200),
    (API, SENDER, 403),
    (OTLP, ALL, 200),
    (OTLP, READER, 403),
    (OTLP, SENDER, 200),
    (("POST", "/v1/approvals/1/approve"), SENDER, 403),
    (("POST", "/v1/approvals/1/approve"), READER, 403),
    (("DELETE", "/v1/runs/1"), READER, 403),
]


@pytest.mark.parametrize(("door", "token", "status"), SCOPES)
def test_a_token_opens_the_doors_of_its_scopes_and_no_other(
    guarded_client: TestClient, door: tuple[str, str], token: str, status: int
) -> None:
    assert ask(guarded_client, door, bearer(token))[0] == status


def test_without_a_token_senders_and_programs_get_401(guarded_client: TestClient) -> None:
    status, body = ask(guarded_client, OTLP, {})
    assert (status, Status.FromString(body).code) == (401, 16)

    answer = guarded_client.get("/v1/openapi.json", headers=bearer("wrong-token"))
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "unauthenticated"
    alias = guarded_client.get("/openapi.json", headers=bearer("wrong-token"))
    assert (alias.status_code, alias.json()["error"]["code"]) == (401, "unauthenticated")


def test_a_refused_sender_is_counted(guarded_client: TestClient, runs: RunMaker) -> None:
    ask(guarded_client, OTLP, {"User-Agent": "stray/1"})
    ask(guarded_client, OTLP, bearer(SENDER))  # answered after the commit that counts both

    found = runs.store.db.execute(
        "SELECT user_agent, code, signal FROM refusal JOIN sender ON sender.id = refusal.sender"
    ).fetchall()
    assert found == [("stray/1", "unauthenticated", "traces")]


def test_a_person_signs_in_once_and_comes_back_to_the_page(guarded_client: TestClient) -> None:
    sent = guarded_client.get("/search?q=a%26b")
    assert (sent.status_code, sent.headers["location"]) == (
        303,
        "/signin?next=/search%3Fq%3Da%2526b",
    )
    form = parse(guarded_client.get(sent.headers["location"]).text).one("form", action="/signin")
    fields = {field["name"]: field.attributes.get("value", "") for field in form.all("input")}

    answer = guarded_client.post("/signin", data={**fields, "token": ALL})

    assert (answer.status_code, answer.headers["location"]) == (303, "/search?q=a%26b")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ALL not in cookie
    assert guarded_client.get("/search").status_code == 200


def test_a_wrong_token_is_told_in_the_form(guarded_client: TestClient) -> None:
    form = parse(guarded_client.get("/signin").text).one("form", action="/signin")
    csrf = form.one("input", name="csrf")["value"]

    answer = guarded_client.post("/signin", data={"csrf": csrf, "token": "guess"})

    assert answer.status_code == 422
    assert SESSION_COOKIE not in answer.headers.get("set-cookie", "")
    assert "not a token of this server" in answer.text


def test_signing_out_takes_the_session_away(guarded_client: TestClient) -> None:
    form = parse(guarded_client.get("/signin").text).one("form", action="/signin")
    csrf = form.one("input", name="csrf")["value"]
    guarded_client.post("/signin", data={"csrf": csrf, "token": ALL})
    csrf = parse(guarded_client.get("/").text).one("form", action="/signout").one("input")["value"]

    guarded_client.post("/signout", data={"csrf": csrf})

    assert guarded_client.get("/").headers["location"] == "/signin?next=/"


@pytest.mark.parametrize("address", ["//evil.example", "/\\evil.example", "https://evil.example"])
def test_the_way_back_leads_nowhere_else(guarded_client: TestClient, address: str) -> None:
    form = parse(guarded_client.get("/signin").text).one("form", action="/signin")
    csrf = form.one("input", name="csrf")["value"]

    answer = guarded_client.post("/signin", data={"csrf": csrf, "token": ALL, "next": address})

    assert answer.headers["location"] == "/"


@pytest.mark.covers("SC-23")
def test_a_form_without_its_token_changes_nothing(open_client: TestClient) -> None:
    answer = open_client.post("/theme", data={"theme": "dark"})

    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


EVERY_ANSWER = ["/", "/nothing-here", "/v1/nothing-here", "/static/x/css/app.css", "/healthz"]


@pytest.mark.parametrize("path", EVERY_ANSWER)
def test_every_answer_carries_the_protecting_headers(open_client: TestClient, path: str) -> None:
    headers = open_client.get(path).headers

    assert headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers


def test_a_link_on_another_site_can_be_opened_from_the_page_that_refuses_it(
    open_client: TestClient,
) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}

    answer = open_client.get("/search?q=x", headers=headers)

    assert answer.status_code == 403
    assert parse(answer.text).one("a", class_="btn--primary")["href"] == "/search?q=x"


EXPORTER = "https://app.example"


def test_a_named_origin_may_send_telemetry_and_nothing_else(
    make_client: MakeClient, pipeline: Pipeline
) -> None:
    settings = WebSettings(
        tokens=GUARDED.tokens, cors_origins=frozenset({EXPORTER}), allow_hosts=("localhost",)
    )
    client = make_client(settings, pipeline)
    foreign = {"Origin": EXPORTER, "Sec-Fetch-Site": "cross-site"}

    asked = {**foreign, "Access-Control-Request-Method": "POST"}
    preflight = client.options("/v1/traces", headers=asked)
    sent = client.post("/v1/traces", content=b"", headers={**PROTOBUF, **foreign, **bearer(SENDER)})
    unknown = client.post("/v1/traces", content=b"", headers={**PROTOBUF, **foreign})

    assert preflight.status_code in (200, 204)
    assert sent.status_code == 200
    assert unknown.status_code == 401
    for answer in (preflight, sent, unknown):
        assert answer.headers["access-control-allow-origin"] == EXPORTER
    assert client.get("/", headers={**foreign, **bearer(ALL)}).status_code == 403


def test_no_path_is_ever_redirected_for_its_slash(open_client: TestClient) -> None:
    assert open_client.get("/search/").status_code == 404
    assert open_client.get("/v1/runs/").status_code == 404
    assert open_client.post("/v1/traces/", content=b"", headers=PROTOBUF).status_code == 200


def test_a_process_without_a_door_for_senders_tells_them_so(client: TestClient) -> None:
    answer = client.post("/v1/traces", content=b"", headers=PROTOBUF)

    assert answer.status_code == 404
    assert Status.FromString(answer.content).code == 12


@pytest.mark.parametrize("token", ["", ALL])
@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_is_not_read_without_end(guarded_client: TestClient, token: str, kind: str) -> None:
    most = MAX_BYTES if token else MAX_OPEN_BYTES

    def parts() -> Iterator[bytes]:
        yield b'--x\r\ncontent-disposition: form-data; name="a"; filename="b"\r\n\r\n'
        for _ in range(100):
            yield b"x&" * (most // 20)

    headers = {"Content-Type": f"{kind}; boundary=x", **(bearer(token) if token else {})}
    answer = guarded_client.post("/signin", content=parts(), headers=headers)

    assert (answer.status_code, "too long" in answer.text) == (413, True)


def test_a_form_of_usual_length_is_read(guarded_client: TestClient) -> None:
    answer = guarded_client.post("/signin", data={"token": "x" * 50_000, "csrf": "wrong"})

    assert answer.status_code == 403
