"""Roots as the boundary of a workspace: what is inside, what is not, and every trick in between."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard.workspace import workspace
from hansard_compiler.compile.errors import InvalidInput
from hansard_compiler.mcp_context import McpBoundary, McpWorkspace

ROOT = [{"uri": "file:///srv/desk", "name": "desk"}]
DESK = McpWorkspace.of(ROOT, resolve=str)


@pytest.mark.parametrize(
    "uri",
    [
        "file:///srv/desk",
        "file:///srv/desk/",
        "file:///srv/desk/orders.md",
        "FILE://localhost/srv/desk/a/b.md",
        "file:/srv/desk/orders.md",
        "file:///srv/./desk//orders.md",
        "file:///srv/desk/with%20space.md",
        "file:///srv/desk/%252e%252e/passwd",  # a name with a percent sign: decoded once
        "file:///srv/desk/..hidden",
    ],
)
def test_what_is_inside_is_taken(uri: str) -> None:
    assert DESK.refusal(uri) is None


@pytest.mark.covers("MC-09")
@pytest.mark.parametrize(
    ("uri", "reason"),
    [
        ("file:///etc/passwd", McpBoundary.OUTSIDE),
        ("file:///srv/desktop/a", McpBoundary.OUTSIDE),
        ("file:///srv", McpBoundary.OUTSIDE),
        ("file:///WORK/desk/a", McpBoundary.OUTSIDE),
        ("file:///srv/desk/../secret", McpBoundary.UNCLEAR),
        ("file:///srv/desk/%2e%2e/secret", McpBoundary.UNCLEAR),
        ("file:///srv/desk/%2E./secret", McpBoundary.UNCLEAR),
        ("file:///srv/desk%2Fa", McpBoundary.UNCLEAR),
        ("file:///srv/desk/..%5c..%5csecret", McpBoundary.UNCLEAR),
        ("file:///srv/desk/a\\..\\b", McpBoundary.UNCLEAR),
        ("file:///srv/desk/a%00.md", McpBoundary.UNCLEAR),
        ("file:///srv/desk/a%0a.md", McpBoundary.UNCLEAR),
        ("file:///srv/desk/%c0%ae%c0%ae/a", McpBoundary.UNCLEAR),
        ("file:///srv/desk/a%2", McpBoundary.UNCLEAR),
        ("file:///srv/desk/a%zz", McpBoundary.UNCLEAR),
        ("file:///srv/desk/a?x=/etc", McpBoundary.UNCLEAR),
        ("file:///srv/desk/a#b", McpBoundary.UNCLEAR),
        ("file:srv/desk/a", McpBoundary.UNCLEAR),
        ("file://server/srv/desk/a", McpBoundary.OTHER_HOST),
        ("file://127.0.0.1/srv/desk/a", McpBoundary.OTHER_HOST),
        ("https://example.com/srv/desk/a", McpBoundary.NO_FILE),
        ("memo://tone", McpBoundary.NO_FILE),
        ("/srv/desk/a", McpBoundary.NO_FILE),
        (" file:///srv/desk/a", McpBoundary.NO_FILE),
        ("", McpBoundary.NO_FILE),
    ],
)
def test_what_is_outside_is_refused_with_a_reason(uri: str, reason: McpBoundary) -> None:
    refused = DESK.refusal(uri)

    assert refused is not None
    assert (refused.uri, refused.reason) == (uri, reason)
    assert refused.detail


def test_without_roots_nothing_is_inside() -> None:
    refused = McpWorkspace.of([], resolve=str).refusal("file:///srv/desk/a")

    assert refused is not None
    assert refused.reason is McpBoundary.OUTSIDE


def test_another_scheme_is_permitted_by_name_and_never_opens_files() -> None:
    desk = McpWorkspace.of(ROOT, resolve=str, schemes=["MEMO", "file"])

    assert desk.refusal("memo://tone") is None
    assert desk.refusal("note://tone") is not None
    assert desk.refusal("file:///etc/passwd") is not None


@pytest.mark.parametrize(
    "uri", ["https://example.com/", "file://other/a", "file:///a/../b", "desk"]
)
def test_a_root_that_is_no_folder_of_this_machine_is_an_error(uri: str) -> None:
    with pytest.raises(InvalidInput):
        McpWorkspace.of([{"uri": uri}], resolve=str)
    with pytest.raises(InvalidInput):
        McpWorkspace.of([{"name": "nowhere"}], resolve=str)


@pytest.mark.covers("MC-09")
def test_a_symlink_that_leads_out_is_refused_and_one_that_stays_is_not(tmp_path: Path) -> None:
    desk, secret = tmp_path / "desk", tmp_path / "secret"
    desk.mkdir()
    secret.mkdir()
    (desk / "out").symlink_to(secret)
    (desk / "in").symlink_to(desk)
    (tmp_path / "alias").symlink_to(desk)
    inside = workspace([{"uri": desk.as_uri()}])
    by_alias = workspace([{"uri": (tmp_path / "alias").as_uri()}])

    refused = inside.refusal((desk / "out" / "key").as_uri())

    assert refused is not None
    assert refused.reason is McpBoundary.OUTSIDE
    assert str(secret.resolve()) in refused.detail
    assert inside.refusal((desk / "in" / "a.md").as_uri()) is None
    assert by_alias.refusal((desk / "a.md").as_uri()) is None


@given(st.text(min_size=1, max_size=40))
def test_no_name_leads_out(name: str) -> None:
    encoded = quote(name.encode("utf-8", "surrogatepass"), safe="")
    for uri in (f"file:///srv/desk/{name}", f"file:///srv/desk/{encoded}"):
        if DESK.refusal(uri) is None:
            assert ".." not in name.split("/")
            assert "\x00" not in name
