from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import re2
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hansard_compiler.redaction.checks import is_sensitive_key, latin1
from hansard_compiler.redaction.prefilter import base64_spellings
from hansard_compiler.redaction.redactor import Redactor
from hansard_compiler.redaction.rules import PII_RULES, SECRET_RULES
from tests.compiler.planted import (
    SECRETS,
    Planted,
    base64_texts,
    disguised,
    json_texts,
    reveals,
    secrets,
)

REPOSITORY = Path(__file__).parents[2]
REDACTOR = Redactor(b"a key of this test only, 32 bytes")
OPENAI = "sk-proj-" + "aB3dE6gH9jK2mN5pQ8rS"

slow = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


def redact(text: str, **more: str) -> str:
    return REDACTOR.redact_text(text, **more).text


def test_every_rule_has_secrets_to_be_tested_with() -> None:
    assert set(SECRETS) == {rule.name for rule in SECRET_RULES}


@pytest.mark.covers("TS-07")
@pytest.mark.parametrize("rule", sorted(SECRETS))
def test_a_planted_secret_leaves_the_marker_of_its_rule(rule: str) -> None:
    @settings(max_examples=25, deadline=None)
    @given(SECRETS[rule])
    def check(planted: Planted) -> None:
        redacted = REDACTOR.redact_text(f"begin {planted.text} end")

        assert planted.secret not in redacted.text
        assert f"‹redacted:{rule}:" in redacted.text
        assert rule in {finding.rule for finding in redacted.findings}

    check()


@slow
@given(disguised())
def test_no_disguise_saves_a_secret(planted: Planted) -> None:
    redacted = REDACTOR.redact_text(planted.text)

    assert redacted.findings
    assert not reveals(redacted.text, planted.secret)


@slow
@given(disguised(), st.binary(max_size=40), st.binary(max_size=40))
def test_the_scan_of_raw_bytes_never_overlooks_what_a_rule_would_find(
    planted: Planted, before: bytes, after: bytes
) -> None:
    assert REDACTOR.scan_bytes(before + planted.text.encode() + after)


@slow
@given(disguised())
def test_redacting_twice_changes_nothing(planted: Planted) -> None:
    once = redact(planted.text)

    assert REDACTOR.redact_text(once) == (once, [])


@slow
@given(st.text(), st.sampled_from(["", "password", "authorization", "note"]))
def test_redacting_any_text_twice_changes_nothing(text: str, key: str) -> None:
    once = redact(text, key=key)

    assert redact(once, key=key) == once


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return [shape(child) for child in value.values()]
    if isinstance(value, list):
        return [shape(child) for child in value], "list"
    return "text" if isinstance(value, str) else value


@st.composite
def json_documents(draw: st.DrawFn) -> str:
    """JSON with secrets among its values, keys and inner JSON texts, in an encoder's style."""
    planted = secrets().map(lambda one: one.text)
    inner = planted.flatmap(json_texts) | planted.flatmap(base64_texts)
    words = st.text(max_size=8) | planted | inner | st.sampled_from(["\\", '"', '\\"', "a\\"])
    names = st.text(max_size=6) | st.sampled_from(["password", "api_key", "token"]) | planted
    value = st.recursive(
        words | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
        lambda children: st.lists(children, max_size=4) | st.dictionaries(names, children),
        max_leaves=8,
    )
    text = json.dumps(draw(value), ensure_ascii=draw(st.booleans()))
    if draw(st.booleans()):
        text = text.replace("w", "\\u0077").replace("k", "\\u006b")
    return text


@pytest.mark.slow
@slow
@given(json_documents(), st.sampled_from(["", "password"]))
@example('{"pass\\u0077ord": "abc12345XYZ\\\\", "b": "cdefg123"}', "")
@example('{"password": 12345678e12, "a": "password=\'x1234567", "b": "c\'"}', "")
@example('{"pass\\u0077ord": "\\\\\\"\\\\", "token": "x1\\\\", "n": [1, "a8b7c6d5e4"]}', "")
@example('"a1b2c3d4e5"', "password")
def test_json_stays_json_of_the_same_structure(text: str, key: str) -> None:
    redacted = redact(text, key=key)

    assert shape(json.loads(redacted)) == shape(json.loads(text))


