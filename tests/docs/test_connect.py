"""docs/connect: programs that are short and whole, settings that the doors take, facts that hold.

Against their real packages the programs are run by `make test-peers`; here, what those packages
sent is read from recordings.
"""

from __future__ import annotations

import ast
import re
import shlex
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.sdk import environment_variables
from starlette.testclient import TestClient

from hansard._clients.instrumentor_packages import (
    INSTRUMENTORS,
    NODE,
    PYTHON,
    Instrumentor,
    Setup,
    content_switch,
)
from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.pipeline.requests import Signal
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.application import create_app
from hansard_web.app.config import WebSettings, parse_token
from tests.collector.ingesting import Ingesting, span, traces
from tests.collector.sessions.maker import request
from tests.collector.sessions.scenes import claude_turn, codex_turn
from tests.peers.connect import Page, pages, readme_lines
from tests.store.empty import empty_store

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "connect"
FIXTURES = ROOT / "tests" / "fixtures"
NAMES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")
PROGRAMS = pages()
PARTS = ["What you set", "What you will see", "What is lost"]
SECRET = "a-long-secret-word"

# Who may set what: OpenTelemetry's own names, and those that a page explains as its tool's.
_CAPTURE = ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",)
OF_TOOLS = {
    "claude-code": ("CLAUDE_CODE_", "OTEL_LOG_"),
    "openai-python": _CAPTURE,
    "openai-node": _CAPTURE,
    "anthropic-python": _CAPTURE,
    "litellm": ("LITELLM_", "USE_OTEL_LITELLM_"),
    "otel-collector": ("HANSARD_HTTP_ENDPOINT",),
}
STANDARD = {
    value for name, value in vars(environment_variables).items() if name.startswith("OTEL_")
} | {"OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER", "OTEL_LOGS_EXPORTER"}
# Packages whose module has another name, and what comes along with one that is named.
DISTRIBUTIONS = {"agents": "openai-agents", "pydantic_ai": "pydantic-ai-slim"}
BROUGHT = {"opentelemetry-sdk": "opentelemetry-exporter-otlp"}


def text_of(name: str) -> str:
    return (FOLDER / f"{name}.md").read_text(encoding="utf-8")


def block(name: str, language: str) -> str:
    found = re.search(rf"```{language}\n(.*?)```", text_of(name), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_has_its_parts_and_the_index_leads_to_it(name: str) -> None:
    assert re.findall(r"^## (.+)$", text_of(name), re.MULTILINE) == PARTS
    assert f"({name}.md)" in text_of("README")


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.name)
def test_a_program_is_short_and_whole(page: Page) -> None:
    lines = [line for line in page.program.splitlines() if line.strip()]
    assert len(lines) <= 20
    assert "OTEL_EXPORTER_OTLP_ENDPOINT" in page.variables
    if page.language == "python":
        assert {_distribution(module) for module in _imported(page.program)} <= _installed(page)
    else:
        imported = set(re.findall(r'from "(@?[\w-]+(?:/[\w-]+)?)"', page.program))
        assert imported <= set(page.install.split())


def _imported(program: str) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def _distribution(module: str) -> str:
    parts = module.split(".")
    if parts[0] == "openinference":
        return f"openinference-instrumentation-{parts[2].replace('_', '-')}"
    if parts[:2] == ["opentelemetry", "exporter"]:
        return "opentelemetry-exporter-otlp"
    if parts[0] == "opentelemetry":
        return "opentelemetry-sdk"
    return DISTRIBUTIONS.get(parts[0], parts[0].replace("_", "-"))


def _installed(page: Page) -> set[str]:
    named = {word.partition("[")[0] for word in shlex.split(page.install)[2:]}
    return named | {own for own, by in BROUGHT.items() if by in named}


