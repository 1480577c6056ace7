"""A compile from end to end: twelve passes, five outputs, a receipt for everything."""

from __future__ import annotations

import pytest

from hansard_compiler.passes import PASSES
from tests.compiler.compiling import compiled, item

_TWELVE = [
    "normalize", "validate", "dedupe", "dependencies", "conflicts", "score", "budget", "compress",
    "policy", "layout", "render", "record",
]  # fmt: skip


@pytest.mark.covers("CP-03")
def test_the_twelve_passes_run_in_their_order_and_say_so() -> None:
    result = compiled([item("a"), item("b", "user_msg", "what is a?")])

    assert [name for name, _ in PASSES] == _TWELVE
    assert [report.name for report in result.state.reports] == _TWELVE
    assert [(one["number"], one["name"]) for one in result.context().passes] == list(
        enumerate(_TWELVE, start=1)
    )


def test_every_pass_says_something_of_every_item_it_saw() -> None:
    items = [item("a"), item("b", ttl_seconds=0), item("c", "user_msg", "what is a?")]

    result = compiled(items)

    for report in result.state.reports:
        assert [item_id for item_id, _ in report] == list(report.seen)
    assert result.state.reports[0].seen == ("a", "b", "c")
    assert result.state.reports[2].seen == ("a", "c")
    assert [one["pass"] for one in result.trail("b")] == ["normalize", "validate"]
    assert [one["pass"] for one in result.trail("a")] == _TWELVE