def test_json_with_too_many_secrets_becomes_one_json_string() -> None:
    text = json.dumps([OPENAI + str(i) for i in range(1_001)])

    redacted = REDACTOR.redact_text(text)

    assert json.loads(redacted.text).startswith("‹redacted:everything:")
    assert [(finding.rule, finding.count) for finding in redacted.findings] == [("everything", 1)]


def test_a_thousand_secrets_are_still_told_apart() -> None:
    text = " ".join(OPENAI + str(i) for i in range(1_000))

    redacted = REDACTOR.redact_text(text)

    assert len(redacted.findings) == 1_000
    assert len(redacted.text.split()) == 1_000


def test_equal_secrets_look_equal_only_under_equal_keys() -> None:
    other = Redactor(b"another key of this test, 32 bytes")

    first, second = redact(f"{OPENAI} {OPENAI}").split()

    assert first == second == redact(f'"{OPENAI}"').strip('"')
    assert other.redact_text(OPENAI).text != first


def test_a_secret_has_one_fingerprint_in_clear_in_json_and_in_base64() -> None:
    encoded = base64.b64encode(OPENAI.encode()).decode()

    markers = {redact(OPENAI), redact(encoded), redact(json.dumps(OPENAI)).strip('"')}

    assert len(markers) == 1


@given(
    st.sampled_from([rule.name for rule in (*SECRET_RULES, *PII_RULES)]), st.integers(0, 2**48 - 1)
)
def test_markers_never_match_a_rule(rule: str, fingerprint: int) -> None:
    marker = f"‹redacted:{rule}:{fingerprint:012x}›"
    in_place = [marker, f"password={marker}", f"postgres://u:{marker}@h", f'"token": "{marker}"']

    assert not REDACTOR.scan_bytes(marker.encode())
    assert [redact(text) for text in in_place] == in_place
    assert redact(marker, key="password") == marker


@pytest.mark.parametrize(
    "key",
    ["password", "db.password", "OPENAI_API_KEY", "x-api-key", "apiKey", "clientSecret",
     "http.request.header.authorization", "access_token", "token", "API_KEY_2", "credentials"],
)  # fmt: skip
def test_a_telling_name_makes_a_secret_of_its_value(key: str) -> None:
    assert redact("k3Jd92mXq7Lp04vTzz", key=key).startswith("‹redacted:assignment:")


@pytest.mark.parametrize(
    "key",
    ["gen_ai.usage.input_tokens", "max_tokens", "next_page_token", "api_key_hash", "eos_token",
     "gen_ai.server.time_to_first_token", "public_key", "monkey", "secretary", ""],
)  # fmt: skip
def test_other_names_do_not(key: str) -> None:
    assert not is_sensitive_key(key.encode())
    assert redact("k3Jd92mXq7Lp04vTzz", key=key) == "k3Jd92mXq7Lp04vTzz"


@pytest.mark.parametrize(
    "text",
    [
        "4bf92f3577b34da6a3ce929d0e0e4736",
        "00f067aa0ba902b7",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "123e4567-e89b-12d3-a456-426614174000",
        "call_e8d509b2ce77e1efc5e3da2cAbCdEfGh",
        "toolu_01A09q90qw90lq917835lq9",
        "chatcmpl-8205a3027f7f80e8205a3027f7f80e",
        "resp_bd172f7d149d43d95e5c4b9e0123456789",
        "msg_013Zva2CMHLNnXjNJJKqJ2EF",
        "task-123e4567-e89b-12d3-a456-426614174000",
        "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "password=${DB_PASSWORD} token=$TOKEN api_key=<your-key-1> secret={{ secrets.KEY_1 }}",
        "https://user:password@example.com/ postgres://app:${PW}@db https://u:***@h",
        "self.api_key = settings.openai_api_key_v2",
        "token = tokenizer.b64decode(value)",
        'max_tokens=4096, "token": "tokenization2", eos_token: "s1234567890abcdef"',
        "Basic authentication1 with bearer tokens-of-letters-only",
        "sk-learn-like-names-are-not-keys-at-all",
        "C:\\new\\u00e9\\d+\\w \\u12",
    ],
)
def test_what_only_looks_random_stays(text: str) -> None:
    assert REDACTOR.redact_text(text) == (text, [])


