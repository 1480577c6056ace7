"""Where settings come from, and how a wrong one is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard._config.setting import read_duration_ns, read_size_bytes
from hansard._config.settings import load_settings
from hansard_compiler.errors import ConfigError
from hansard_web.app.config import SETTINGS, default_data_folder, is_loopback, load_config


def test_an_argument_beats_the_environment_which_beats_the_file(tmp_path: Path) -> None:
    file = tmp_path / "hansard.toml"
    file.write_text('http_port = 1\ngrpc_port = 2\nretention = "metadata_only"\n')
    environment = {"HANSARD_HTTP_PORT": "3", "HANSARD_GRPC_PORT": "4"}

    config = load_config({"data": str(tmp_path), "http_port": "5"}, environment)

    assert (config.http_port, config.grpc_port) == (5, 4)
    assert config.retention == "metadata_only"
    assert config.durability == "normal"


def test_without_anything_said_the_platforms_folder_is_used() -> None:
    assert load_config({}, {}).data == default_data_folder()


def test_a_user_without_a_home_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container that runs as a user of no passwd."""
    for name in ("HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 4_000_000_001)

    assert load_config({}, {"HANSARD_DATA": str(tmp_path)}).data == tmp_path
    with pytest.raises(ConfigError, match="HANSARD_DATA"):
        load_config({}, {})


def test_a_file_can_be_named_and_can_name_the_data_folder(tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text(f'data = "{tmp_path}/store"\ntoken = ["ingest:long-enough"]\n')

    config = load_config({"config": str(file)}, {})

    assert config.data == tmp_path / "store"
    assert config.token[0].scopes == frozenset({"ingest"})


def test_lists_in_the_environment_are_apart_by_spaces() -> None:
    config = load_config({}, {"HANSARD_ALLOW_HOST": "traces.example box", "HANSARD_DATA": "/x"})

    assert config.allow_host == ("traces.example", "box")


def test_an_empty_variable_is_no_setting() -> None:
    assert load_config({}, {"HANSARD_HTTP_PORT": "", "HANSARD_DATA": "/x"}).http_port == 4318


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"http_port": "65536"}, "--http-port: '65536'"),
        ({"http_port": "-1"}, "a port from 0"),
        ({"retention": "everything"}, "redacted_payloads"),
        ({"durability": "double"}, "normal, full"),
        ({"keep": "soon"}, "30d"),
        ({"max_disk": "lots"}, "20GB"),
        ({"host": "127.0.0.1:80"}, "without a port"),
        ({"host": "0.0.0.0"}, "--token"),
        ({"tls_cert": "x.pem"}, "--tls-key"),
        ({"cors_origin": ("app.example",)}, "https://app.example"),
        ({"token": ("short",)}, "at least 8"),
    ],
)
def test_a_value_that_cannot_be_meant_is_told_with_what_was_expected(
    arguments: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"data": "/nowhere", **arguments}, {})

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_place_of_a_wrong_value_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="HANSARD_GRPC_PORT: 'x'"):
        load_config({"data": "/nowhere"}, {"HANSARD_GRPC_PORT": "x"})
    file = tmp_path / "hansard.toml"
    file.write_text("http_port = true\n")
    with pytest.raises(ConfigError, match=r"hansard\.toml: http_port: True"):
        load_config({"data": str(tmp_path)}, {})


def test_the_sdks_table_in_the_file_is_left_to_the_sdk(tmp_path: Path) -> None:
    file = tmp_path / "hansard.toml"
    file.write_text('retention = "full_payloads"\n\n[sdk]\nretention = "metadata_only"\n')

    assert load_config({"data": str(tmp_path)}, {}).retention == "full_payloads"
    assert load_settings({"data": str(tmp_path)}, {}).retention == "metadata_only"


def test_a_misspelt_name_in_the_file_is_told_with_the_nearest_one(tmp_path: Path) -> None:
    file = tmp_path / "hansard.toml"
    file.write_text("retenton = 'full_payloads'\n")

    with pytest.raises(ConfigError, match="'retenton' is no setting; did you mean 'retention'"):
        load_config({"data": str(tmp_path)}, {})


def test_a_file_that_is_no_toml_is_told(tmp_path: Path) -> None:
    file = tmp_path / "hansard.toml"
    file.write_text("http_port: 4318\n")

    with pytest.raises(ConfigError, match="is not TOML"):
        load_config({"data": str(tmp_path)}, {})


def test_a_token_is_never_repeated_in_an_error() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config({"data": "/x", "token": ("s3cret with spaces",)}, {})

    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(load_config({"data": "/x", "token": ("s3cret-ok",)}, {}))


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("90m", 5_400), ("12h", 43_200), ("2w", 1_209_600)]
)
def test_durations_are_read_in_their_unit(text: str, seconds: int) -> None:
    assert read_duration_ns(text) == seconds * 1_000_000_000


@pytest.mark.parametrize(
    ("text", "size"), [("20GB", 20 << 30), ("512 MB", 512 << 20), ("1.5T", 3 << 39), ("100", 100)]
)
def test_sizes_are_read_in_powers_of_1024(text: str, size: int) -> None:
    assert read_size_bytes(text) == size


def test_loopback_is_known_in_all_its_forms() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "::1", "localhost")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.2", "example.org")))


def test_every_setting_says_in_one_sentence_what_it_does() -> None:
    for row in SETTINGS:
        assert row.sentence.endswith(".")
        assert row.variable == f"HANSARD_{row.name.upper()}"
