"""docs/deploy.md, Dockerfile and compose.yaml: every setting, command and path in them is there.

No image is built here. Its health check is asked of a running server, and the packaging test builds
the package from just the files that the image copies.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from hansard_collector.pipeline.ingest_queue import Pipeline
from hansard_collector.pipeline.redaction import RetentionPolicy
from hansard_collector.receivers.export_response import MAX_BODY_BYTES
from hansard_compiler.errors import ConfigError
from hansard_compiler.redaction.redactor import Redactor
from hansard_web.app.application import create_app
from hansard_web.app.config import SETTINGS, WebSettings, load_config, parse_token
from hansard_web.cli import COMMANDS
from tests.collector.ingesting import span, traces
from tests.dockerfile import Instruction, copied, ignored, read_dockerfile
from tests.journeys.processes import Serving, environment, serving
from tests.store.empty import empty_store

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
BUILD, IMAGE = read_dockerfile(ROOT / "Dockerfile")
ENVIRONMENT = {setting.variable for setting in SETTINGS}
DEFAULTS = {setting.name: setting.default for setting in SETTINGS}
SECRET = "a-long-secret"


def block(language: str) -> str:
    [found] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def only(stage: list[Instruction], name: str) -> str:
    [found] = [instruction.value for instruction in stage if instruction.name == name]
    return found


# ---- the page


def test_the_configuration_of_the_page_is_taken(tmp_path: Path) -> None:
    (tmp_path / "hansard.toml").write_text(block("toml"), encoding="utf-8")

    config = load_config({"data": str(tmp_path)}, {})

    assert config.host == "0.0.0.0"
    scopes = [sorted(map(str, token.scopes)) for token in config.token]
    assert scopes[:2] == [["ingest"], ["decide", "read"]]
    assert config.allow_host == ("traces.example",)


def test_every_variable_and_setting_of_the_page_is_there() -> None:
    assert set(re.findall(r"\bHANSARD_\w+", PAGE)) <= ENVIRONMENT
    named = set(re.findall(r"`(\w+)(?: = [^`]+)?`", PAGE))
    assert {"keep", "max_disk", "allow_host", "tls_cert", "tls_key"} <= named
    assert {"keep", "max_disk", "allow_host", "tls_cert", "tls_key"} <= set(DEFAULTS)


def test_the_unit_starts_a_command_that_is_there() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys have capitals
    unit.read_string(block("ini"))
    program, command = unit["Service"]["ExecStart"].split()
    name, _, value = unit["Service"]["Environment"].partition("=")

    assert program.endswith("/bin/hansard")
    assert command in {entry.name for entry in COMMANDS}
    assert name in ENVIRONMENT
    assert value == f"/var/lib/{unit['Service']['StateDirectory']}"


def test_the_proxy_lets_through_what_the_server_takes() -> None:
    told = dict(re.findall(r"^\s*([\w_]+) +(.+);$", block("nginx"), re.MULTILINE))

    assert told["client_max_body_size"] == f"{MAX_BODY_BYTES >> 20}m"
    assert told["proxy_pass"].endswith(f":{DEFAULTS['http_port']}")
    assert "proxy_set_header Host $http_host;" in block("nginx")
    assert told["proxy_buffering"] == "off"


@pytest.mark.parametrize(("host", "status"), [("traces.example", 303), ("127.0.0.1:4318", 403)])
def test_people_sign_in_behind_a_proxy_that_keeps_the_host(
    tmp_path: Path, host: str, status: int
) -> None:
    settings = WebSettings(tokens=(parse_token(SECRET),), allow_hosts=("traces.example",))
    app = create_app(empty_store(tmp_path), None, settings)
    with TestClient(app, base_url=f"http://{host}", follow_redirects=False) as client:
        csrf = re.search(r'name="csrf" value="([^"]+)"', client.get("/signin").text)
        form = {"token": SECRET, "csrf": csrf[1] if csrf else ""}
        answer = client.post("/signin", data=form, headers={"Origin": "https://traces.example"})

    assert answer.status_code == status


# ---- the image


def test_the_image_runs_as_nobody_in_particular_and_keeps_its_data() -> None:
    user = only(IMAGE, "USER")
    made = only(IMAGE, "RUN")

    assert only(BUILD, "FROM").partition(" ")[0] == only(IMAGE, "FROM")
    assert re.fullmatch(r"python:3\.\d+-slim", only(IMAGE, "FROM"))
    assert user == "hansard"
    assert f"--uid 10001 --no-create-home --home-dir /data {user}" in made
    assert f"-m 0700 -o {user} -g {user} {only(IMAGE, 'VOLUME')}" in made
    assert [one.name for one in IMAGE].index("USER") < [one.name for one in IMAGE].index("CMD")


def test_the_image_sets_what_is_there_and_opens_the_usual_doors() -> None:
    variables = dict(word.split("=", 1) for word in shlex.split(only(IMAGE, "ENV")))
    own = {name: value for name, value in variables.items() if name != "PATH"}

    assert set(own) <= ENVIRONMENT
    assert own["HANSARD_DATA"] == only(IMAGE, "VOLUME")
    assert only(IMAGE, "EXPOSE").split() == [DEFAULTS["grpc_port"], DEFAULTS["http_port"]]
    started = json.loads(only(IMAGE, "ENTRYPOINT")) + json.loads(only(IMAGE, "CMD"))
    assert started[0] == "hansard"
    assert started[1] in {entry.name for entry in COMMANDS}
    with pytest.raises(ConfigError, match="token"):
        load_config({}, own)
    assert load_config({}, own | {"HANSARD_TOKEN": SECRET}).host == "0.0.0.0"


def test_the_image_installs_extras_that_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = only(BUILD, "ARG").partition("=")[2].split(",")

    assert set(extras) <= set(project["optional-dependencies"])
    assert any("-c constraints.txt" in one.value for one in BUILD if one.name == "RUN")
    for told in re.findall(r"'\.\[([\w,]+)\]'|EXTRAS=([\w,]+)", PAGE):
        assert set("".join(told).split(",")) <= set(project["optional-dependencies"])


def test_what_the_image_copies_is_there_and_nothing_else_is_sent_to_the_engine() -> None:
    sources = copied(BUILD)

    assert [name for name in sources if not (ROOT / name).exists()] == []
    assert [name for name in sources if ignored(ROOT / ".dockerignore", Path(name))] == []
    for name in (".git", ".venv", "tests", "docs", "web/hansard_web/__pycache__/app.pyc"):
        assert ignored(ROOT / ".dockerignore", Path(name))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serving(tmp_path_factory.mktemp("server"), "--token", SECRET) as running:
        yield running


def _ask(server: Serving) -> int:
    """Run the image's health check against a server on another port; its exit status."""
    command = json.loads(only(IMAGE, "HEALTHCHECK").partition(" CMD ")[2])
    assert command[0] == "python"
    line = command[-1].replace(f"http://127.0.0.1:{DEFAULTS['http_port']}", server.http)
    return subprocess.run(
        [sys.executable, *command[1:-1], line], env=environment(), stderr=subprocess.DEVNULL
    ).returncode


