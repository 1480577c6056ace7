"""The wheel: what is in it, and that it works away from the checkout."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import urllib.request
import venv
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from tests.dockerfile import copy_context, read_dockerfile
from tests.journeys.processes import environment, serving

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PACKAGES = {"hansard", "hansard_collector", "hansard_compiler", "hansard_store", "hansard_web"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as pip builds it, with the backend that is installed: no network is needed."""
    target = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check",
         "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), str(ROOT)],
        check=True,
    )  # fmt: skip
    return next(target.glob("hansard-*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel's content in a folder of its own."""
    target = tmp_path_factory.mktemp("installed")
    zipfile.ZipFile(wheel).extractall(target)
    return target


@dataclass(frozen=True)
class Newcomer:
    """Somebody with an environment of their own, in which nothing but the wheel was installed."""

    bin: Path
    home: Path

    def run(self, *command: str, **more: str) -> str:
        ended = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            capture_output=True,
            text=True,
            cwd=self.home,
            env=environment(HANSARD_DATA=str(self.home / "data"), PYTHONPATH="", **more),
            timeout=120,
        )
        assert (ended.returncode, ended.stderr) == (0, "")
        return ended.stdout


@pytest.fixture(scope="module")
def newcomer(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Newcomer:
    """The wheel is installed by pip; what it depends on is lent by this environment."""
    home = tmp_path_factory.mktemp("newcomer")
    venv.create(home / "venv", symlinks=True)
    own = Path(sysconfig.get_path("purelib", "venv", {"base": str(home / "venv")}))
    (own / "lent.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run(
        [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check",
         "--python", str(home / "venv"), "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )  # fmt: skip
    return Newcomer(home / "venv" / "bin", home)


@pytest.mark.covers("SD-10")
def test_the_command_comes_with_the_package(newcomer: Newcomer) -> None:
    told = newcomer.run("hansard", "--help")

    where = newcomer.run("python", "-c", "import hansard; print(hansard.__file__)")
    assert Path(where.strip()).is_relative_to(newcomer.home)
    assert {"serve", "doctor", "runs", "payload", "spool"} <= set(
        re.findall(r"^  (\w+)", told, re.M)
    )
    assert newcomer.run("hansard", "--version").startswith("hansard, version ")


@pytest.mark.covers("EX-03")
def test_all_six_parts_come_with_the_package(newcomer: Newcomer) -> None:
    """The SDK, the compiler, memory, policy, the recorder, and what speaks to providers."""
    program = (
        "import hansard; from hansard import tool, compile_step, memory\n"
        "from hansard_compiler import compile, policy; from hansard_store import memory as store\n"
        "from hansard_collector.pipeline.ingest_queue import Pipeline\n"
        "from hansard_compiler.providers.registry import ADAPTERS\n"
        "for one in (hansard, compile, policy, store): print(one.__file__)\n"
        "print(*sorted(ADAPTERS))"
    )

    *places, adapters = newcomer.run("python", "-c", program).splitlines()

    assert len(places) == 4
    assert all(Path(place).is_relative_to(newcomer.home) for place in places)
    assert adapters == "anthropic openai openai_compatible scripted"


@pytest.mark.covers("AC-10")
def test_the_readme_s_first_use_leads_to_a_step_that_can_be_read(newcomer: Newcomer) -> None:
    """The README's program, a server, and the step it recorded; a person is slower than this."""
    program = re.search(
        r"```python\n(import hansard\n.*?)```", README.read_text("utf-8"), re.DOTALL
    )
    assert program is not None
    started_s = time.monotonic()
    with serving(newcomer.home / "data", executable=str(newcomer.bin / "hansard")) as server:
        said = newcomer.run("python", "-c", program[1], HANSARD_ENDPOINT=server.http)
        [run] = json.loads(newcomer.run("hansard", "runs", "list", "--json"))["items"]
        shown = newcomer.run("hansard", "runs", "show", run["run_id"])
        steps = json.loads(server.get(f"/v1/runs/{run['run_id']}/steps"))["items"]
        step = newcomer.run("hansard", "steps", "show", steps[1]["step_id"])

    assert said == "Your order is in the post.\n"
    assert "execute_tool find_order" in shown
    assert "in the post" in step
    assert time.monotonic() - started_s < 30 * 60


@pytest.mark.covers("EX-07")
def test_the_demo_plays_from_the_wheel(newcomer: Newcomer) -> None:
    apart = ("--data", str(newcomer.home / "demo"), "--http-port", "0", "--grpc-port", "0")

    told = newcomer.run("hansard", "demo", "--fast", "--exit", *apart)

    assert "The second run's first patch was right." in told


@pytest.mark.covers("EX-07")
def test_no_name_of_the_wheel_is_too_general(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}

    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES


def test_everything_that_is_not_code_is_in_the_wheel_too(wheel: Path) -> None:
    in_wheel = set(zipfile.ZipFile(wheel).namelist())
    in_tree = {
        str(path.relative_to(ROOT / folder))
        for folder in ("compiler", "store", "instrumentation", "collector", "web")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.name != ".DS_Store"
    }

    assert {name for name in in_tree if name.endswith(".sql")}
    assert {name for name in in_tree if name.endswith(".html")}
    assert in_tree <= in_wheel


def test_the_demo_is_in_the_wheel_with_the_repository_it_works_on(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    coding = "hansard_web/demo/coding"

    for name in ("script.json", "repo/pyproject.toml", "repo/CONVENTIONS.md",
                 "repo/shop/invoice.py", "repo/tests/test_invoice.py"):  # fmt: skip
        assert f"{coding}/{name}" in names
    assert any(name.startswith("hansard_compiler/policies/") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]


def _built(kind: str, source: Path, target: Path) -> Path:
    """Build with the backend alone, as pip does in its own environment."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)],
        cwd=source,
        check=True,
        capture_output=True,
    )
    [made] = target.glob("hansard-*")
    return made


def _content(wheel: Path) -> dict[str, int]:
    """Return the files of a wheel with their checksums."""
    return {info.filename: info.CRC for info in zipfile.ZipFile(wheel).infolist()}


@pytest.mark.covers("EX-03")
def test_the_source_distribution_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    packed = _built("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()

    assert {"LICENSE", "README.md", "constraints.txt", "tests", "docs"} <= {
        path.name for path in source.iterdir()
    }
    assert _content(_built("wheel", source, tmp_path / "wheel")) == _content(wheel)


def test_what_the_image_copies_is_enough_for_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """The image's own build, but for the engine: the files it is sent, and no others."""
    context = tmp_path / "context"
    copy_context(ROOT, read_dockerfile(ROOT / "Dockerfile")[0], context)

    assert _content(_built("wheel", context, tmp_path / "wheel")) == _content(wheel)


@pytest.mark.covers("EX-06", "EX-07")
def test_the_wheel_serves_pages_away_from_the_checkout(installed: Path, tmp_path: Path) -> None:
    """One start command brings up the collector, the API and the pages."""
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r});"
        "import hansard_web, hansard_store;"
        f"assert hansard_web.__file__.startswith({str(installed)!r});"
        f"assert hansard_store.__file__.startswith({str(installed)!r});"
        "from hansard._cli.main import main; main()"
    )
    command = [sys.executable, "-c", code, "serve", "--data", str(tmp_path / "data")]
    with subprocess.Popen(
        [*command, "--http-port", "0", "--grpc-port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(PYTHONUNBUFFERED="1"),
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(5)]
        url = lines[3].split()[1]
        with urllib.request.urlopen(url, timeout=20) as response:
            page = response.read().decode()
        process.terminate()
        assert process.wait(30) == 0

    assert "Hansard" in page
    assert "<html" in page


@pytest.mark.covers("EX-04")
def test_the_wheel_s_daemon_keeps_one_state_for_http_and_a_local_socket(
    installed: Path, tmp_path: Path
) -> None:
    """A run told over a Unix socket is read, replayed and shown over HTTP, also after a restart."""
    script = {"hansard_script": 1, "otherwise": {"say": "Refunded."}}
    with _daemon(installed, tmp_path) as (web, local):
        run_id = local.post("/v1/runs/start", json={"agent_name": "clerk"}).json()["run_id"]
        asked = {
            "run_id": run_id, "provider": "scripted", "model": "scripted-1", "script": script,
            "messages": [{"role": "user", "parts": [{"type": "text", "text": "Refund order 7"}]}],
        }  # fmt: skip
        assert web.post("/v1/model/call", json=asked).status_code == 200
        assert local.post(f"/v1/runs/{run_id}/end", json={}).status_code == 200
        steps = web.get(f"/v1/runs/{run_id}/steps").json()["items"]
        [call] = [one["step_id"] for one in steps if one["role"] == "llm"]
        asked = {"step_id": call, "recorded": True, "wait_s": 30}
        replay = local.post("/v1/replay", json=asked).json()
        assert (replay["state"], replay["source"]["step_id"]) == ("done", call)
    with _daemon(installed, tmp_path) as (web, local):
        told = [one.get(f"/v1/runs/{run_id}/record").json() for one in (web, local)]
        kept = web.get(f"/v1/replay/{replay['replay_id']}").json()
        page = web.get(f"/runs/{run_id}?view=conversation").text

    assert told[0] == told[1]
    assert told[0]["run"]["status"] == "completed"
    assert kept["state"] == "done"
    assert "Refund order 7" in page
    assert "Refunded." in page


@contextmanager
def _daemon(installed: Path, folder: Path) -> Iterator[tuple[httpx2.Client, httpx2.Client]]:
    """Run `hansard serve` of the wheel; clients over HTTP and over its socket."""
    code = (
        f"import sys; sys.path.insert(0, {str(installed)!r});"
        "from hansard._cli.main import main; main()"
    )
    socket = folder / "hansard.sock"
    with subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--json", "--data", str(folder / "data"),
         "--http-port", "0", "--grpc-port", "0", "--socket", str(socket)],
        stdout=subprocess.PIPE, text=True, cwd=folder, env=environment(PYTHONUNBUFFERED="1"),
    ) as process:  # fmt: skip
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["http"]
        by_socket = httpx2.HTTPTransport(uds=str(socket))
        try:
            with (
                httpx2.Client(base_url=address, timeout=40, trust_env=False) as web,
                httpx2.Client(
                    base_url="http://localhost", transport=by_socket, timeout=40
                ) as local,
            ):
                yield web, local
        finally:
            process.terminate()
            assert process.wait(30) == 0


def test_the_commands_say_which_extra_is_missing(installed: Path) -> None:
    """Only the SDK's own dependencies: a finder hides the server's."""
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(installed)!r})\n"
        "class Hide:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('apsw', 'fastapi', 'rich', 'uvicorn', 'grpc'):\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hide())\n"
        "from hansard._cli.main import main\n"
        "sys.argv = ['hansard', 'serve']\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment()
    )
    assert ended.stdout == "Starting …\n"  # said before anything of the server is imported

    assert ended.returncode == 2
    assert "hansard[server]" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def names_of(requirements: list[str]) -> set[str]:
    """Return the names of requirements, without extras and versions."""
    return {re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in requirements}


@pytest.mark.covers("EX-02")
def test_the_packages_that_were_asked_for_are_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]

    assert {"opentelemetry-sdk", "opentelemetry-exporter-otlp", "pydantic"} <= names_of(
        project["dependencies"]
    )
    assert {"grpcio", "fastapi"} <= names_of(extras["server"])
    assert "anthropic" in names_of(extras["anthropic"])
    assert "openai" in names_of(extras["openai"])
    assert "pytest" in names_of(extras["dev"])
    vendored = ROOT / "web" / "hansard_web" / "static" / "vendor"
    assert list(vendored.glob("htmx-*.js"))


def test_no_file_names_a_package_registry() -> None:
    """Dependencies come from wherever the machine's own pip and npm are set to look."""
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    hosts = [".".join(words) for words in (("pypi", "org"), ("pythonhosted", "org"),
                                           ("registry", "npmjs", "org"))]  # fmt: skip
    found = [
        name
        for name in tracked
        for host in hosts
        if (ROOT / name).is_file() and host.encode() in (ROOT / name).read_bytes()
    ]

    assert found == []
