"""Providers stand at the edge: nothing of the core knows them, and nothing needs them."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import hansard_compiler
from hansard_compiler.compile.engine import compile_context
from hansard_compiler.providers.adapter import Adapter, request_bytes
from hansard_compiler.providers.base import ProviderAdapter
from hansard_compiler.providers.registry import ADAPTERS, AdapterSettings, adapter_for
from hansard_compiler.providers.scripted import read_script
from hansard_compiler.providers.transport.vendor_sdk import Connection
from tests.compiler.compiling import item, ports, request
from tests.compiler.render_inputs import GIVEN

ROOT = Path(hansard_compiler.__file__).parent
PROVIDERS = ROOT / "providers"
SETTINGS = AdapterSettings(
    Connection(api_key="k", base_url="http://127.0.0.1:9/v1"),
    script=read_script(b'{"hansard_script": 1, "otherwise": {"say": "Hello."}}'),
    preflight="estimate",
)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.covers("PA-11")
def test_the_core_imports_no_provider() -> None:
    core = [path for path in ROOT.rglob("*.py") if not path.is_relative_to(PROVIDERS)]

    found = [
        (path.name, module)
        for path in core
        for module in imported(path)
        if module.startswith(("hansard_compiler.providers", "openai", "anthropic", "httpx2"))
    ]

    assert len(core) > 20
    assert found == []


@pytest.mark.covers("PA-11")
def test_compaction_by_the_provider_is_imported_by_nobody() -> None:
    found = [
        path.name
        for path in ROOT.rglob("*.py")
        if any(module.endswith("openai_compaction") for module in imported(path))
    ]

    assert found == []


@pytest.mark.covers("PA-02")
@pytest.mark.parametrize("name", ADAPTERS)
def test_every_adapter_has_the_four_methods_and_they_fit_together(name: str) -> None:
    adapter = adapter_for(name, SETTINGS)

    rendered = adapter.render_request(GIVEN)

    assert isinstance(adapter, ProviderAdapter)
    assert isinstance(adapter, Adapter)
    assert adapter.render_request(GIVEN) == rendered
    assert adapter.count_tokens(GIVEN) > 50
    assert set(adapter.parse_response({})) == {
        "provider", "response_id", "response_model", "output", "finish_reason",
        "finish_reason_raw", "tokens", "sources",
    }  # fmt: skip


@pytest.mark.covers("PA-02")
def test_what_is_rendered_is_sent_and_parsed_as_plain_values() -> None:
    adapter = adapter_for("scripted", SETTINGS)

    told = adapter.parse_response(adapter.send(adapter.render_request(GIVEN)))

    assert told["output"] == [{"role": "assistant", "parts": [{"type": "text", "text": "Hello."}]}]


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_compile_renders_the_request_itself_when_it_is_given_a_renderer(name: str) -> None:
    adapter = adapter_for(name, SETTINGS)
    given = ports(renderer=adapter.renderer(model="model-1", stream=True))
    items = [item("s", "system", "Be kind."), item("u", "user_msg", "Hello")]

    result = compile_context(request(items), given)

    body = dict(result.payload)
    assert (body["model"], body["stream"]) == ("model-1", True)
    assert b"Be kind." in request_bytes(body)
    assert adapter.format.problems(body) == []


_WITHOUT_EXTRAS = """
import sys

for name in ("openai", "anthropic", "httpx2", "bpe_openai", "yaml"):
    sys.modules[name] = None  # as if it were not installed

from hansard_compiler.providers.transport.failures import PackageMissing
from hansard_compiler.providers.transport.vendor_sdk import Connection
from hansard_compiler.providers.registry import AdapterSettings, adapter_for
from tests.compiler.render_inputs import GIVEN

for name in ("openai", "anthropic", "openai_compatible"):
    connection = Connection(api_key="k", base_url="http://127.0.0.1:9")
    adapter = adapter_for(name, AdapterSettings(connection, preflight="off"))
    adapter.render_request(GIVEN)
    try:
        adapter.call(GIVEN)
    except PackageMissing as missing:
        print(missing.package, missing)
"""


@pytest.mark.slow
@pytest.mark.covers("PA-20", "PA-19")
def test_without_the_extras_requests_are_rendered_and_sending_names_what_to_install() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EXTRAS], capture_output=True, text=True, check=True
    )

    assert ended.stdout.splitlines() == [
        f"{name} the package {name!r} is missing: pip install 'hansard[{name}]'"
        for name in ("openai", "anthropic", "openai")
    ]


@pytest.mark.slow
def test_making_adapters_loads_no_package_of_a_provider() -> None:
    script = (
        "import sys; from hansard_compiler.providers.registry import adapter_for;"
        "adapter_for('openai'); adapter_for('anthropic');"
        "print([name for name in ('openai', 'anthropic', 'httpx2', 'bpe_openai')"
        " if name in sys.modules])"
    )

    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert ended.stdout.strip() == "[]"
