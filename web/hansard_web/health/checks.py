"""What `hansard doctor` looks at: each check yields findings, and changes nothing."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.metadata import version
from pathlib import Path

import apsw

from hansard._clients.instrument import InstrumentState, instrumentations
from hansard._config.settings import SETTINGS as SDK_SETTINGS
from hansard._config.settings import load_settings
from hansard_collector.derivation.rebuild import unfinished_rebuild
from hansard_compiler.errors import HansardError
from hansard_store.audit.anchors import copy_folder, store_id
from hansard_store.audit.schema import alterations
from hansard_store.database.data_folder import DataFolder
from hansard_store.errors import StoreError
from hansard_store.heartbeat import list_cycles
from hansard_store.ledger import ledger_totals, list_refusals
from hansard_store.policy.rules import policy_problem
from hansard_store.transcripts.queries import decode_all
from hansard_web.app.config import LONG_SECRET, Config
from hansard_web.app.server_file import Endpoints, answers, find_server
from hansard_web.cli.store import open_store
from hansard_web.health.offline import prove_offline
from hansard_web.ui import format as fmt

_PACKAGES = ("hansard", "opentelemetry-sdk", "opentelemetry-exporter-otlp", "grpcio", "protobuf")
_OLDEST_PYTHON = (3, 11)
# Settings of the SDK that are shown where they are the default, too.
_ALWAYS_SHOWN = frozenset({"endpoint", "protocol", "retention", "service_name", "disabled"})
_LITTLE_DISK_BYTES = 1 << 30
_OWNER_ONLY = stat.S_IRWXG | stat.S_IRWXO


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One line of the report."""

    level: Level
    what: str  # what was looked at
    text: str  # what was found, and what to do when it is not good


ok, warn, fail = (partial(HealthFinding, level) for level in Level)


def examine(config: Config, settings: Mapping[str, str | None]) -> Iterator[HealthFinding]:
    """Look at everything that needs nothing to be sent; `settings` name those of the SDK."""
    folder, endpoints = DataFolder(config.data), find_server(config.data)
    yield from _check_settings(config, endpoints)
    config = config.of_server(endpoints.settings if endpoints else {})
    yield from _check_versions()
    yield from _check_folder(folder)
    yield from _check_disk(folder)
    yield from _check_records(folder, config)
    yield from _check_doors(config, endpoints)
    yield from _check_principals(config, endpoints)
    yield from _check_sdk(settings)
    yield from _check_instrumentors()


def _check_versions() -> Iterator[HealthFinding]:
    """What runs here."""
    found = ".".join(map(str, sys.version_info[:3]))
    is_new = sys.version_info >= _OLDEST_PYTHON
    requirement = "" if is_new else f"; {'.'.join(map(str, _OLDEST_PYTHON))} or newer is needed"
    found = f"{found} on {platform.system()} {platform.machine()}{requirement}"
    yield ok("python", found) if is_new else fail("python", found)
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    yield ok("packages", packages)
    yield ok("sqlite", f"{apsw.sqlite_lib_version()}, brought along by apsw")


def _check_sdk(options: Mapping[str, str | None]) -> Iterator[HealthFinding]:
    """What `hansard.init()` would find when called here, and where each value comes from."""
    settings = load_settings(options, os.environ)
    others = []
    for row in SDK_SETTINGS:
        source = settings.sources[row.name]
        if source == "default" and row.name not in _ALWAYS_SHOWN:
            others.append(row.name)
            continue
        value = getattr(settings, row.name)
        shown = ("set" if value else "none") if row.is_secret else value
        yield ok("sdk", f"{row.name} = {shown} ({source})")
    yield ok("sdk", f"at their defaults: {', '.join(others)}")
    for problem in settings.problems:
        yield warn("sdk", problem)


def _check_instrumentors() -> Iterator[HealthFinding]:
    """What `hansard.instrument()` would switch on in a program of this environment."""
    found = instrumentations()
    for one in found:
        others = f"; left off: {', '.join(one.others)}" if one.others else ""
        text = f"{one.library} by {one.package} {one.version}{others}"
        if one.state is InstrumentState.ON_HTTP:
            text = f"{one.library} {one.version}: no instrumentor; its clients are recorded"
        yield ok("instrument", text)
    if not found:
        yield ok("instrument", "no clients or instrumentors of models are installed")


