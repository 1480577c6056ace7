"""Where a setting of the SDK comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard.config import load_settings
from hansard_compiler.errors import ConfigError
from hansard_compiler.retention import RetentionMode


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
    with pytest.raises(ConfigError, match="protocol: 'carrier pigeon' is no protocol"):
        load_settings({"data": tmp_path, "protocol": "carrier pigeon"}, {})


def test_a_retention_mode_nobody_knows_keeps_as_little_as_possible(tmp_path: Path) -> None:
    settings = load_settings({"data": tmp_path}, {"HANSARD_RETENTION": "some"})

    assert settings.retention is RetentionMode.METADATA_ONLY
    assert settings.problems == (
        "HANSARD_RETENTION: 'some' is no metadata_only, redacted_payloads, full_payloads; "
        "expected metadata_only, redacted_payloads, full_payloads",
    )
