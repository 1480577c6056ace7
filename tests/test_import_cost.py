"""What a program pays that only imports the SDK, and what a server does not load at its start."""

from __future__ import annotations

import subprocess
import sys
from statistics import median

SERVER_MODULES = (
    "apsw", "fastapi", "grpc", "hansard_collector", "hansard_store", "hansard_web", "jinja2",
    "openai", "anthropic", "bpe_openai", "orjson", "pydantic.v1", "rich", "starlette", "uvicorn",
    "zstandard",
)  # fmt: skip
_MOST_CPU_S = 0.4

_MEASURE = """
import sys, time
before = time.process_time()
import hansard
hansard.init, hansard.agent, hansard.start_run, hansard.instrument  # loaded with their names
print(time.process_time() - before)
print(*[name for name in {names!r} if name in sys.modules])
"""


def _import_hansard() -> tuple[float, str]:
    ended = subprocess.run(
        [sys.executable, "-c", _MEASURE.format(names=SERVER_MODULES)],
        capture_output=True,
        text=True,
        check=True,
    )
    seconds, loaded = ended.stdout.split("\n")[:2]
    return float(seconds), loaded


def test_importing_the_sdk_loads_nothing_of_the_server() -> None:
    assert _import_hansard()[1] == ""


def test_importing_the_sdk_takes_less_than_its_bar_of_processor_time() -> None:
    """Processor time and not the clock's: other tests run at the same moment."""
    assert median(_import_hansard()[0] for _ in range(3)) < _MOST_CPU_S


def test_a_server_starts_without_the_models_that_describe_its_answers() -> None:
    code = (
        "import sys, hansard_web.app.server;"
        "print(*[m for m in sys.modules if m.startswith('hansard_web.api.') and 'models' in m])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == ""


LATER = (
    "hansard_web.api.routes", "hansard_web.mcp.route", "hansard_web.run_page.page",
    "hansard_web.replay.engine", "hansard_store.memory.service",
    "hansard_compiler.compile.engine", "hansard_compiler.diff", "hansard._clients.http",
)  # fmt: skip


def test_a_server_starts_without_what_its_first_page_does_not_need() -> None:
    code = f"import sys, hansard_web.app.server; print(*[m for m in {LATER!r} if m in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == ""


def test_a_command_says_something_before_opentelemetry_is_loaded() -> None:
    code = (
        "import sys, hansard._cli.main, hansard_web.cli;"
        "print(*[m for m in sys.modules if m.startswith(('opentelemetry', 'pydantic'))])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert ended.stdout.strip() == ""