def _check_folder(folder: DataFolder) -> Iterator[HealthFinding]:
    """Whether the data folder can be used, and by nobody else."""
    path = folder.path
    if not path.exists():
        above = next(parent for parent in path.parents if parent.exists())
        if os.access(above, os.W_OK):
            yield ok("data", f"{path} will be made by `hansard serve`")
        else:
            yield fail("data", f"{path} is not there and {above} is not writable")
        return
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield fail("data", f"{path} is not readable and writable for this user")
        return
    yield ok("data", f"{path} is writable")
    yield from _check_permissions([path, folder.database, folder.key_file, folder.blobs])


def _check_permissions(paths: list[Path]) -> Iterator[HealthFinding]:
    open_ones = [p for p in paths if p.exists() and p.stat().st_mode & _OWNER_ONLY]
    for path in open_ones:
        mode = stat.S_IMODE(path.stat().st_mode)
        advice = "700" if path.is_dir() else "600"
        yield warn("permissions", f"{path} is open to others ({mode:o}): chmod {advice} {path}")
    if not open_ones:
        yield ok("permissions", "folder and files are their owner's alone")


def _check_disk(folder: DataFolder) -> Iterator[HealthFinding]:
    """Whether there is room."""
    there = next(path for path in (folder.path, *folder.path.parents) if path.exists())
    free = shutil.disk_usage(there).free
    used = sum(p.stat().st_size for p in folder.path.rglob("*") if p.is_file())
    text = f"{fmt.file_size(free)} free, {fmt.file_size(used)} used by this store"
    if free < _LITTLE_DISK_BYTES:
        yield warn("disk", f"{text}: make room, or serve with --max-disk")
    else:
        yield ok("disk", text)


def _check_heads(folder: DataFolder, setting: str | None) -> Iterator[HealthFinding]:
    """Look whether the audit log's head has a second copy outside of the data folder."""
    copy = copy_folder(setting)
    if copy is None:
        yield ok("heads", "are kept in the data folder alone")
    elif not folder.key_file.exists():
        return
    elif not _is_writable(copy):
        problem = f"cannot be copied to {copy}: a store that was put back whole is not noticed"
        yield warn("heads", problem)
    else:
        state = "is kept in" if (copy / store_id(folder.key())).exists() else "will be kept in"
        yield ok("heads", f"a second copy {state} {copy}")


def _is_writable(path: Path) -> bool:
    """Say whether a folder, or what would hold it, takes files."""
    nearest = next((one for one in (path, *path.parents) if one.exists()), path)
    return nearest.is_dir() and os.access(nearest, os.W_OK | os.X_OK)


def _check_records(folder: DataFolder, config: Config) -> Iterator[HealthFinding]:
    """Whether the database is sound, where there is one, and its head has a second copy."""
    with ExitStack() as opened:
        connection = None
        if folder.database.exists():
            try:
                connection = opened.enter_context(closing(open_store(folder)))
            except HansardError as error:
                yield fail("store", str(error))
        if connection is not None:
            yield from _check_store(connection)
        yield from check_policy(folder)
        if connection is not None:
            yield from _check_rebuild(folder, connection)
        yield from _check_heads(folder, config.heads_copy)
        if connection is not None:
            yield _check_heartbeat(connection, config.heartbeat)
            yield from _check_transcripts(connection)


def _check_store(connection: apsw.Connection) -> Iterator[HealthFinding]:
    """Whether the schema is this version's, and what the ledger says."""
    spans = ledger_totals(connection)["traces"]
    for one in alterations(connection):
        if one.is_harmless:
            yield warn("schema", str(one))
        else:
            advice = "nothing is decided or sealed until `hansard repair` has restored it"
            yield fail("schema", f"{one}: {advice}")
    counted = f"{spans.received:,} spans received, {spans.stored:,} stored"
    yield ok("store", f"schema is this version's; {counted}")
    for last in list_refusals(connection, limit=1):
        at = fmt.day_time(last.time_ns)
        yield warn("refused", f"last at {at} UTC: {last.message} (/health lists more)")


def check_policy(folder: DataFolder) -> Iterator[HealthFinding]:
    """Whether the stored rules of policy are unaltered."""
    if not folder.database.exists():
        return
    try:
        problem = policy_problem(folder)
    except StoreError:
        return  # the store's own line says why it cannot be opened
    if problem is not None:
        yield fail("policy", f"{problem}; until then policy checks and proposals are refused")


def _check_rebuild(folder: DataFolder, connection: apsw.Connection) -> Iterator[HealthFinding]:
    """Whether a rebuild has begun and not ended."""
    found = unfinished_rebuild(folder, connection)
    if found is None:
        return
    left = f"{found.runs_left:,} runs left; until it ends, search and lists may miss steps"
    if found.is_running:
        yield warn("rebuild", f"in progress: {left}")
    else:
        yield warn(
            "rebuild", f"unfinished: {left}; `hansard serve` or `hansard rebuild` continues it"
        )


