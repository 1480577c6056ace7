"""Starting and ending the SDK, each test in an interpreter of its own: providers are global."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

_START = """
import json, logging, os, sys
import hansard
from opentelemetry import trace
logging.basicConfig(format="%(name)s: %(message)s")

@hansard.agent
def answer(question):
    return question.upper()

def say(**facts):
    print(json.dumps(facts))
"""


_THEIRS = """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
theirs = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(theirs))
trace.set_tracer_provider(provider)
"""


def run(tmp_path: Path, script: str, **environment: str) -> tuple[dict[str, Any], list[str]]:
    """Run a script and return what it says, and the lines on its standard error."""
    own = {k: v for k, v in os.environ.items() if not k.startswith(("HANSARD_", "OTEL_"))}
    ended = subprocess.run(
        [sys.executable, "-c", _START + script],
        capture_output=True,
        text=True,
        env=own | {"HANSARD_DATA": str(tmp_path), "HANSARD_ENDPOINT": REFUSED} | environment,
        timeout=30,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout), ended.stderr.splitlines()


REFUSED = "http://127.0.0.1:9"  # nobody listens there; the tests here are about other things


@pytest.mark.covers("OT-13")
def test_a_provider_that_is_there_is_kept_and_gets_our_processor(tmp_path: Path) -> None:
    said, _ = run(
        tmp_path,
        _THEIRS
        + """
recorder = hansard.init(service_name="ignored: the resource is the application's")
ours = []
recorder.exporter.on_end = lambda span: ours.append(span.name)
answer("why")
with trace.get_tracer("app").start_as_current_span("of the application"):
    pass
say(
    kept=trace.get_tracer_provider() is provider is recorder.provider,
    theirs=[span.name for span in theirs.get_finished_spans()],
    ours=ours,
)
""",
    )

    names = ["invoke_agent answer", "of the application"]
    assert said == {"kept": True, "theirs": names, "ours": names}


def test_without_a_provider_one_is_made_and_set_globally(tmp_path: Path) -> None:
    said, _ = run(
        tmp_path,
        """
recorder = hansard.init(service_name="clerk", resource_attributes={"deployment.name": "blue"})
attributes = dict(recorder.provider.resource.attributes)
say(
    is_global=trace.get_tracer_provider() is recorder.provider,
    service=attributes["service.name"],
    blue=attributes["deployment.name"],
    has_instance=attributes["service.instance.id"] == recorder.instance_id,
)
""",
    )

    assert said == {"is_global": True, "service": "clerk", "blue": "blue", "has_instance": True}


_NAMED = """
import hansard
recorder = hansard.init()
print(recorder.provider.resource.attributes["service.name"])
"""


@pytest.mark.parametrize(
    ("start", "environment", "name"),
    [
        (["desk.py"], {}, "desk"),
        (["-m", "shop"], {}, "shop"),
        (["-m", "shop.tills.front"], {}, "shop.tills"),
        (["-m", "desk"], {}, "desk"),
        (["shop"], {}, "shop"),
        (["-c", _NAMED], {}, "unknown_service:python"),
        (["-i", "-c", f"import sys; sys.ps1 = '> '\n{_NAMED}"], {}, "unknown_service:python"),
        (["desk.py"], {"OTEL_SERVICE_NAME": "told"}, "told"),
        (["desk.py"], {"OTEL_RESOURCE_ATTRIBUTES": "service.name=told"}, "told"),
    ],
)
def test_a_service_without_a_name_has_the_program_s(
    start: list[str], environment: dict[str, str], name: str, tmp_path: Path
) -> None:
    tills = tmp_path / "shop" / "tills"
    tills.mkdir(parents=True)
    for file in ("desk.py", "shop/__main__.py", "shop/tills/front.py"):
        (tmp_path / file).write_text(_NAMED)
    own = {k: v for k, v in os.environ.items() if not k.startswith(("HANSARD_", "OTEL_"))}
    ours = {"HANSARD_DATA": str(tmp_path / "data"), "HANSARD_ENDPOINT": REFUSED}

    ended = subprocess.run(
        [sys.executable, *start],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=own | ours | environment,
        stdin=subprocess.DEVNULL,
        timeout=30,
    )

    default = name.startswith("unknown_service:")
    said = ended.stdout.strip()
    assert said.startswith("unknown_service:") if default else said == name, ended.stderr


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ('service_name="clerk"', ["hansard: service_name (argument) is ignored: the program "
         "has a tracer provider with its own resource, and the name there is 'theirs'"]),
        ('service_name="theirs"', []),
        ("", []),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_given_to_a_provider_is_told(
    asked: str, told: list[str], tmp_path: Path
) -> None:
    _, lines = run(
        tmp_path,
        f"""
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
trace.set_tracer_provider(TracerProvider(resource=Resource({{"service.name": "theirs"}})))
hansard.init({asked})
say()
""",
    )

    assert [line for line in lines if "service_name" in line] == told


def test_a_second_call_changes_nothing_and_warns_when_it_asks_for_something_else(
    tmp_path: Path,
) -> None:
    said, lines = run(
        tmp_path,
        """
