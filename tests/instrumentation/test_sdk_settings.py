"""Where a setting of the SDK comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard._config.settings import SETTINGS, load_settings
from hansard_compiler.errors import ConfigError
from hansard_compiler.retention_modes import RetentionMode


def test_an_argument_beats_the_environment_beats_the_file_beats_the_default(tmp_path: Path) -> None:
    (tmp_path / "hansard.toml").write_text(
        "[sdk]\nservice_name = 'file'\ncompression = 'gzip'\nexport_delay_ms = 7\n"
    )
    environment = {
        "HANSARD_DATA": str(tmp_path),
        "OTEL_SERVICE_NAME": "environment",
        "OTEL_EXPORTER_OTLP_COMPRESSION": "deflate",
    }

    settings = load_settings({"service_name": "argument"}, environment)

    assert (settings.service_name, settings.compression) == ("argument", "deflate")
    assert (settings.export_delay_ms, settings.timeout_s) == (7, 10.0)
    assert settings.sources["service_name"] == "argument"
    assert settings.sources["compression"] == "environment OTEL_EXPORTER_OTLP_COMPRESSION"
    assert settings.sources["export_delay_ms"] == f"file {tmp_path / 'hansard.toml'}"
    assert settings.sources["timeout_s"] == "default"


def test_an_argument_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="protocol: 'carrier pigeon' is not grpc or http"):
        load_settings({"data": tmp_path, "protocol": "carrier pigeon"}, {})


def test_a_retention_mode_nobody_knows_keeps_as_little_as_possible(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path}, {"HANSARD_RETENTION": "some"})

    assert settings.retention is RetentionMode.METADATA_ONLY
    assert settings.problems == (
        "HANSARD_RETENTION: 'some' is not metadata_only, redacted_payloads or full_payloads; "
        "metadata_only stands in",
    )


# ---- endpoints

BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
TRACES = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"


@pytest.mark.covers("OT-14")
@pytest.mark.parametrize(
    ("arguments", "environment", "protocol", "traces", "logs"),
    [
        (
            {},
            {},
            "http/protobuf",
            "http://127.0.0.1:4318/v1/traces",
            "http://127.0.0.1:4318/v1/logs",
        ),
        ({"protocol": "grpc"}, {}, "grpc", "http://127.0.0.1:4317", "http://127.0.0.1:4317"),
        ({"endpoint": "http://a:4317"}, {}, "grpc", "http://a:4317", "http://a:4317"),
        ({"endpoint": "a:4317"}, {}, "grpc", "http://a:4317", "http://a:4317"),
        (
            {"endpoint": "https://a/x/"},
            {},
            "http/protobuf",
            "https://a/x/v1/traces",
            "https://a/x/v1/logs",
        ),
        (
            {"endpoint": "http://a:1/v1/traces"},
            {},
            "http/protobuf",
            "http://a:1/v1/traces",
            "http://a:1/v1/logs",
        ),
        ({}, {BASE: "http://b:1"}, "http/protobuf", "http://b:1/v1/traces", "http://b:1/v1/logs"),
        (
            {},
            {BASE: "http://b:1", TRACES: "http://c:2/spans"},
            "http/protobuf",
            "http://c:2/spans",
            "http://b:1/v1/logs",
        ),
        (
            {},
            {TRACES: "http://c:2/v1/traces"},
            "http/protobuf",
            "http://c:2/v1/traces",
            "http://c:2/v1/logs",
        ),
        (
            {"endpoint": "http://a:1"},
            {BASE: "http://b:1", TRACES: "http://c:2/spans"},
            "http/protobuf",
            "http://a:1/v1/traces",
            "http://a:1/v1/logs",
        ),
        (
            {},
            {"HANSARD_ENDPOINT": "http://a:1", TRACES: "http://c:2/spans", PROTOCOL: "grpc"},
            "grpc",
            "http://a:1",
            "http://a:1",
        ),
        (
            {},
            {BASE: "http://b:4317", PROTOCOL: "http/protobuf"},
            "http/protobuf",
            "http://b:4317/v1/traces",
            "http://b:4317/v1/logs",
        ),
    ],
)
def test_where_telemetry_goes(
    arguments: dict[str, str],
    environment: dict[str, str],
    protocol: str,
    traces: str,
    logs: str,
    tmp_path: Path,
) -> None:
    settings = load_settings({"data": tmp_path, **arguments}, environment)

    assert settings.protocol == protocol
    assert (settings.traces_endpoint, settings.logs_endpoint) == (traces, logs)


@pytest.mark.parametrize(
    ("token", "headers", "sent"),
    [
        ("a-long-secret", None, {"authorization": "Bearer a-long-secret"}),
        ("ingest:a-long-secret", None, {"authorization": "Bearer a-long-secret"}),
        ("read:the-first read+ingest:two", None, {"authorization": "Bearer two"}),
        ("one", "x-team=a%20b", {"x-team": "a b", "authorization": "Bearer one"}),
        ("one", "Authorization=Basic%20abc", {"authorization": "Basic abc"}),
        (None, {"X-Team": "red ones"}, {"x-team": "red ones"}),
        (None, None, {}),
    ],
)
def test_a_token_becomes_a_header(
    token: str | None, headers: object, sent: dict[str, str], tmp_path: Path
) -> None:
    environment = {} if token is None else {"HANSARD_TOKEN": token}

    settings = load_settings({"data": tmp_path, "headers": headers}, environment)

    assert dict(settings.headers) == sent
    assert not [value for value in sent.values() if value in repr(settings)]


def test_a_token_that_may_not_ingest_is_told_without_showing_it(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path}, {"HANSARD_TOKEN": "read:a-long-secret"})

    assert settings.problems == (
        "HANSARD_TOKEN: the value is not a token that may ingest; it is passed over",
    )
    assert settings.token is None


# ---- what makes no sense


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("endpoint", "ftp://a"),
        ("endpoint", "http://"),
        ("endpoint", "http://a:port"),
        ("headers", "no pair"),
        ("timeout_s", "0"),
        ("timeout_s", "nan"),
        ("timeout_s", "soon"),
        ("compression", "zip"),
        ("embedded", "perhaps"),
        ("export_delay_ms", 0),
        ("export_delay_ms", 1.5),
        ("exit_timeout_ms", -1),
        ("spool_max_bytes", "much"),
        ("service_name", ""),
        ("data", object()),
        ("resource_attributes", "a"),
    ],
)
def test_an_argument_that_makes_no_sense_names_itself(
    name: str, given: object, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"^{name}: .* is not "):
        load_settings({"data": tmp_path, name: given}, {})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("not toml", "cannot read"),
        ("[sdk]\ncolour = 1\n", "'colour' is no setting of [sdk]"),
        ("[sdk]\nsampler = 'always_off'\n", "'sampler' is no setting of [sdk]"),
        (
            "[sdk]\nexport_delay_ms = 'soon'\n",
            "'soon' is not a whole number of at least 1; it is passed over",
        ),
        ("sdk = 1\n", ""),
    ],
)
def test_a_file_that_makes_no_sense_is_told_and_passed_over(
    content: str, told: str, tmp_path: Path
) -> None:
    (tmp_path / "hansard.toml").write_text(content)

    settings = load_settings({"data": tmp_path}, {})

    assert settings.export_delay_ms == 500
    assert [told in problem for problem in settings.problems] == [True] * bool(told)


def test_a_file_that_cannot_be_read_may_have_wanted_nothing_kept(tmp_path: Path) -> None:
    (tmp_path / "hansard.toml").write_text('[sdk\nretention = "metadata_only"\n')

    kept = load_settings({"data": tmp_path}, {})
    told = load_settings({"data": tmp_path, "retention": "full_payloads"}, {})

    assert kept.retention is RetentionMode.METADATA_ONLY
    assert kept.sources["retention"] == f"file {tmp_path / 'hansard.toml'}"
    assert told.retention is RetentionMode.FULL_PAYLOADS
    [problem] = kept.problems
    assert problem.endswith("; retention is metadata_only unless set elsewhere")


def test_empty_variables_are_as_good_as_none(tmp_path: Path) -> None:
    names = {name: " " for row in SETTINGS for name in row.env}

    assert load_settings({"data": tmp_path}, names) == load_settings({"data": tmp_path}, {})


def test_a_program_of_a_user_without_a_home_is_told_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs as a user of no passwd."""
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_001)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    settings = load_settings({}, {})

    assert settings.data.parent == tmp_path
    assert settings.data.stat().st_mode & 0o777 == 0o700
    [problem] = settings.problems
    assert "HANSARD_DATA" in problem
    assert load_settings({}, {"HANSARD_DATA": str(tmp_path)}).problems == ()
