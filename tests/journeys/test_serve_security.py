"""Tokens and TLS on both doors of a running server."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter

from tests.journeys.processes import (
    Serving,
    export,
    grpc_exporter,
    hansard,
    http_exporter,
    serving,
    spans,
)

EVERYTHING = "all-doors-open"
INGEST = "only-for-sending"
READ = "only-for-reading"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    tokens = [EVERYTHING, f"ingest:{INGEST}", f"read:{READ}"]
    arguments = [word for token in tokens for word in ("--token", token)]
    with serving(tmp_path_factory.mktemp("data"), *arguments) as server:
        yield server


@pytest.mark.parametrize("token", [EVERYTHING, INGEST])
def test_a_token_that_may_send_opens_both_doors_of_ingest(token: str, guarded: Serving) -> None:
    before = guarded.count_spans()
    bearer = {"authorization": f"Bearer {token}"}

    assert export(http_exporter(guarded, **bearer), spans(2))
    assert export(grpc_exporter(guarded, **bearer), spans(2))
    assert guarded.count_spans() == before + 4


@pytest.mark.covers("CO-19")
@pytest.mark.parametrize("token", [None, READ, "no-such-token"])
def test_nothing_is_stored_without_a_token_that_may_send(
    token: str | None, guarded: Serving
) -> None:
    before = guarded.count_spans()
    bearer = {"authorization": f"Bearer {token}"} if token else {}

    assert not export(http_exporter(guarded, **bearer), spans(2))
    assert not export(grpc_exporter(guarded, **bearer), spans(2))
    assert guarded.count_spans() == before


@pytest.mark.parametrize(
    ("token", "status"), [(EVERYTHING, 200), (READ, 200), (INGEST, 403), (None, 401)]
)
def test_reading_needs_a_token_that_may_read(
    token: str | None, status: int, guarded: Serving
) -> None:
    request = urllib.request.Request(f"{guarded.http}/v1/runs")
    if token:
        request.add_header("authorization", f"Bearer {token}")

    assert _status(request) == status


def test_a_short_token_is_refused_without_being_repeated(tmp_path: Path) -> None:
    ended = hansard("serve", "--data", str(tmp_path), "--token", "hunter2")

    assert ended.returncode == 2
    assert "at least 8" in ended.stderr
    assert "hunter2" not in ended.stderr


# ---- TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    addresses = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(addresses), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate_file, key_file = folder / "cert.pem", folder / "key.pem"
    certificate_file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return certificate_file, key_file


def test_both_doors_speak_tls_with_a_certificate(
    certificate: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, key = certificate
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # they overrule the exporter's argument
        monkeypatch.delenv(name, raising=False)
    with serving(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as server:
        trusted = grpc.ssl_channel_credentials(cert.read_bytes())
        over_grpc = GrpcExporter(endpoint=server.grpc, credentials=trusted, timeout=10)
        over_http = HttpExporter(
            endpoint=f"{server.http}/v1/traces", certificate_file=str(cert), timeout=10
        )

        assert server.http.startswith("https://127.0.0.1:")
        assert export(over_grpc, spans(2))
        assert export(over_http, spans(2))
        assert server.count_spans() == 4
        context = ssl.create_default_context(cafile=str(cert))
        with urllib.request.urlopen(f"{server.http}/healthz", context=context) as response:
            assert response.status == 200


def test_half_a_certificate_is_refused(certificate: tuple[Path, Path], tmp_path: Path) -> None:
    ended = hansard("serve", "--data", str(tmp_path), "--tls-cert", str(certificate[0]))

    assert ended.returncode == 2
    assert "--tls-key" in ended.stderr


def test_a_certificate_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    ended = hansard(
        "serve", "--data", str(tmp_path), "--tls-cert", "nowhere.pem", "--tls-key", "nowhere.key"
    )

    assert ended.returncode == 2
    assert "nowhere.pem" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def _status(request: urllib.request.Request) -> int:
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return int(error.code)