first = hansard.init(service_name="one")
same = hansard.init(service_name="one")
other = hansard.init(service_name="two")
say(same=same is first, other=other is first, name=other.settings.service_name)
""",
    )

    assert said == {"same": True, "other": True, "name": "one"}
    assert [line for line in lines if "again with other settings" in line] == [
        "hansard: hansard.init() was called again with other settings; the first ones stay in "
        "force. Call hansard.shutdown() before it to change them."
    ]


def test_after_shutdown_nothing_is_recorded_and_init_starts_afresh(tmp_path: Path) -> None:
    said, _ = run(
        tmp_path,
        """
from hansard._runtime.recorder import active
first = hansard.init(service_name="one")
hansard.shutdown(0)
hansard.shutdown(0)
between = (active() is None, answer("a"))
second = hansard.init(service_name="two")
ended = []
second.exporter.on_end = lambda span: ended.append(
    [span.name, span.resource.attributes["service.name"]]
)
answer("b")
with trace.get_tracer("other").start_as_current_span("of another library"):
    pass
say(between=between, fresh=second is not first, ended=ended)
""",
    )

    assert said == {
        "between": [True, "A"],
        "fresh": True,
        "ended": [["invoke_agent answer", "two"], ["of another library", "one"]],
    }


def test_a_span_that_is_open_while_the_sdk_stops_harms_nothing(tmp_path: Path) -> None:
    said, _ = run(
        tmp_path,
        """
@hansard.agent
def stop():
    hansard.shutdown(0)
    return answer("after")

hansard.init()
say(result=stop())
""",
    )

    assert said == {"result": "AFTER"}


@pytest.mark.covers("OT-14")
def test_a_disabled_sdk_records_nothing(tmp_path: Path) -> None:
    said, lines = run(
        tmp_path,
        """
recorder = hansard.init()
seen = []
@hansard.tool
def look():
    seen.append(trace.get_current_span().get_span_context().is_valid)
    return answer("why")
say(recorder=recorder, result=look(), seen=seen, files=os.listdir(os.environ["HANSARD_DATA"]))
""",
        OTEL_SDK_DISABLED="TRUE",
    )

    assert said == {"recorder": None, "result": "WHY", "seen": [False], "files": []}
    assert lines == []


@pytest.mark.covers("OT-14")
def test_opentelemetrys_variables_are_respected(tmp_path: Path) -> None:
    said, lines = run(
        tmp_path,
        """
