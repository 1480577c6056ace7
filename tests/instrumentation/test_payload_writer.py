"""Payloads in the program: redacted, hashed, on disk before `put` returns; never in the way."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

from hansard._config.settings import Settings, load_settings
from hansard._export.dropped import Losses, Sender
from hansard._export.orphaned_spools import OrphanedSpools
from hansard._export.otlp.batches import Courier, encode
from hansard._export.otlp.exporter import ExportOutcome
from hansard._export.payload_writer import MAX_BYTES, PayloadWriter
from hansard._export.spool import (
    FOLDER,
    Spool,
    SpooledPayload,
    SpoolFile,
    SpoolKind,
    files_of,
    process_folders,
)
from hansard._runtime.recorder import Recorder
from hansard._tracing.observation import INLINE_BYTES, put_content
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention_modes import RetentionMode
from tests.instrumentation.collectors import Collector, collecting

SECRET = "sk-ant-api03-" + "Qx7Rm2Vp9Lk4" * 8 + "AA"
JSON = "application/json"
FULL, REDACTED, METADATA = (
    RetentionMode.FULL_PAYLOADS,
    RetentionMode.REDACTED_PAYLOADS,
    RetentionMode.METADATA_ONLY,
)


def ref_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def spool_of(path: Path, max_bytes: int = 1 << 26) -> Spool:
    return Spool(path / FOLDER, max_bytes=max_bytes, losses=Losses(Sender("agent", "1")))


def writer(
    path: Path, *, retention: RetentionMode = REDACTED, spool_max_bytes: int = 1 << 26
) -> PayloadWriter:
    settings = Settings(data=path, retention=retention, spool_max_bytes=spool_max_bytes)
    return PayloadWriter(settings, Redactor(b"key"), spool_of(path, spool_max_bytes))


def files(path: Path) -> list[Path]:
    """Return the files of a data folder, hidden ones included."""
    return sorted(one for one in path.rglob("*") if one.is_file())


def packs(path: Path) -> list[SpoolFile]:
    """Return the packs of a data folder, of living and of dead processes, the oldest first."""
    folders = process_folders(path / FOLDER)
    found = [file for folder in folders for file in files_of(folder)]
    return [file for file in found if file.kind is SpoolKind.PAYLOADS]


def waiting(path: Path) -> list[SpooledPayload]:
    """Return what waits in the spool, as it is on disk."""
    return [one for file in packs(path) for one in file.read_payloads()]


def kept(path: Path) -> dict[str, bytes]:
    """Return what waits in the spool, by reference."""
    return {one.ref: one.data for one in waiting(path)}


def first_pack(payloads: PayloadWriter) -> SpoolFile:
    """Return the pack that is sent next."""
    pack = payloads.spool.first_pack()
    assert pack is not None
    return pack


def lost(payloads: PayloadWriter) -> dict[str, int]:
    return payloads.spool.lost("payloads")


def bytes_on_disk(path: Path) -> bytes:
    """Return everything that a data folder holds."""
    return b"".join(one.read_bytes() for one in files(path))


@pytest.mark.parametrize("data", [b"", b"\0\xff\0", b"{}", b"x" * 3_000_000])
def test_what_is_put_is_on_disk_by_its_digest_before_put_returns(
    tmp_path: Path, data: bytes
) -> None:
    payloads = writer(tmp_path)
    ref = payloads.put(data, media_type=JSON)

    assert ref == ref_of(data)
    assert kept(tmp_path) == {ref: data}
    assert data in bytes_on_disk(tmp_path)


def test_the_spool_is_its_owners_alone(tmp_path: Path) -> None:
    payloads = writer(tmp_path)
    for data in (b"private", b"private" * 20_000):
        payloads.put(data, media_type="text/plain")

    for file in files(tmp_path):
        assert file.stat().st_mode & 0o777 == 0o600
        assert file.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "media_type",
    ["../../../etc/passwd", 'text/plain; charset="utf-8"', "", "a/" + "b" * 500, "x\0y", "Ω/ω"],
)
@pytest.mark.parametrize("data", [b"data", b"data" * 20_000], ids=["packed", "a file"])
def test_no_media_type_leaves_the_folder(tmp_path: Path, media_type: str, data: bytes) -> None:
    payloads = writer(tmp_path)
    payloads.put(data, media_type=media_type)

    [pack] = packs(tmp_path)
    assert pack.path.is_relative_to(tmp_path / "spool")
    assert ".." not in pack.path.parts
    [one] = waiting(tmp_path)
    assert one.data == data
    assert one.media_type in (media_type, "application/octet-stream")


def test_equal_bytes_are_written_once(tmp_path: Path) -> None:
    payloads = writer(tmp_path)
    first = payloads.put(b"the same", media_type=JSON)
    pack = first_pack(payloads)
    payloads.spool.arrived(pack)

    assert payloads.put(b"the same", media_type=JSON) == first
    assert kept(tmp_path) == {}


@given(data=st.binary(max_size=200), media_type=st.text(max_size=60))
def test_any_bytes_under_any_type_come_back(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, media_type: str
) -> None:
    path = tmp_path_factory.mktemp("any")
    payloads = writer(path, retention=FULL)
    ref = payloads.put(data, media_type=media_type)
    payloads.spool.leave()

    assert ref == ref_of(data)
    assert kept(path) == {ref: data}


# ---- retention


@pytest.mark.covers("RC-21")
def test_a_secret_is_cut_out_before_the_digest_is_taken(tmp_path: Path) -> None:
    text = '{"prompt": "' + "word " * 400_000 + '", "api_key": "' + SECRET + '"}'
    payloads = writer(tmp_path)
    ref = payloads.put(text.encode(), media_type=JSON)

    [data] = kept(tmp_path).values()
    assert SECRET.encode() not in bytes_on_disk(tmp_path)
    assert data.startswith(text[:1000].encode())
    assert ref == ref_of(data) != ref_of(text.encode())


def test_a_secret_in_a_media_type_becomes_no_file_name(tmp_path: Path) -> None:
    payloads = writer(tmp_path)
    payloads.put(b"x", media_type=f"text/{SECRET}")
    payloads.put(b"x" * 100_000, media_type=f"text/{SECRET}")

    assert [one.name for one in files(tmp_path) if "sk-ant" in one.name] == []
    assert b"sk-ant" not in bytes_on_disk(tmp_path)


@pytest.mark.covers("RC-20")
def test_metadata_only_keeps_nothing_at_all(tmp_path: Path) -> None:
    payloads = writer(tmp_path, retention=METADATA)

    assert payloads.put(b"canary " * 300_000, media_type=JSON) == ""
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.covers("RC-22")
def test_full_payloads_keeps_every_byte(tmp_path: Path) -> None:
    data = f"key {SECRET}".encode()

    payloads = writer(tmp_path, retention=FULL)
    assert payloads.put(data, media_type=JSON) == ref_of(data)
    assert kept(tmp_path) == {ref_of(data): data}


# ---- bounds and trouble


def test_the_oldest_makes_room_and_is_counted(tmp_path: Path) -> None:
    payloads = writer(tmp_path, spool_max_bytes=10_000)
    refs = [payloads.put(bytes([at]) * 4_000, media_type=JSON) for at in range(4)]

    assert list(kept(tmp_path)) == refs[2:]
    assert lost(payloads) == {"spool full": 2}


def test_what_was_dropped_may_be_put_again(tmp_path: Path) -> None:
    payloads = writer(tmp_path, spool_max_bytes=10_000)
    lost = payloads.put(b"a" * 6_000, media_type=JSON)
    payloads.put(b"b" * 6_000, media_type=JSON)

    assert payloads.put(b"a" * 6_000, media_type=JSON) == lost
    assert list(kept(tmp_path)) == [lost]


def test_a_payload_that_is_larger_than_the_budget_is_counted(tmp_path: Path) -> None:
    payloads = writer(tmp_path, spool_max_bytes=1_000)

    assert payloads.put(b"x" * 1_001, media_type=JSON) == ref_of(b"x" * 1_001)
    assert (files(tmp_path), lost(payloads)) == ([], {"spool full": 1})


def test_more_than_the_collector_takes_is_not_kept(tmp_path: Path) -> None:
    payloads = writer(tmp_path, retention=FULL, spool_max_bytes=1 << 30)
    payloads.put(bytes(MAX_BYTES + 1), media_type="application/octet-stream")

    assert (files(tmp_path), lost(payloads)) == (
        [],
        {"refused by the collector": 1},
    )


def test_a_disk_that_takes_nothing_is_told_and_never_raised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder")
    payloads = writer(in_the_way)

    assert [payloads.put(bytes([at]), media_type=JSON) for at in range(3)] == ["", "", ""]
    assert lost(payloads) == {"spool unwritable": 3}
    assert len([one for one in caplog.records if one.name == "hansard"]) <= 1


def test_bytes_that_are_none_are_told_and_never_raised(tmp_path: Path) -> None:
    wrong: Any = None

    assert writer(tmp_path).put(wrong, media_type=JSON) == ""


def left_by_a_process(path: Path, *data: bytes) -> list[str]:
    """Put payloads as a process does that ends right after."""
    gone = writer(path)
    refs = [gone.put(one, media_type=JSON) for one in data]
    gone.spool.leave()
    return refs


def left_by_an_earlier_version(path: Path, *data: bytes) -> list[str]:
    """Put payloads where versions before the common spool did: packs, and files of the large."""
    folder = path / "spool/payloads"
    process = folder / ("0a" * 16)
    process.mkdir(parents=True, mode=0o700)
    (process / "lock").touch(0o600)
    with (process / "000001.pack").open("wb") as pack:
        for one in data:
            digest = hashlib.sha256(one).hexdigest()
            if len(one) > 64 * 1024:
                (folder / f"{digest}.application%2Fjson").write_bytes(one)
            else:
                pack.write(f"{digest} {len(one)} application%2Fjson\n".encode() + one + b"\n")
    return [ref_of(one) for one in data]


def sent_by_the_next(path: Path) -> Collector:
    """Send what is in a data folder as the next process does; return the collector."""
    with collecting(lambda path, _: "404" if path.startswith("/v1/payloads") else "200") as made:
        courier = Courier(load_settings({"data": path, "endpoint": made.url}, {}), Resource({}))
        orphans = OrphanedSpools(path / FOLDER)
        assert orphans.all(courier).outcome is ExportOutcome.ACCEPTED
        orphans.leave()
        courier.close()
    return made


def arrived(collector: Collector) -> dict[str, bytes]:
    """Return the payloads that a collector was sent, by reference."""
    records = [one for one in collector.logs if one.event_name == "hansard.payload"]
    return {one.attributes[0].value.string_value: one.body.bytes_value for one in records}


def reported(collector: Collector) -> list[str]:
    """Return what a collector was told to be lost."""
    return [one.body.string_value for one in collector.logs if one.event_name == "hansard.dropped"]


@pytest.mark.parametrize("left", [left_by_a_process, left_by_an_earlier_version])
def test_what_another_process_left_is_sent(tmp_path: Path, left: Callable[..., list[str]]) -> None:
    data = b"left behind", b"", b"large " * 20_000, b"very large " * 200_000
    refs = left(tmp_path, *data)
    earlier = tmp_path / "spool/payloads"
    earlier.mkdir(exist_ok=True)
    (earlier / ".half-written").write_bytes(b"to")
    (earlier / "README").write_text("not one of ours")

    collector = sent_by_the_next(tmp_path)

    assert arrived(collector) == dict(zip(refs, data, strict=True))
    assert {one.attributes[1].value.string_value for one in collector.logs} == {JSON}
    assert {one.name for one in files(tmp_path)} == {".half-written", "README"}


def test_payloads_of_an_earlier_version_are_sent_before_the_spans_that_name_them(
    tmp_path: Path,
) -> None:
    left_by_an_earlier_version(tmp_path, b"small", b"large " * 20_000)
    spans = spool_of(tmp_path)
    span: Any = TracerProvider(shutdown_on_exit=False).get_tracer("agent").start_span("call")
    span.end()
    spans.add(SpoolKind.TRACES, encode(SpoolKind.TRACES, [span]), items=1)
    spans.leave()

    collector = sent_by_the_next(tmp_path)

    assert len(arrived(collector)) == 2
    assert collector.requests[-1] == "/v1/traces"


def test_what_a_living_process_has_is_its_own(tmp_path: Path) -> None:
    alive = writer(tmp_path)
    ref = alive.put(b"in use", media_type=JSON)

    assert arrived(sent_by_the_next(tmp_path)) == {}
    assert kept(tmp_path) == {ref: b"in use"}


@pytest.mark.parametrize("left", [left_by_a_process, left_by_an_earlier_version])
@pytest.mark.parametrize("cut", [1, 5, 12, 90])
def test_a_record_that_was_cut_off_is_counted_and_those_before_it_are_sound(
    tmp_path: Path, cut: int, left: Callable[..., list[str]]
) -> None:
    [sound, _] = left(tmp_path, b"sound", b"cut off")
    [pack] = tmp_path.rglob("*.pack")
    pack.write_bytes(pack.read_bytes()[:-cut])

    collector = sent_by_the_next(tmp_path)

    assert arrived(collector) == {sound: b"sound"}
    assert reported(collector) == ["1 payloads were lost: spool file unreadable"]
    assert files(tmp_path) == []


@pytest.mark.parametrize("junk", [b"", b"\n", b"junk" * 100, b"0" * 64 + b" 99999999 a%2Fb\n"])
def test_a_pack_of_junk_is_counted_at_most_and_removed(tmp_path: Path, junk: bytes) -> None:
    left_by_a_process(tmp_path, b"one")
    [pack] = tmp_path.rglob("*.pack")
    pack.write_bytes(junk)

    collector = sent_by_the_next(tmp_path)

    assert arrived(collector) == {}
    assert files(tmp_path) == []
    assert reported(collector) == ["1 payloads were lost: spool file unreadable"] * bool(junk)


def test_packs_are_filled_one_after_the_other_and_go_when_they_arrived(tmp_path: Path) -> None:
    payloads = writer(tmp_path, retention=FULL)
    for at in range(150):
        payloads.put(b"%06d" % at * 10_000, media_type=JSON)
    assert [one.items for one in packs(tmp_path)] == [34, 34, 34, 34, 14]

    for _ in range(4):
        pack = first_pack(payloads)
        payloads.spool.arrived(pack)
    assert [one.data for one in waiting(tmp_path)] == [
        b"%06d" % at * 10_000 for at in range(136, 150)
    ]


def test_a_pack_that_is_being_sent_takes_no_more(tmp_path: Path) -> None:
    payloads = writer(tmp_path)
    payloads.put(b"before", media_type=JSON)
    pack = first_pack(payloads)
    after = payloads.put(b"after", media_type=JSON)
    payloads.spool.arrived(pack)

    assert kept(tmp_path) == {after: b"after"}


def test_many_threads_may_put_at_once(tmp_path: Path) -> None:
    payloads = writer(tmp_path)
    barrier = threading.Barrier(8)

    def put_all() -> None:
        barrier.wait()
        for at in range(40):
            payloads.put(b"number %d" % at, media_type=JSON)

    threads = [threading.Thread(target=put_all) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(kept(tmp_path).values()) == sorted(b"number %d" % at for at in range(40))
    assert lost(payloads) == {}


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_fork_keeps_payloads_even_while_a_thread_of_the_parent_held_the_lock(
    tmp_path: Path,
) -> None:
    payloads = writer(tmp_path)
    payloads.put(b"of the parent", media_type=JSON)
    with payloads._lock, payloads.spool._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if payloads.put(b"of the child", media_type=JSON) else 1)
    assert os.waitpid(child, 0)[1] == 0

    pack = first_pack(payloads)
    assert [one.data for one in pack.read_payloads()] == [b"of the parent"]
    assert list(arrived(sent_by_the_next(tmp_path)).values()) == [b"of the child"]
    assert list(kept(tmp_path).values()) == [b"of the parent"]


# ---- content of spans


@contextmanager
def recorder(path: Path, retention: RetentionMode = REDACTED) -> Iterator[Recorder]:
    provider = TracerProvider(shutdown_on_exit=False)
    settings = Settings(data=path, retention=retention)
    redactor = Redactor(b"key")
    payloads = PayloadWriter(settings, redactor, spool_of(path))
    yield Recorder(
        settings=settings,
        provider=provider,
        tracer=provider.get_tracer("hansard"),
        redactor=redactor,
        instance_id="instance",
        payloads=payloads,
    )
    payloads.spool.leave()


def content_of(path: Path, text: str, retention: RetentionMode = REDACTED) -> dict[str, Any]:
    """Return the attributes of a span on which this content was set as `hansard.input`."""
    with recorder(path, retention) as made:
        span = made.tracer.start_span("step")
        put_content(made, span, "hansard.input", text)
        span.end()
        attributes: Any = span
        return dict(attributes.attributes)


def test_content_up_to_a_kibibyte_stands_by_value(tmp_path: Path) -> None:
    text = "ü" * (INLINE_BYTES // 2)

    assert content_of(tmp_path, text) == {"hansard.input": text}
    assert files(tmp_path) == []


@pytest.mark.covers("OT-07")
def test_longer_content_stands_by_reference_with_its_size(tmp_path: Path) -> None:
    text = "word " * 1_000_000

    attributes = content_of(tmp_path, text)
    assert attributes == {
        "hansard.input_ref": ref_of(text.encode()),
        "hansard.input_size": 5_000_000,
    }
    assert text.encode() in bytes_on_disk(tmp_path)


def test_the_size_is_that_of_what_is_kept(tmp_path: Path) -> None:
    attributes = content_of(tmp_path, f'{{"key": "{SECRET}", "rest": "{"x" * 2000}"}}')

    [data] = kept(tmp_path).values()
    assert attributes == {
        "hansard.input_ref": ref_of(data),
        "hansard.input_size": len(data),
    }
    assert SECRET.encode() not in bytes_on_disk(tmp_path)


def test_a_secret_in_short_content_is_cut_out(tmp_path: Path) -> None:
    attributes = content_of(tmp_path, f"my key is {SECRET}")

    assert attributes["hansard.input"].startswith("my key is ‹redacted:anthropic:")


@pytest.mark.parametrize("text", ["short", "long " * 1_000])
def test_metadata_only_tells_the_size_of_content_alone(tmp_path: Path, text: str) -> None:
    assert content_of(tmp_path, text, METADATA) == {"hansard.input_size": len(text)}
    assert files(tmp_path) == []


def test_lone_surrogates_are_escaped(tmp_path: Path) -> None:
    assert content_of(tmp_path, "a\ud800b") == {"hansard.input": "a\\ud800b"}


def test_a_span_that_is_not_recorded_costs_no_file(tmp_path: Path) -> None:
    from opentelemetry.trace import INVALID_SPAN

    with recorder(tmp_path) as made:
        put_content(made, INVALID_SPAN, "hansard.input", "x" * 5_000)

    assert files(tmp_path) == []


def test_content_that_cannot_be_kept_leaves_its_size(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder")

    assert content_of(in_the_way, "x" * 5_000) == {"hansard.input_size": 5_000}


def test_a_disk_that_is_full_takes_nothing_by_half_and_later_all(tmp_path: Path) -> None:
    payloads = writer(tmp_path, retention=FULL)
    fits, too_much = b"fits", b"x" * 60_000
    before = payloads.put(fits, media_type=JSON)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    # What a full disk does to a file, without filling one: writes past this size fail.
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        assert payloads.put(too_much, media_type=JSON) == ""
        assert payloads.put(b"x" * 100_000, media_type=JSON) == ""
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
        signal.signal(signal.SIGXFSZ, ignored)

    assert kept(tmp_path) == {before: fits}
    assert lost(payloads) == {"spool unwritable": 2}
    after = payloads.put(too_much, media_type=JSON)
    assert kept(tmp_path) == {before: fits, after: too_much}