@pytest.mark.parametrize("name", [*NAMES, "README"])
def test_no_variable_is_invented(name: str) -> None:
    named = set(
        re.findall(r"\b((?:OTEL|CLAUDE_CODE|LITELLM|USE_OTEL|HANSARD)_\w+)\b", text_of(name))
    )

    assert {one for one in named - STANDARD if not one.startswith(OF_TOOLS.get(name, ("-",)))} == (
        set()
    )


@pytest.mark.parametrize("place", ["README.md", "web/hansard_web/templates/greeting.html"])
def test_claude_code_is_set_up_alike_wherever_it_is_told(place: str) -> None:
    first = block("claude-code", "sh")
    told = re.sub(r"<[^>]+>|\{\{[^}]+\}\}", "", (ROOT / place).read_text(encoding="utf-8"))

    for name in re.findall(r"(\w+)=", first):
        assert f"{name}=" in told


# ---- the plain clients: one table of packages that work


@pytest.mark.parametrize("one", INSTRUMENTORS, ids=lambda one: one.page)
def test_a_page_of_a_plain_client_installs_the_package_that_works(one: Instrumentor) -> None:
    [page] = [page for page in PROGRAMS if page.name == one.page]

    assert one.package in page.install.split()
    assert page.language == {"python": "python", "nodejs": "js"}[one.language]
    if one.language == "python":
        assert f"export {PYTHON.content}\n" in text_of(one.page)


@pytest.mark.parametrize("setup", [PYTHON, NODE], ids=lambda setup: setup.language)
def test_the_readme_has_the_lines_of_the_table(setup: Setup) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert "```sh\n" + "\n".join(setup.lines) + "\n```" in readme
    assert setup.text in readme


def test_a_switch_of_the_table_is_found_by_what_its_packages_send() -> None:
    found = {
        scope: switch.lines
        for scope in ("opentelemetry.instrumentation.genai.openai", "@traceloop/instrumentation-x")
        if (switch := content_switch([scope]))
    }

    assert found == {
        "opentelemetry.instrumentation.genai.openai": f"export {PYTHON.content}",
        "@traceloop/instrumentation-x": "export TRACELOOP_TRACE_CONTENT=true",
    }
    assert content_switch(["a.scope.that.nobody.knows", ""]) is None


def test_every_line_that_is_run_has_its_versions_pinned() -> None:
    folder = ROOT / "tests" / "peers" / "pinned"

    pinned = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.txt")}

    assert set(pinned) == {page.name for page in [*PROGRAMS, *readme_lines()]}
    for text in pinned.values():
        assert all(re.fullmatch(r"[@\w./-]+==[\w.+-]+", line) for line in text.splitlines())


# ---- what is set is what the doors take


@contextmanager
def _door(path: Path, *, token: str = "") -> Iterator[TestClient]:
    folder = empty_store(path)
    pipeline = Pipeline(folder, RetentionPolicy("redacted_payloads", Redactor(folder.key())))
    pipeline.start()
    tokens = (parse_token(token),) if token else ()
    app = create_app(folder, pipeline, WebSettings(tokens=tokens))
    try:
        with TestClient(app, base_url="http://127.0.0.1:4318") as client:
            yield client
    finally:
        pipeline.close()


def _posted(sidecar_service: TestClient, url: str, **headers: str) -> int:
    body = traces([span(1)]).SerializeToString() if url.endswith("traces") else b""
    kind = {"content-type": "application/x-protobuf"}
    return sidecar_service.post(url, content=body, headers=kind | headers).status_code


@pytest.mark.parametrize("name", [page.name for page in PROGRAMS] + ["claude-code", "README"])
def test_the_common_endpoint_gets_its_paths_from_the_exporter(name: str, tmp_path: Path) -> None:
    [endpoint] = set(re.findall(r"OTLP_ENDPOINT=(\S+)", text_of(name)))

    with _door(tmp_path) as sidecar_service:
        assert [_posted(sidecar_service, f"{endpoint}/v1/{signal}") for signal in Signal] == [
            200
        ] * 3