recorder = hansard.init()
settings, attributes = recorder.settings, recorder.provider.resource.attributes
ended = []
recorder.exporter.on_end = lambda span: ended.append(span.name)
answer("why")
say(
    endpoint=settings.traces_endpoint, logs=settings.logs_endpoint, protocol=settings.protocol,
    headers=dict(settings.headers), timeout=settings.timeout_s, compression=settings.compression,
    delay=settings.export_delay_ms, queue=settings.max_queue_spans, batch=settings.max_batch_spans,
    service=attributes["service.name"], blue=attributes["deployment.name"],
    sampler=recorder.provider.sampler.get_description(), ended=ended,
)
""",
        HANSARD_ENDPOINT="",
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9/prefix",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="http://127.0.0.1:10/spans",
        OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf",
        OTEL_EXPORTER_OTLP_HEADERS="X-Team=a%20b,other=c",
        OTEL_EXPORTER_OTLP_TIMEOUT="3",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        OTEL_BSP_SCHEDULE_DELAY="250",
        OTEL_BSP_MAX_QUEUE_SIZE="99",
        OTEL_BSP_MAX_EXPORT_BATCH_SIZE="9",
        OTEL_SERVICE_NAME="clerk",
        OTEL_RESOURCE_ATTRIBUTES="deployment.name=blue",
        OTEL_TRACES_SAMPLER="traceidratio",
        OTEL_TRACES_SAMPLER_ARG="0",
    )

    assert said == {
        "endpoint": "http://127.0.0.1:10/spans",
        "logs": "http://127.0.0.1:9/prefix/v1/logs",
        "protocol": "http/protobuf",
        "headers": {"x-team": "a b", "other": "c"},
        "timeout": 3.0,
        "compression": "gzip",
        "delay": 250,
        "queue": 99,
        "batch": 9,
        "service": "clerk",
        "blue": "blue",
        "sampler": "TraceIdRatioBased{0.0}",
        "ended": [],
    }
    assert lines == []


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "many"}, "recording cannot start"),
        (
            {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "is not grpc or http/protobuf; it is passed over",
        ),
        ({"HANSARD_EXPORT_DELAY_MS": "soon"}, "is not a whole number of at least 1"),
        ({"HANSARD_CONFIG": "/nonexistent/file"}, "/nonexistent/file does not exist"),
    ],
)
def test_an_environment_that_makes_no_sense_is_told_and_harms_nothing(
    environment: dict[str, str], told: str, tmp_path: Path
) -> None:
    said, lines = run(tmp_path, "hansard.init()\nsay(result=answer('why'))", **environment)

    assert said == {"result": "WHY"}
    assert len([line for line in lines if told in line]) == 1


def test_a_data_folder_that_cannot_be_made_is_told_and_harms_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")

    said, lines = run(
        tmp_path,
        "hansard.init()\nsay(result=answer('why'))",
        HANSARD_DATA=str(tmp_path / "file" / "data"),
    )

    assert said == {"result": "WHY"}
    assert len([line for line in lines if "cannot use the data folder" in line]) == 1


def test_the_key_is_made_for_its_owner_alone_and_kept(tmp_path: Path) -> None:
    data = tmp_path / "data"
    script = "say(mark=hansard.init().redactor.fingerprint(b'secret'))"

    first, _ = run(tmp_path, script, HANSARD_DATA=str(data))
    second, _ = run(tmp_path, script, HANSARD_DATA=str(data))

    assert first == second
    assert (data.stat().st_mode & 0o777, (data / "key").stat().st_mode & 0o777) == (0o700, 0o600)


def test_the_child_of_a_fork_records_under_an_id_of_its_own_and_tells_nothing_twice(
    tmp_path: Path,
) -> None:
    said, _ = run(
        tmp_path,
        _THEIRS
        + """
import warnings
warnings.simplefilter("ignore", DeprecationWarning)
recorder = hansard.init()
read, write = os.pipe()

@hansard.agent
def forks():
    child = os.fork()
    answer("in the child" if child == 0 else "in the parent")
    return child

child = forks()
names = [span.name for span in theirs.get_finished_spans()]
told = json.dumps({"names": names, "id": recorder.instance_id})
if child == 0:
    os.write(write, told.encode())
    os._exit(0)
os.close(write)
os.waitpid(child, 0)
say(parent=json.loads(told), child=json.loads(os.read(read, 4096)))
""",
    )

    assert said["parent"]["names"] == ["invoke_agent answer", "invoke_agent forks"]
    assert said["child"]["names"] == ["invoke_agent answer"]
    assert said["parent"]["id"] != said["child"]["id"]


def test_forks_while_other_threads_record_end_in_children_that_record(tmp_path: Path) -> None:
    said, _ = run(
        tmp_path,
        """
import threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)
hansard.init()
stop = threading.Event()

def record():
    while not stop.is_set():
        answer("x" * 2000)

threads = [threading.Thread(target=record) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
for _ in range(10):
    child = os.fork()
    if child == 0:
        same = answer("in the child") == "IN THE CHILD"
        hansard.shutdown(0.2)
        os._exit(0 if same and hansard.init() is not None else 1)
    codes.append(os.waitpid(child, 0)[1])
stop.set()
for thread in threads:
    thread.join()
say(codes=codes)
""",
    )

    assert said == {"codes": [0] * 10}


def test_threads_that_start_the_sdk_at_once_share_one_recorder(tmp_path: Path) -> None:
    said, _ = run(
        tmp_path,
        """
from concurrent.futures import ThreadPoolExecutor
with ThreadPoolExecutor(8) as pool:
    made = list(pool.map(lambda _: hansard.init(), range(8)))
say(recorders=len({id(recorder) for recorder in made}))
""",
    )

    assert said == {"recorders": 1}


def test_a_pipeline_that_fails_harms_no_span_of_the_application(tmp_path: Path) -> None:
    said, lines = run(
        tmp_path,
        _THEIRS
        + """
recorder = hansard.init()

def fail(*arguments):
    raise OSError("no pipeline")

recorder.exporter.on_start = recorder.exporter.on_end = fail
for _ in range(3):
    with trace.get_tracer("app").start_as_current_span("of the application"):
        answer("why")
say(theirs=[span.name for span in theirs.get_finished_spans()])
""",
    )

    assert said == {"theirs": ["invoke_agent answer", "of the application"] * 3}
    assert len([line for line in lines if "no pipeline" in line]) == 2
