"""Scorers by name: what each finds, that processes agree, and what is said where one is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.quality.conflicts import HALVES, Half
from bench.quality.paraphrases import answers_found
from hansard_compiler.compile.errors import InvalidInput, ScorerUnavailable
from hansard_compiler.compile.items import MICRO
from hansard_compiler.relevance import scorer_named
from tests.compiler.compiling import compiled, item

_TEXTS = [
    "Refunds are paid to the card within ten days.",
    "The credentials are replaced every month.",
    "Deliveries to islands take two days longer.",
    "Cats sleep all day.",
]
_QUESTION = "When do I get my money back?"


def test_a_word_is_found_by_the_pieces_it_shares_with_another() -> None:
    texts = ["The subscription ends in May.", "Dogs bark."]

    rated = list(scorer_named("pieces")("How do I unsubscribe?", texts))

    assert rated[0] > rated[1] == 0
    assert list(scorer_named("bm25")("How do I unsubscribe?", texts)) == [0, 0]


@pytest.mark.covers("CP-59")
def test_meaning_finds_what_shares_no_word_with_the_question() -> None:
    rated = list(scorer_named("embeddings")(_QUESTION, _TEXTS))

    assert rated.index(max(rated)) == 0
    assert list(scorer_named("bm25")(_QUESTION, _TEXTS)) == [0, 0, 0, 0]


@pytest.mark.covers("CP-59")
@pytest.mark.parametrize("half", HALVES)
def test_labelled_paraphrases_are_found_by_meaning_twice_as_often_as_by_words(half: Half) -> None:
    words = answers_found(scorer_named("bm25"), half)
    pieces = answers_found(scorer_named("pieces"), half)
    meaning = answers_found(scorer_named("embeddings"), half)

    assert pieces.of_three >= words.of_three
    assert meaning.of_three >= 0.6 * meaning.questions
    assert meaning.of_three > 1.7 * words.of_three


@given(query=st.text(max_size=40), texts=st.lists(st.text(max_size=60), max_size=8))
@pytest.mark.parametrize("name", ["pieces", "embeddings"])
def test_ratings_are_shares_and_repeatable(name: str, query: str, texts: list[str]) -> None:
    rate = scorer_named(name)

    rated = list(rate(query, texts))

    assert len(rated) == len(texts)
    assert all(isinstance(one, int) and 0 <= one <= MICRO for one in rated)
    assert rated == list(rate(query, texts))
    assert [rate(query, [text])[0] >= 0 for text in texts] == [True] * len(texts)


_RATE = """
import json, sys
from hansard_compiler.relevance import scorer_named
query, texts = json.load(sys.stdin)
print(json.dumps(list(scorer_named("embeddings")(query, texts))))
"""


@pytest.mark.slow
def test_a_very_long_query_rates_like_a_long_one_of_the_same_words() -> None:
    rate = scorer_named("embeddings")

    some, many = (list(rate("refund money back " * times, _TEXTS)) for times in (1_000, 60_000))

    assert all(abs(one - other) <= 100 for one, other in zip(some, many, strict=True))


@pytest.mark.slow
@pytest.mark.covers("CP-52")
@pytest.mark.parametrize("question", [_QUESTION, _QUESTION * 4_000])
def test_two_processes_with_other_numbers_of_threads_rate_alike_to_the_last_digit(
    question: str,
) -> None:
    texts = [f"{one} {at} " * (at % 40 + 1) for at, one in enumerate(_TEXTS * 40)]
    given_ = json.dumps([question, texts])

    found = {
        subprocess.run(
            [sys.executable, "-c", _RATE],
            input=given_,
            env={
                **os.environ,
                "OPENBLAS_NUM_THREADS": threads,
                "OMP_NUM_THREADS": threads,
                "RAYON_NUM_THREADS": threads,
                "PYTHONHASHSEED": threads,
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2", "4")
    }

    assert len(found) == 1
    assert len(json.loads(found.pop())) == len(texts)


_OFFLINE = """
import socket, sys
def refuse(*given, **more): raise AssertionError("the network was asked for")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
from hansard_compiler.relevance import scorer_named
print(list(scorer_named("embeddings")("money back", ["Refunds are paid."]))[0] > 0)
print("wordllama" in sys.modules, "requests" in sys.modules)
"""


@pytest.mark.slow
def test_the_model_is_read_where_it_is_installed_and_nothing_of_its_package_runs(
    tmp_path: Path,
) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "HF_HOME": str(tmp_path)}

    ended = subprocess.run(
        [sys.executable, "-c", _OFFLINE], env=env, capture_output=True, text=True, check=True
    )

    assert ended.stdout.split() == ["True", "False", "False"]
    assert list(tmp_path.iterdir()) == []


_WITHOUT = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
from hansard_compiler.compile.errors import ScorerUnavailable
from hansard_compiler.relevance import scorer_named
assert list(scorer_named("pieces")("a word", ["a word"])) == [1_000_000]
try:
    scorer_named("embeddings")
except ScorerUnavailable as why:
    print(why.code, why.extra, why)
"""


@pytest.mark.slow
@pytest.mark.parametrize("package", ["numpy", "tokenizers", "safetensors"])
def test_a_missing_extra_is_an_error_that_names_it(package: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _WITHOUT, package], capture_output=True, text=True, check=True
    )

    assert ended.stdout.startswith("scorer_unavailable embeddings the scorer 'wordllama/1' needs")
    assert "pip install 'hansard[embeddings]'" in ended.stdout
    assert f"{package} is missing" in ended.stdout


def test_other_weights_than_the_scorers_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hansard_compiler import relevance

    package = tmp_path / "wordllama"
    (package / "weights").mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "weights" / "l2_supercat_256.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(str(tmp_path))
    relevance._model.cache_clear()

    with pytest.raises(ScorerUnavailable, match="is another one than this scorer's"):
        scorer_named("embeddings")

    relevance._model.cache_clear()


@pytest.mark.parametrize("name", ["tfidf", "bm25/2", ""])
def test_a_scorer_that_there_is_not_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidInput, match="expected one of bm25, pieces, embeddings"):
        compiled([item("a")], compile_config={"relevance": {"scorer": name}})


def test_compression_keeps_the_sentence_that_answers_in_other_words() -> None:
    filler = "The meeting on that day was about the new office and its furniture. " * 12
    text = f"{filler}The signing key was replaced on 3 May. {filler}"
    asked = item("asked", "user_msg", "When did we swap the credentials?")

    def shown(scorer: str) -> Any:
        config = {"relevance": {"scorer": scorer}}
        result = compiled([item("doc", content=text), asked], budget=120, compile_config=config)
        return str(result.payload["messages"])

    assert "replaced on 3 May" in shown("embeddings")
