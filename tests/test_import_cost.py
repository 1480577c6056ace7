"""What a program pays that only imports the SDK, and what a server does not load at its start."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SERVER_MODULES = (
    "apsw", "fastapi", "grpc", "hansard_collector", "hansard_store", "hansard_web", "jinja2",
    "openai", "anthropic", "bpe_openai", "orjson", "pydantic.v1", "rich", "starlette", "uvicorn",
    "zstandard",
)  # fmt: skip


def _run(code: str) -> str:
    """Return what a fresh interpreter prints."""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ended.stdout.strip()


def test_importing_the_sdk_loads_nothing_of_the_server() -> None:
    code = (
        "import sys, hansard;"
        "hansard.init, hansard.agent, hansard.start_run, hansard.instrument;"  # by their names
        f"print(*[name for name in {SERVER_MODULES!r} if name in sys.modules])"
    )

    assert _run(code) == ""


def test_a_server_starts_without_the_bodies_of_its_answers() -> None:
    code = (
        "import sys, hansard_web.app.server;"
        "print(*[m for m in sys.modules if m.startswith('hansard_web') and m.endswith('.bodies')])"
    )

    assert _run(code) == "hansard_web.policy.bodies"  # what a check of a rule takes


LATER = (
    "hansard_web.api.routes", "hansard_web.mcp.route", "hansard_web.run_page.page",
    "hansard_web.replay.engine", "hansard_store.memory.service",
    "hansard_compiler.compile.engine", "hansard_compiler.diff", "hansard._clients.client_patch",
)  # fmt: skip


def test_a_server_starts_without_what_its_first_page_does_not_need() -> None:
    code = f"import sys, hansard_web.app.server; print(*[m for m in {LATER!r} if m in sys.modules])"

    assert _run(code) == ""


def test_a_command_says_something_before_opentelemetry_is_loaded() -> None:
    code = (
        "import sys, hansard._cli.main, hansard_web.cli;"
        "print(*[m for m in sys.modules if m.startswith(('opentelemetry', 'pydantic'))])"
    )

    assert _run(code) == ""
