"""The judges that settings name, for commands and for the heartbeat beside a server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from hansard_collector.judges import Judges, JudgeSettings, judges_from
from hansard_web.app.config import Config, setting

JUDGE_SETTINGS: Final = ("classifier", "embedder", "extractor", "model_server", "script")


def judges_of(config: Config) -> Judges:
    """Return the classifier, the embedder and the extractor of a configuration.

    Keys of providers come from the environment. Nothing is sent here.
    """
    return judges_from(
        JudgeSettings(
            classifier=config.classifier,
            embedder=config.embedder,
            extractor=config.extractor,
            model_server=config.model_server,
            script=config.script,
            environment=os.environ,
        )
    )


def judge_arguments(config: Config) -> Iterator[tuple[str, str]]:
    """Yield the flags that give another process the same judges, with their values."""
    for name in JUDGE_SETTINGS:
        given = getattr(config, name)
        for one in given if isinstance(given, tuple) else (given,):
            if one is not None:
                yield setting(name).flag, str(one)