LETTERS = ["XDFtglLVxSmTrCmHYaIA", "qLzWvKxPbNhGtRfJ", "TnVqBxKdWzLm"]


@pytest.mark.parametrize("letters", LETTERS)
def test_letters_in_no_order_of_words_are_a_secret_under_a_telling_name(letters: str) -> None:
    marker = redact(letters, key="db.password")

    assert marker.startswith("‹redacted:assignment:")
    assert redact(f'{{"password": "{letters}"}}') == f'{{"password": "{marker}"}}'
    assert redact(f"PASSWORD={letters}") == f"PASSWORD={marker}"
    assert redact(letters) == letters


@pytest.mark.parametrize(
    "words",
    ["ResetInstructions", "getAWSAccessKeyId", "passwordResetToken", "XMLHttpRequest",
     "SecretManagerServiceClient", "toDoListIdByUser", "DonaudampfschifffahrtsKapitän",
     "correcthorsebatterystaple", "CORRECTHORSEBATTERY", "Неверныйтокендоступа"],
)  # fmt: skip
def test_words_are_none(words: str) -> None:
    assert redact(f"password: {words}") == f"password: {words}"
    assert redact(words, key="password") == words


def test_nothing_is_found_in_the_sources_of_this_repository() -> None:
    """Tests plant secrets on purpose and are left out; rules spell them as patterns and are in."""
    roots = ["compiler", "store", "collector", "instrumentation", "web", "bench"]
    sources = [path for root in roots for path in (REPOSITORY / root).rglob("*.py")]

    found = {
        str(path): redacted.findings
        for path in sources
        if (redacted := REDACTOR.redact_bytes(path.read_bytes())).findings
    }

    assert sources
    assert found == {}


def test_private_keys_go_whole_even_when_cut_short() -> None:
    text = "log: -----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIrYSSNQFaA2Hwf1duRSxKtLYX5CB04fSeQ6"

    assert redact(text).startswith("log: ‹redacted:pem:")
    assert len(redact(text)) < 40


def test_wide_texts_are_read_in_their_charset() -> None:
    data = f"key {OPENAI}".encode("utf-16-le")

    redacted = REDACTOR.redact_bytes(data, "text/plain; charset=utf-16le")

    assert redacted.data.decode("utf-16-le").startswith("key ‹redacted:openai:")


def test_bytes_that_are_no_text_are_searched_as_they_are() -> None:
    data = b"\xff\xfe\x00" + OPENAI.encode() + b"\x00\x9c"

    redacted = REDACTOR.redact_bytes(data, "application/octet-stream")

    assert OPENAI.encode() not in redacted.data
    assert redacted.data.startswith(b"\xff\xfe\x00")


def test_lone_surrogates_survive() -> None:
    assert redact("\ud800 " + OPENAI).startswith("\ud800 ‹redacted:openai:")


def test_personal_data_is_found_only_when_asked_for() -> None:
    text = "write to ada.lovelace@example.org or call +44 20 7946 0958"
    personal = Redactor(b"k" * 32, rules=(*SECRET_RULES, *PII_RULES))

    redacted = personal.redact_text(text)

    assert redact(text) == text
    assert [finding.rule for finding in redacted.findings] == ["email", "phone"]
    assert "ada" not in redacted.text
    assert "7946" not in redacted.text


@given(st.binary(min_size=3, max_size=9), st.binary(max_size=4), st.binary(max_size=4))
def test_a_spelling_is_found_at_every_offset(word: bytes, before: bytes, after: bytes) -> None:
    spellings = base64_spellings(tuple(frozenset((byte,)) for byte in word))
    encoded = base64.b64encode(before + word + after)

    found = [re2.compile(spelling, options=latin1()).search(encoded) for spelling in spellings]

    assert any(found)
