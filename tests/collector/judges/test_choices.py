"""Choices of judges as settings name them, and what is missing for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from hansard_collector.judges import Choice, JudgeMissing, JudgeSettings, judges_from
from hansard_collector.judges.choices import parse_choice, parse_classifier, parse_embedder
from hansard_compiler.errors import ConfigError
from hansard_web.app.config import judge_arguments, judges_of, load_config


def test_a_fresh_install_judges_offline() -> None:
    judges = judges_from(JudgeSettings())

    assert judges.for_task("topic").name == "offline/1"
    assert judges.for_task("contradiction").name == "offline/1"
    assert judges.need_embedder().name == "hashed-pieces/1"
    assert judges.need_extractor().name == "phrases/1"
    assert judges.missing == {}


@pytest.mark.parametrize("text", ["", "gpt-5", "openai:", "nobody:gpt-5", "on", "wordllama"])
def test_a_choice_that_cannot_be_meant_says_what_was_expected(text: str) -> None:
    with pytest.raises(ValueError, match="offline"):
        parse_choice(text)


def test_anthropic_has_no_embeddings() -> None:
    with pytest.raises(ValueError, match="no embeddings"):
        parse_embedder("anthropic:claude-haiku-4-5")


def test_a_model_name_may_hold_colons() -> None:
    assert parse_choice("openai_compatible:gemma3:1b").model == "gemma3:1b"


@pytest.mark.covers("IN-10")
def test_each_task_may_have_a_classifier_of_its_own(tmp_path: Path) -> None:
    config = load_config(
        {"data": str(tmp_path)},
        {
            "HANSARD_CLASSIFIER": "offline topic=openai_compatible:gemma3:1b irreversible=off",
            "HANSARD_MODEL_SERVER": "http://127.0.0.1:1/v1",
            "HANSARD_EXTRACTOR": "openai_compatible:large",
        },
    )

    judges = judges_of(config)

    assert judges.for_task("topic").name == "openai_compatible:gemma3:1b"
    assert judges.for_task("contradiction").name == "offline/1"
    assert judges.need_extractor().name == "openai_compatible:large"
    with pytest.raises(JudgeMissing, match="switched off"):
        judges.for_task("irreversible")


def test_two_classifiers_for_one_task_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'topic'"):
        load_config({"data": str(tmp_path)}, {"HANSARD_CLASSIFIER": "topic=offline topic=off"})


@pytest.mark.covers("MM-10")
@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ("openai:gpt-5", "OPENAI_API_KEY"),
        ("anthropic:claude-haiku-4-5", "ANTHROPIC_API_KEY"),
        ("openai_compatible:gemma3:1b", "`model_server`"),
        ("scripted:judge-1", "`script`"),
        ("off", "switched off"),
    ],
)
def test_what_is_missing_is_named_and_nothing_stands_in(choice: str, says: str) -> None:
    settings = JudgeSettings(
        classifier=(parse_classifier(choice),), extractor=parse_choice(choice), environment={}
    )

    judges = judges_from(settings)

    assert set(judges.tasks.values()) == {None}
    assert judges.extractor is None
    for missing in (lambda: judges.for_task("contradiction"), judges.need_extractor):
        with pytest.raises(JudgeMissing, match=says):
            missing()


def test_an_embedder_that_is_missing_says_why() -> None:
    judges = judges_from(JudgeSettings(embedder=Choice("model", "openai", "text-embedding-3")))

    with pytest.raises(JudgeMissing, match=r"the embedder is missing: .* needs OPENAI_API_KEY"):
        judges.need_embedder()


def test_another_process_gets_the_same_judges_by_its_arguments(tmp_path: Path) -> None:
    given = {
        "data": str(tmp_path),
        "classifier": ("offline", "topic=scripted:judge-1"),
        "embedder": "off",
        "script": str(tmp_path / "script.json"),
    }
    config = load_config(given, {})

    told = list(judge_arguments(config))

    again: dict[str, object] = {"data": str(tmp_path), "classifier": []}
    for flag, value in told:
        name = flag.removeprefix("--").replace("-", "_")
        if name == "classifier":
            again["classifier"] = [*again["classifier"], value]  # type: ignore[misc]  # a list
        else:
            again[name] = value
    assert load_config(again, {}) == config
