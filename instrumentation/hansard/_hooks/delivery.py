"""A record's way to the server: to the one that runs, else into a folder that the next one reads.

    <data>/spool/hooks/<time>-<process>-<random>.json    an ExportLogsServiceRequest, 0600

A record that the server may have stored without answering in time is written too: the same record
twice is stored once.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from hansard._hooks.settings import HookSettings

FOLDER = "spool/hooks"
MOST_FILES = 20_000
_DEFAULT_ADDRESS = "http://127.0.0.1:4318"
_CONNECT_S = 0.25
_ANSWER_S = 2.0
_PATH = "/v1/logs"


def deliver(make: Callable[[bool], bytes], settings: HookSettings, *, time_ns: int) -> bool:
    """Send a record, or write it down; False when neither can be done.

    `make` gets whether secrets are to be cut out, which takes longer than all else here: a server
    on this machine does it itself by its own retention, unless the settings name one.
    """
    if settings.retention is None and _is_here(address_of(settings)):
        if _send(make(False), settings):
            return True
        return _write(make(True), settings.data, time_ns=time_ns)
    body = make(True)
    return _send(body, settings) or _write(body, settings.data, time_ns=time_ns)


def _is_here(address: str) -> bool:
    """Whether an address is this machine's own."""
    host = address.partition("://")[2].partition("/")[0]
    return host.rpartition(":")[0].strip("[]") in ("127.0.0.1", "localhost", "::1")


def address_of(settings: HookSettings) -> str:
    """Return the server's address: the setting, that of the folder's server, or the usual."""
    if settings.endpoint:
        address = settings.endpoint if "://" in settings.endpoint else f"http://{settings.endpoint}"
        return address.removesuffix(_PATH).rstrip("/")
    import json

    try:
        with open(f"{settings.data}/server.json", encoding="utf-8") as file:
            http = json.load(file).get("http")
        return http if isinstance(http, str) and "://" in http else _DEFAULT_ADDRESS
    except (OSError, ValueError, AttributeError):
        return _DEFAULT_ADDRESS


def _send(body: bytes, settings: HookSettings) -> bool:
    """Return whether the server confirms that it stored a record."""
    try:
        scheme, _, rest = address_of(settings).partition("://")
        address, slash, path = rest.partition("/")
        host, colon, port = address.rpartition(":")
        host, number = (host, int(port)) if colon and port.isdigit() else (address, 0)
        if scheme == "https":
            return _send_https(body, settings, host=host, port=number or 443, path=slash + path)
        return _send_http(body, settings, host=host, port=number or 80, path=slash + path)
    except (OSError, ValueError):
        return False


def _head(settings: HookSettings, host: str, path: str, size: int) -> str:
    lines = [
        f"POST {path}{_PATH} HTTP/1.1",
        f"Host: {host}",
        "Content-Type: application/json",
        f"Content-Length: {size}",
        "Connection: close",
    ]
    if settings.token and not set("\r\n") & set(settings.token):
        lines.append(f"Authorization: Bearer {settings.token}")
    return "\r\n".join(lines) + "\r\n\r\n"


def _send_http(body: bytes, settings: HookSettings, *, host: str, port: int, path: str) -> bool:
    import socket

    with socket.create_connection((host.strip("[]"), port), timeout=_CONNECT_S) as connection:
        connection.settimeout(_ANSWER_S)
        connection.sendall(_head(settings, f"{host}:{port}", path, len(body)).encode() + body)
        response = b""
        while b"\r\n" not in response and len(response) < 1024:
            part = connection.recv(1024)
            if not part:
                break
            response += part
    return response.split(b" ", 2)[1:2] == [b"200"]


def _send_https(body: bytes, settings: HookSettings, *, host: str, port: int, path: str) -> bool:
    from http.client import HTTPException, HTTPSConnection

    connection = HTTPSConnection(host, port, timeout=_ANSWER_S)
    headers = {"Content-Type": "application/json"}
    if settings.token:
        headers["Authorization"] = f"Bearer {settings.token}"
    try:
        connection.request("POST", path + _PATH, body, headers)
        return connection.getresponse().status == 200
    except HTTPException:
        return False
    finally:
        connection.close()


def _write(body: bytes, data: str, *, time_ns: int) -> bool:
    """Write a record whole, or not at all, where the next server finds it."""
    folder = f"{data}/{FOLDER}"
    try:
        make_private(folder)
        if len(os.listdir(folder)) >= MOST_FILES:
            return False
        name = f"{time_ns:020}-{os.getpid()}-{os.urandom(4).hex()}.json"
        beside = f"{folder}/.{name}"
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            view = memoryview(body)
            while view:
                view = view[os.write(descriptor, view) :]
        finally:
            os.close(descriptor)
        os.rename(beside, f"{folder}/{name}")
    except OSError:
        return False
    return True


def make_private(folder: str) -> None:
    """Make a folder, and those above it, for its owner alone."""
    if not os.path.isdir(folder):
        above = os.path.dirname(folder)
        if above and above != folder:
            make_private(above)
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            return  # made meanwhile