@pytest.mark.slow
def test_the_health_check_needs_no_token_and_tells_a_dead_server(server: Serving) -> None:
    assert _ask(server) == 0
    assert server.stop() == 0
    assert _ask(server) == 1


# ---- compose


def test_the_compose_file_keeps_data_and_asks_for_a_token() -> None:
    [(name, service)] = COMPOSE["services"].items()
    variables: dict[str, Any] = service["environment"]

    assert set(variables) <= ENVIRONMENT
    assert variables["HANSARD_TOKEN"].startswith("${HANSARD_TOKEN:?")
    assert service["volumes"] == [f"{next(iter(COMPOSE['volumes']))}:{only(IMAGE, 'VOLUME')}"]
    assert {port.rpartition(":")[2] for port in service["ports"]} == set(
        only(IMAGE, "EXPOSE").split()
    )
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert f"http://{name}:{DEFAULTS['http_port']}" in PAGE


def test_another_container_sends_by_name_with_the_token(tmp_path: Path) -> None:

    folder = empty_store(tmp_path)
    pipeline = Pipeline(folder, RetentionPolicy("redacted_payloads", Redactor(folder.key())))
    pipeline.start()
    app = create_app(folder, pipeline, WebSettings(tokens=(parse_token(SECRET),)))
    body = traces([span(1)]).SerializeToString()
    headers = {"content-type": "application/x-protobuf", "authorization": f"Bearer {SECRET}"}
    try:
        with TestClient(app, base_url="http://hansard:4318") as client:
            assert client.post("/v1/traces", content=body, headers=headers).status_code == 200
    finally:
        pipeline.close()
