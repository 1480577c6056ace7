"""Whether an answer says only what its sources say: checked by the program, not by a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_SENTENCE = re.compile(r"([^.\[\]]+?)\s*\[(?:memory: )?([^\[\]]+)\]")
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class Claim:
    """A sentence of an answer, and the source it names."""

    sentence: str
    source: str

    @property
    def subject(self) -> str:
        """What a sentence is about: what stands before its first number."""
        return _NUMBER.split(self.sentence)[0].strip().removesuffix(" is")


def claims(answer: str) -> list[Claim]:
    """Return what an answer claims, as in `The tower is 41 metres high [coast-survey].`"""
    return [Claim(said.strip(), source) for said, source in _SENTENCE.findall(answer)]


def problems(answer: str, shown: Mapping[str, str]) -> list[str]:
    """Say what is wrong; `shown` is the text of every source that was in the prompt, by name."""
    found = claims(answer)
    if not found:
        return ["the answer names no source"]
    return [problem for claim in found for problem in _of(claim, shown)]


def _of(claim: Claim, shown: Mapping[str, str]) -> Iterator[str]:
    text = shown.get(claim.source)
    if text is None:
        yield f"[{claim.source}] is not among the sources you were given"
        return
    for number in _NUMBER.findall(claim.sentence):
        if number not in _NUMBER.findall(text):
            yield f"[{claim.source}] does not say {number}"
