"""Payloads in the program: redacted, hashed, on disk before `put` returns; never in the way."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider

from hansard._config.settings import Settings
from hansard._payloads.store import INLINE_BYTES, MAX_BYTES, PayloadWriter, set_content
from hansard._runtime.recorder import Recorder
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.retention import RetentionMode

SECRET = "sk-ant-api03-" + "Qx7Rm2Vp9Lk4" * 8 + "AA"
JSON = "application/json"
FULL, REDACTED, METADATA = (
    RetentionMode.FULL_PAYLOADS,
    RetentionMode.REDACTED_PAYLOADS,
    RetentionMode.METADATA_ONLY,
)


def ref_of(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def writer(
    path: Path, *, retention: RetentionMode = REDACTED, spool_max_bytes: int = 1 << 26
) -> PayloadWriter:
    settings = Settings(data=path, retention=retention, spool_max_bytes=spool_max_bytes)
    return PayloadWriter(settings, Redactor(b"key"))


def files(path: Path) -> list[Path]:
    """Return the files of a data folder, hidden ones included."""
    return sorted(one for one in path.rglob("*") if one.is_file())


def kept(payloads: PayloadWriter) -> dict[str, bytes]:
    """Return what waits in the spool, by reference."""
    return {one.ref: one.read() for one in payloads.spool.first(1_000)}


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
    assert kept(payloads) == {ref: data}
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

    [waiting] = payloads.spool.first(10)
    assert waiting.path.is_relative_to(tmp_path / "spool" / "payloads")
    assert ".." not in waiting.path.parts
    assert waiting.read() == data
    assert waiting.media_type in (media_type, "application/octet-stream")


def test_equal_bytes_are_written_once(tmp_path: Path) -> None:
    payloads = writer(tmp_path)
    first = payloads.put(b"the same", media_type=JSON)
    [waiting] = payloads.spool.first(10)
    payloads.spool.done(waiting)  # it arrived

    assert payloads.put(b"the same", media_type=JSON) == first
    assert kept(payloads) == {}


@given(data=st.binary(max_size=200), media_type=st.text(max_size=60))
def test_any_bytes_under_any_type_come_back(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, media_type: str
) -> None:
    path = tmp_path_factory.mktemp("any")
    payloads = writer(path, retention=FULL)
    ref = payloads.put(data, media_type=media_type)
    payloads.transport.close()
    left = writer(path, retention=FULL)
    left.transport.look()

    assert ref == ref_of(data)
    assert kept(left) == {ref: data}
    left.transport.close()


# ---- retention


@pytest.mark.covers("RC-21")
def test_a_secret_is_cut_out_before_the_digest_is_taken(tmp_path: Path) -> None:
    text = '{"prompt": "' + "word " * 400_000 + '", "api_key": "' + SECRET + '"}'
    payloads = writer(tmp_path)
    ref = payloads.put(text.encode(), media_type=JSON)

    [data] = kept(payloads).values()
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
    assert kept(payloads) == {ref_of(data): data}


# ---- bounds and trouble


def test_the_oldest_makes_room_and_is_counted(tmp_path: Path) -> None:
    payloads = writer(tmp_path, spool_max_bytes=10_000)
    refs = [payloads.put(bytes([at]) * 4_000, media_type=JSON) for at in range(4)]

    assert list(kept(payloads)) == refs[2:]
    assert payloads.losses == {"spool full": 2}


def test_what_was_dropped_may_be_put_again(tmp_path: Path) -> None:
    payloads = writer(tmp_path, spool_max_bytes=10_000)
    lost = payloads.put(b"a" * 6_000, media_type=JSON)
    payloads.put(b"b" * 6_000, media_type=JSON)

    assert payloads.put(b"a" * 6_000, media_type=JSON) == lost
    assert [one.ref for one in payloads.spool.first(10)] == [lost]


def test_a_payload_that_is_larger_than_the_budget_is_counted(tmp_path: Path) -> None:
    payloads = writer(tmp_path, spool_max_bytes=1_000)

    assert payloads.put(b"x" * 1_001, media_type=JSON) == ref_of(b"x" * 1_001)
    assert (files(tmp_path), payloads.losses) == ([], {"spool full": 1})


def test_more_than_the_collector_takes_is_not_kept(tmp_path: Path) -> None:
    payloads = writer(tmp_path, retention=FULL, spool_max_bytes=1 << 30)
    payloads.put(bytes(MAX_BYTES + 1), media_type="application/octet-stream")

    assert (files(tmp_path), payloads.losses) == ([], {"refused by the collector": 1})


def test_a_disk_that_takes_nothing_is_told_and_never_raised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("no folder")
    payloads = writer(in_the_way)

    assert [payloads.put(bytes([at]), media_type=JSON) for at in range(3)] == ["", "", ""]
    assert payloads.losses == {"spool unwritable": 3}
    assert len([one for one in caplog.records if one.name == "hansard"]) <= 1


def test_bytes_that_are_none_are_told_and_never_raised(tmp_path: Path) -> None:
    wrong: Any = None

    assert writer(tmp_path).put(wrong, media_type=JSON) == ""


def left_by_a_process(path: Path, *data: bytes) -> list[str]:
    """Put payloads as a process does that ends right after."""
    gone = writer(path)
    refs = [gone.put(one, media_type=JSON) for one in data]
    gone.transport.close()
    return refs


def test_what_another_process_left_is_taken_in(tmp_path: Path) -> None:
    refs = left_by_a_process(tmp_path, b"left behind", b"", b"large " * 20_000)
    (tmp_path / "spool/payloads/.half-written").write_bytes(b"to")
    (tmp_path / "spool/payloads/README").write_text("not one of ours")
    next_one = writer(tmp_path)
    next_one.transport.look()

    assert {one.media_type for one in next_one.spool.first(10)} == {JSON}
    assert set(kept(next_one)) == set(refs)
    for one in next_one.spool.first(10):
        next_one.spool.done(one)
    assert {one.name for one in files(tmp_path)} == {".half-written", "README"}


def test_what_a_living_process_has_is_its_own(tmp_path: Path) -> None:
    alive, other = writer(tmp_path), writer(tmp_path)
    alive.put(b"in use", media_type=JSON)
    other.transport.look()

    assert (len(alive.spool), len(other.spool)) == (1, 0)


@pytest.mark.parametrize("cut", [1, 5, 12, 90])
def test_a_record_that_was_cut_off_is_counted_and_those_before_it_are_sound(
    tmp_path: Path, cut: int
) -> None:
    [sound, _] = left_by_a_process(tmp_path, b"sound", b"cut off")
    [pack] = tmp_path.rglob("*.pack")
    pack.write_bytes(pack.read_bytes()[:-cut])
    next_one = writer(tmp_path)
    next_one.transport.look()

    assert kept(next_one) == {sound: b"sound"}
    assert next_one.losses == {"spool file unreadable": 1}


@pytest.mark.parametrize("junk", [b"", b"\n", b"junk" * 100, b"0" * 64 + b" 99999999 a%2Fb\n"])
def test_a_pack_of_junk_is_counted_at_most_and_removed(tmp_path: Path, junk: bytes) -> None:
    left_by_a_process(tmp_path, b"one")
    [pack] = tmp_path.rglob("*.pack")
    pack.write_bytes(junk)
    next_one = writer(tmp_path)
    next_one.transport.look()

    assert kept(next_one) == {}
    assert files(tmp_path) == []
    assert sum(next_one.losses.values()) <= 1


def test_packs_are_filled_one_after_the_other_and_go_when_they_are_settled(
    tmp_path: Path,
) -> None:
    payloads = writer(tmp_path, retention=FULL)
    for at in range(150):
        payloads.put(b"%06d" % at * 10_000, media_type=JSON)
    packs = sorted(tmp_path.rglob("*.pack"))
    assert len(packs) == 3

    for one in payloads.spool.first(149):
        payloads.spool.done(one)
    assert sorted(tmp_path.rglob("*.pack")) == packs[2:]
    [last] = payloads.spool.first(10)
    assert last.read() == b"000149" * 10_000


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

    assert sorted(kept(payloads).values()) == sorted(b"number %d" % at for at in range(40))
    assert payloads.losses == {}


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

    assert list(kept(payloads).values()) == [b"of the parent"]
    payloads.transport.look()
    assert sorted(kept(payloads).values()) == [b"of the child", b"of the parent"]


# ---- content of spans


@contextmanager
def recorder(path: Path, retention: RetentionMode = REDACTED) -> Iterator[Recorder]:
    provider = TracerProvider(shutdown_on_exit=False)
    settings = Settings(data=path, retention=retention)
    redactor = Redactor(b"key")
    payloads = PayloadWriter(settings, redactor)
    yield Recorder(
        settings=settings,
        provider=provider,
        tracer=provider.get_tracer("hansard"),
        redactor=redactor,
        instance_id="instance",
        payloads=payloads,
    )
    payloads.transport.close()


def content_of(path: Path, text: str, retention: RetentionMode = REDACTED) -> dict[str, Any]:
    """Return the attributes of a span on which this content was set as `hansard.input`."""
    with recorder(path, retention) as made:
        span = made.tracer.start_span("step")
        set_content(span, "hansard.input", text, recorder=made)
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

    next_one = writer(tmp_path)
    next_one.transport.look()
    [data] = kept(next_one).values()
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
        set_content(INVALID_SPAN, "hansard.input", "x" * 5_000, recorder=made)

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

    assert kept(payloads) == {before: fits}
    assert payloads.losses == {"spool unwritable": 2}
    after = payloads.put(too_much, media_type=JSON)
    assert kept(payloads) == {before: fits, after: too_much}
