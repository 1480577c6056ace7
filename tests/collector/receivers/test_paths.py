"""Which paths are OTLP's (otlp.md §1)."""

from __future__ import annotations

import pytest

from hansard_collector.pipeline.requests import Signal
from hansard_collector.receivers.paths import find_target, is_otlp_path


@pytest.mark.parametrize("signal", Signal)
@pytest.mark.parametrize("prefix", ["", "/", "/otel", "/otlp", "/api/otel", "/api/public/otel"])
@pytest.mark.parametrize("ending", ["", "/", "//"])
def test_a_signal_is_found_under_every_prefix_and_with_any_slashes(
    signal: Signal, prefix: str, ending: str
) -> None:
    target = find_target(f"{prefix}/v1/{signal}{ending}")

    assert target is not None
    assert target.signal is signal


def test_prefixes_can_be_configured() -> None:
    target = find_target("/behind/proxy/v1/logs", prefixes=["/behind/proxy"])

    assert target is not None
    assert target.signal is Signal.LOGS
    assert find_target("/behind/proxy/v1/logs") is None


@pytest.mark.parametrize("path", ["/", "//", "", "/otel", "/api/otel/"])
def test_a_path_that_names_no_signal_is_answered_with_the_paths_that_do(path: str) -> None:
    target = find_target(path)

    assert target is not None
    assert target.signal is None
    assert "/v1/traces" in target.problem


@pytest.mark.parametrize("path", ["/v1development/profiles", "/otel/v1development/profiles/"])
def test_signals_in_development_are_known_and_not_received(path: str) -> None:
    target = find_target(path)

    assert target is not None
    assert (target.signal, "this signal is not received" in target.problem) == (None, True)


@pytest.mark.parametrize(
    "path",
    ["/v1/runs", "/V1/traces", "/v1", "/v1/trace", "/traces", "/otelx/v1/traces", "/x/v1/logs"],
)
def test_other_paths_are_not_otlps(path: str) -> None:
    assert find_target(path) is None
    assert not is_otlp_path(path)


def test_the_root_is_otlps_only_for_post() -> None:
    assert is_otlp_path("/", "POST")
    assert not is_otlp_path("/", "GET")
    assert is_otlp_path("/v1/traces", "GET")