def test_codex_names_whole_paths_that_are_there(tmp_path: Path) -> None:
    otel = tomllib.loads(block("codex", "toml"))["otel"]

    with _door(tmp_path) as sidecar_service:
        for name, path in (("exporter", "/v1/logs"), ("trace_exporter", "/v1/traces")):
            one = otel[name]["otlp-http"]
            assert one["protocol"] == "binary"  # OTLP in protobuf
            assert one["endpoint"].endswith(path)
            assert _posted(sidecar_service, one["endpoint"]) == 200


def test_the_collectors_configuration_is_whole_and_its_header_opens(tmp_path: Path) -> None:
    config: dict[str, Any] = yaml.safe_load(block("otel-collector", "yaml"))
    [(name, exporter)] = config["exporters"].items()
    header = exporter["headers"]["authorization"].replace("SECRET", SECRET)

    assert name.partition("/")[0] == "otlphttp"
    assert set(config["service"]["pipelines"]) == {str(signal) for signal in Signal}
    for pipeline in config["service"]["pipelines"].values():
        assert set(pipeline["receivers"]) <= set(config["receivers"])
        assert set(pipeline["exporters"]) <= set(config["exporters"])
    ports = {
        sidecar_service["endpoint"]
        for sidecar_service in config["receivers"]["otlp"]["protocols"].values()
    }
    assert not {port.rpartition(":")[2] for port in ports} & {"4317", "4318"}
    with _door(tmp_path, token=f"ingest:{SECRET}") as sidecar_service:
        url = f"{exporter['endpoint']}/v1/traces"
        assert _posted(sidecar_service, url) == 401
        assert _posted(sidecar_service, url, authorization=header) == 200


# ---- what is said of a tool holds for what it sent


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Ingesting]:
    made = Ingesting(tmp_path, retention="redacted_payloads")
    yield made
    made.close()


RECORDED = {
    "claude-code": "recordings/claude_code",
    "vercel-ai-sdk": "recordings/vercel_ai_v7",
    "pydantic-ai": "otlp/pydantic_ai_own",
    "langgraph": "otlp/oi_langchain",
    "openai-agents": "otlp/openai_agents_oi",
    "litellm": "connect/litellm",
}


@pytest.mark.parametrize("name", RECORDED)
def test_what_a_library_sent_makes_runs_whose_calls_count_once(
    stored: Ingesting, name: str
) -> None:
    for path in sorted((FIXTURES / RECORDED[name]).glob("*.binpb")):
        stored.send_bytes(Signal(path.suffixes[-2].removeprefix(".")), path.read_bytes())

    calls = stored.all("SELECT tokens_input, tokens_output FROM call WHERE counted")
    in_runs = stored.one("SELECT sum(tokens_input), sum(tokens_output) FROM run")
    assert calls
    assert in_runs == tuple(sum(filter(None, column)) for column in zip(*calls, strict=True))
    assert min(in_runs) > 0


def test_litellms_raw_view_of_a_call_is_shown_and_not_counted(stored: Ingesting) -> None:
    folder = FIXTURES / RECORDED["litellm"]
    for path in folder.glob("*.binpb"):
        stored.send_bytes(Signal.TRACES, path.read_bytes())

    counted = stored.all(
        "SELECT span.name, call.counted FROM call JOIN span ON span.id = call.span"
    )
    assert sorted(counted) == [("litellm_request", 1), ("raw_gen_ai_request", 0)]
    assert stored.one("SELECT model_calls, tokens_input, tokens_output FROM run") == (1, 100, 20)


@pytest.mark.parametrize(
    ("turn", "service", "calls", "tokens"),
    [(claude_turn, "claude-code", 3, 2430), (codex_turn, "codex", 3, 4500)],
)
def test_a_coding_agent_that_sends_logs_alone_is_shown_as_runs(
    stored: Ingesting, turn: Callable[[], list[LogRecord]], service: str, calls: int, tokens: int
) -> None:
    stored.send(request(turn(), service))

    shown = stored.all("SELECT model_calls, tool_calls, tokens_input FROM run")
    assert shown == [(calls, 1, tokens)]
