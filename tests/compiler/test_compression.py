"""Compression: what may be shortened, how, and that a failed attempt replaces nothing."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hansard_compiler.compile.compression import Extract
from hansard_compiler.compile.compression.extract import pieces_of
from hansard_compiler.compile.engine import CompileResult, compile_context
from hansard_compiler.compile.ports import Compressor, TokenCounter
from hansard_compiler.tokens.estimators import estimator_for
from tests.compiler.compiling import Quarter, compiled, item, ports, reasons, request

_LONG = "The total is rounded half even. " + "Nothing of note happened on that day. " * 40
_OLD, _NOW = "2026-03-04T08:00:00Z", "2026-03-04T11:00:00Z"
_ASKED = [
    item("first", "user_msg", "hello", created_at="2026-03-04T09:00:00Z"),
    item("then", "user_msg", "and now?", created_at="2026-03-04T10:00:00Z"),
    item("asked", "user_msg", "how is the total rounded?", created_at=_NOW),
]


def _squeezed(*items: Any, budget: int = 230, **more: Any) -> CompileResult:
    return compiled([*_ASKED, *items], budget=budget, **more)


def _receipt(result: CompileResult, item_id: str) -> Any:
    return next(one for one in result.receipts if one.item_id == item_id)


@pytest.mark.covers("CP-12", "CP-34", "CP-35", "CP-36", "CP-37", "TS-06")
@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("retrieval_doc", _LONG),
        ("assistant_msg", _LONG),
        ("user_msg", {"role": "user", "parts": [{"type": "text", "text": _LONG}]}),
        ("artifact", _LONG),
        ("summary", _LONG),
        ("tool_result", _LONG),
    ],
)
def test_long_material_and_old_talk_is_shortened_to_fit(kind: str, content: Any) -> None:
    result = _squeezed(item("long", kind, content, created_at=_OLD))

    receipt = _receipt(result, "long")
    assert (receipt.decision, receipt.reason) == ("compress", "compressed_to_fit")
    assert receipt.pass_name == "compress"
    assert 0 < receipt.final_tokens < receipt.original_tokens
    assert receipt.source == "file docs/long.md"
    assert receipt.original_ref != receipt.final_ref
    assert result.token_allocation["used"] <= 230
    stored = result.payloads()
    assert _LONG in stored[receipt.original_ref].decode()
    shown = stored[receipt.final_ref].decode()
    assert "The total is rounded half even." in shown
    assert "characters left out]" in shown
    assert shown in str(result.payload["messages"]).replace("\\n", "\n")


@pytest.mark.covers("CP-38", "CP-39", "CP-40", "CP-41", "CP-42", "TS-06")
@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("policy", {}),
        ("constraint", {"tags": ["soft"]}),
        ("code_diff", {}),
        ("retrieval_doc", {"tags": ["evidence"]}),
        ("tool_result", {"tags": ["evidence"]}),
        ("handoff", {"source_ref": {"source_type": "human_approval"}}),
        ("summary", {"source_ref": {"source_type": "human_approval"}}),
        ("tool_result", {"tags": ["approval"]}),
        ("tool_result", {"created_at": _NOW}),
        ("assistant_msg", {"created_at": _NOW}),
        ("memory", {}),
        ("file", {}),
        ("task", {}),
    ],
)
def test_what_must_stay_as_it_is_is_left_out_whole(kind: str, more: dict[str, Any]) -> None:
    made = item("long", kind, _LONG, **{"created_at": _OLD, **more})

    receipt = _receipt(_squeezed(made), "long")

    assert (receipt.decision, receipt.reason) == ("exclude", "over_budget")


@pytest.mark.covers("CP-38", "CP-39", "CP-40", "CP-41", "CP-42")
@given(
    kind=st.sampled_from(["user_msg", "constraint", "policy", "code_diff", "tool_result", "file"]),
    tags=st.sampled_from([["evidence"], ["approval"], ["blocking"], ["required", "evidence"]]),
    budget=st.integers(100, 900),
    words=st.integers(50, 300),
)
def test_no_budget_makes_the_exempt_shrink(
    kind: str, tags: list[str], budget: int, words: int
) -> None:
    exempt = item("exempt", kind, "word " * words, tags=tags, created_at=_OLD)
    others = [item("doc", content=_LONG), item("asked", "user_msg", "what?", created_at=_NOW)]
    config = {"weights": {"importance": 0.0}}

    result = compiled([exempt, *others], budget=budget + 400, compile_config=config)

    assert _receipt(result, "exempt").decision != "compress"
    assert _receipt(result, "asked").decision == "include"


@pytest.mark.covers("CP-58")
@given(text=st.text(max_size=600), target=st.integers(1, 60), query=st.text(max_size=20))
def test_an_extract_fits_and_says_nothing_new(text: str, target: int, query: str) -> None:
    counter = Quarter()

    made = Extract()(text, query=query, target_tokens=target, counter=counter)
    again = Extract()(text, query=query, target_tokens=target, counter=counter)

    assert made == again
    if made is not None:
        assert counter.count(made) <= target
        for line in made.split("\n"):
            assert line.strip() in text or "characters left out]" in line


def test_an_extract_keeps_what_was_asked_for_in_its_order() -> None:
    cats = "Cats sleep all day and dogs bark at them from the other side of the street. " * 3
    text = f"Opening line. {cats}Totals round half even. {cats}Refunds round up. The end."

    made = Extract()(text, query="round totals refunds", target_tokens=32, counter=Quarter())

    assert made is not None
    assert made.index("Totals round half even.") < made.index("Refunds round up.")
    assert "Cats" not in made


def test_a_text_without_sentences_is_still_cut_at_lines() -> None:
    text = "\n".join(f"line {at}: rounding {at % 7}" for at in range(20_000))

    made = Extract()(text, query="rounding", target_tokens=100, counter=Quarter())

    assert made is not None
    assert Quarter().count(made) <= 100


# --- compressors from outside -----------------------------------------------------------------


class _Fails:
    def __call__(self, text: str, *, query: str, target_tokens: int, counter: TokenCounter) -> str:
        raise TimeoutError("the model at https://user:hunter2@host did not answer")


class _Says:
    def __init__(self, made: str | None) -> None:
        self.made = made
        self.seen: list[str] = []

    def __call__(
        self, text: str, *, query: str, target_tokens: int, counter: TokenCounter
    ) -> str | None:
        self.seen.append(text)
        return self.made


def _with(compressor: Compressor, *items: Any, budget: int = 230) -> CompileResult:
    made = request([*_ASKED, *items], budget=budget)
    return compile_context(made, ports(compressor=compressor))


def test_a_compressor_given_is_asked_first() -> None:
    result = _with(_Says("Totals are rounded half even."), item("long", content=_LONG))

    receipt = _receipt(result, "long")
    assert receipt.decision == "compress"
    assert result.payloads()[receipt.final_ref] == b"Totals are rounded half even."


@pytest.mark.parametrize(
    ("compressor", "note"),
    [
        (_Fails(), "the compressor given raised TimeoutError; the built-in one was used"),
        (_Says(None), "the compressor given gave nothing; the built-in one was used"),
        (_Says("  \n"), "the compressor given gave nothing; the built-in one was used"),
        (_Says(_LONG), "gave 388 tokens"),
    ],
    ids=["raises", "none", "empty", "too long"],
)
def test_a_compressor_that_fails_replaces_nothing(compressor: Compressor, note: str) -> None:
    result = _with(compressor, item("long", content=_LONG))

    receipt = _receipt(result, "long")
    assert receipt.decision == "compress"
    assert note in receipt.note
    assert "hunter2" not in receipt.note
    assert "The total is rounded half even." in result.payloads()[receipt.final_ref].decode()


def test_what_cannot_be_shortened_is_left_out_with_what_it_lacked() -> None:
    one_word = item("long", content="x" * 4_000)

    receipt = _receipt(_squeezed(one_word), "long")

    assert (receipt.decision, receipt.reason) == ("exclude", "compression_failed")
    assert receipt.missed_by_tokens > 0
    assert receipt.final_ref is None


def test_a_group_leaves_whole_when_one_of_it_cannot_be_shortened() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "read", "arguments": {}}
    answer = {"type": "tool_result", "id": "c1", "content": "x" * 4_000}
    items = [
        item("call", "assistant_msg", {"role": "assistant", "parts": [call]}, created_at=_OLD),
        item("answer", "tool_result", {"role": "tool", "parts": [answer]}, created_at=_OLD),
    ]

    result = _squeezed(*items)

    assert reasons(result)["call"] == "group_withheld"
    assert reasons(result)["answer"] == "compression_failed"


def test_compression_can_be_turned_off() -> None:
    config = {"compression": {"enabled": False}}

    result = _squeezed(item("long", content=_LONG), compile_config=config)

    assert reasons(result)["long"] == "over_budget"


_WORDS = st.sampled_from(
    [
        "the",
        "total",
        "of",
        "an",
        "order",
        "refund",
        "customer",
        "paid",
        "by",
        "card",
        "on",
        "friday",
        "was",
        "rounded",
        "half",
        "even",
        "and",
        "sent",
        "to",
        "accounting",
        "again",
        "because",
        "nobody",
        "had",
        "seen",
        "it",
        "before",
        "nine",
    ]
)
_SENTENCES = st.lists(
    st.lists(_WORDS, min_size=3, max_size=18).map(lambda words: f"{' '.join(words)}. "),
    min_size=20,
    max_size=80,
)


@given(sentences=_SENTENCES, target=st.integers(min_value=60, max_value=400))
def test_an_extract_uses_nine_tenths_of_its_tokens_wherever_sentences_are_left(
    sentences: list[str], target: int
) -> None:
    text, counter = "".join(sentences), Quarter()

    made = Extract()(text, query="refund of the order", target_tokens=target, counter=counter)

    assert made is not None
    used = counter.count(made)
    assert used <= target
    assert used >= target * 9 // 10 or made.strip() == text.strip()


_NOUNS = ("order", "refund", "payment", "customer", "delivery", "report", "queue", "budget", "fee")
_CHINESE = "系统在三月四日收到订单并向客户发送了退款通知"
_MADE = {
    "one sentence": " ".join(_NOUNS * 200) + ".",
    "one sentence, then short ones": " ".join(_NOUNS * 200) + ". " + "The refund is paid. " * 5,
    "Chinese": "".join(f"{_CHINESE[at % 12 :]}。" for at in range(200)),
    "Chinese without a full stop": _CHINESE * 200,
    "Japanese": "".join(f"会議室{at}の予約は総務部が管理しています。" for at in range(300)),
    "Thai": "ระบบได้รับคำสั่งซื้อและส่งการแจ้งเตือนการคืนเงินไปยังลูกค้า" * 60,
    "Arabic": "وصل الطلب إلى النظام؟ تم إرسال إشعار رد المبلغ۔ " * 80,
    "Hindi": "प्रणाली को आदेश मिला और ग्राहक को सूचना भेजी गई। " * 100,
    "code": "\n".join(f"def f{at}(x):\n    return x * {at}\n" for at in range(200)),
    "minified code": "".join(f"function f{at}(a,b){{return a*{at}+b}};" for at in range(300)),
    "a table": "\n".join(f"| {at} | {_NOUNS[at % 9]} | {at * at} |" for at in range(300)),
    "a list": "\n".join(f"- {' '.join(_NOUNS[: at % 9 + 1])}" for at in range(300)),
    "one line of JSON": json.dumps([{"id": at, "of": _NOUNS[at % 9]} for at in range(300)]),
    "clauses": "; ".join(" ".join(_NOUNS[: at % 9 + 1]) for at in range(300)),
    "mixed": "# Title\n\n" + "The refund is paid by card. " * 20 + "\n```\n"
    + "\n".join(f"x{at} = {at}" for at in range(50)) + f"\n```\n{_CHINESE}。" * 200,
}  # fmt: skip


@pytest.mark.parametrize("target", [60, 100, 250, 700])
@pytest.mark.parametrize("name", _MADE)
def test_texts_of_any_form_are_shortened_to_nine_tenths_of_the_room(name: str, target: int) -> None:
    text = _MADE[name]
    for counter in (Quarter(), estimator_for("openai", "gpt-5")):
        assert counter.count(text) > target

        made = Extract()(text, query="refund of the order", target_tokens=target, counter=counter)

        assert made is not None
        assert target * 9 // 10 <= counter.count(made) <= target
        marks = re.compile(r"\[… \d+ characters left out\]\n?")
        assert all(part.strip() in text for part in marks.split(made))


@given(text=st.text(alphabet=st.sampled_from("ab .,;\n。ー้กé"), max_size=1_500))
def test_the_pieces_of_a_text_are_the_text(text: str) -> None:
    assert "".join(pieces_of(text)) == text


def test_a_megabyte_in_one_line_is_taken_apart_in_a_second() -> None:
    for text in ("a" * 1_000_000, _CHINESE * 50_000, "word " * 200_000, "a.b." * 250_000):
        began = time.process_time()
        assert "".join(pieces_of(text)) == text
        assert time.process_time() - began < 3  # 0.2 to 1 s on a machine with nothing else to do
