"""A process that is forked while our threads import goes on in its child."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.instrumentation.faulty import closed_port
from tests.instrumentation.programs import run, settings

pytestmark = pytest.mark.slow

# The finder keeps the import of a module under way until the process has tried to fork.
_FORKED_IN_AN_IMPORT = """
import importlib, os, signal, sys, threading
import hansard

module = {module!r}
importing = threading.Event()

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == module and threading.current_thread().name == "hansard-send":
            importing.set()
            threading.Event().wait(0.5)

sys.meta_path.insert(0, Slow())
hansard.init()

@hansard.tool
def look(wanted):
    return wanted

look("AKIAIOSFODNN7EXAMPLE" + "p" * 3_000)
assert importing.wait(20)
child = os.fork()
if child == 0:
    signal.alarm(10)
    importlib.import_module(module)
    os._exit(0 if look("in the child") == "in the child" else 1)
print("child ended with", os.waitpid(child, 0)[1])
"""


@pytest.mark.parametrize(
    ("protocol", "module"),
    [
        ("http/protobuf", "requests"),
        ("http/protobuf", "opentelemetry.exporter.otlp.proto.common.trace_encoder"),
        ("grpc", "grpc"),
    ],
)
def test_an_import_that_is_under_way_is_awaited(tmp_path: Path, protocol: str, module: str) -> None:
    nobody = settings(tmp_path, f"http://127.0.0.1:{closed_port()}", protocol)

    ended = run(_FORKED_IN_AN_IMPORT.format(module=module), nobody)

    assert (ended.status, ended.output) == (0, "child ended with 0\n")