def _check_heartbeat(connection: apsw.Connection, interval_ns: int | None) -> HealthFinding:
    """When the last cycle of the heartbeat ran, and what of it failed."""
    every = "off" if interval_ns is None else f"every {fmt.duration(interval_ns)}"
    cycles = list_cycles(connection, limit=1)
    if not cycles:
        return ok("heartbeat", f"{every} on servers; no cycle has run")
    (last,) = cycles
    age_ns = time.time_ns() - last.started_ns
    text = f"{every} on servers; the last cycle began {fmt.duration(age_ns)} ago"
    if last.failed:
        names = ", ".join(one.name for one in last.phases if one.status == "failed")
        return warn("heartbeat", f"{text}; failed: {names}")
    if interval_ns is not None and age_ns > 3 * interval_ns:
        return warn("heartbeat", f"{text}: more than three intervals")
    return ok("heartbeat", text)


def _check_transcripts(connection: apsw.Connection) -> Iterator[HealthFinding]:
    """Whether every message of every conversation still is one."""
    found = decode_all(connection)
    for problem in (*map(str, found.failures), *found.problems):
        yield fail("transcripts", problem)
    if found.is_sound:
        versions = ", ".join(f"{count:,} of version {one}" for one, count in found.versions.items())
        message = f"{found.messages:,} messages decoded" + (f": {versions}" if versions else "")
        yield ok("transcripts", message)


def _check_doors(config: Config, endpoints: Endpoints | None) -> Iterator[HealthFinding]:
    """Whether the server answers; where none runs, whether its ports are free."""
    if endpoints is None:
        for name, port in (("http-port", config.http_port), ("grpc-port", config.grpc_port)):
            yield _check_port(config.host, port, name)
        return
    if answers(endpoints.http):
        yield ok("server", f"answers at {endpoints.http}")
    else:
        yield fail("server", f"{endpoints.http}/healthz does not say that it is well")
    if endpoints.grpc is not None:
        yield _check_grpc(endpoints.grpc)


def _check_settings(config: Config, endpoints: Endpoints | None) -> Iterator[HealthFinding]:
    """Where the running server was started with other settings than those that are read here."""
    if endpoints is None:
        return
    if not endpoints.settings:
        text = "the running server is of a version that does not report its own"
        yield warn("settings", text)
    other = config.differing(endpoints.settings)
    if other:
        names = ", ".join(other)
        text = f"the running server was started with another {names}: what follows is its own"
        yield warn("settings", text)


def _check_principals(config: Config, endpoints: Endpoints | None) -> Iterator[HealthFinding]:
    """Who may decide, and whether a configured token can be guessed."""
    where = "" if endpoints is None or not endpoints.settings else f" at {endpoints.http}"
    if config.decide == "anyone":
        text = f'anyone who reaches the server decides{where}, in any name: decide = "anyone"'
        yield warn("decide", text)
    else:
        text = f"only principals decide{where}: see hansard tokens list"
        yield ok("decide", text)
    short = config.short_tokens if endpoints is None else endpoints.settings.get("short_tokens", 0)
    if short:
        text = f"{fmt.plural(short, 'configured token')} shorter than {LONG_SECRET} characters"
        yield warn("token", f"{text}: use `openssl rand -base64 32`")


def _check_port(host: str, port: int, name: str) -> HealthFinding:
    try:
        socket.create_server((host, port)).close()
    except OSError as error:
        reason = error.strerror or str(error)
        advice = f"another program may hold it; serve with --{name} 0 or another number"
        return warn(name, f"{port}: {reason}: {advice}")
    return ok(name, f"{port} is free")


def _check_grpc(address: str) -> HealthFinding:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=3).close()
    except OSError as error:
        return fail("grpc", f"{address}: {error.strerror or error}")
    return ok("grpc", f"listens at {address}")


def check_offline() -> Iterator[HealthFinding]:
    """Whether the demo works with no network, and tries none."""
    proof = prove_offline()
    if not proof.is_possible:
        yield warn("offline", f"cannot be proved here: {proof.story}")
    elif not proof.has_worked:
        yield fail("offline", f"the demo failed without a network: {proof.story}")
    elif proof.attempts:
        yield fail("offline", f"the demo tried to reach another machine {proof.attempts} times")
    else:
        yield ok("offline", "the demo works with only a loopback, and tried nothing else")
