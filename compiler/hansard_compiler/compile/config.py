"""Every number a compile may be tuned by, with its default. Stored whole with each compile."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WithJsonSchema

from hansard_compiler.models.json_schema import A_NUMBER

Sensitivity = Literal["public", "internal", "restricted", "secret"]
CompilerVersion = Literal[1, 2]
FIRST_VERSION: CompilerVersion = 1
CURRENT_VERSION: CompilerVersion = 2
SENSITIVITIES: tuple[Sensitivity, ...] = ("public", "internal", "restricted", "secret")


def _three_decimals(weight: float) -> float:
    if abs(weight * 1000 - round(weight * 1000)) > 1e-6:
        raise ValueError("takes at most three decimals, so that scores add up exactly")
    return weight


Weight: TypeAlias = Annotated[
    float, Field(ge=0, le=1000, allow_inf_nan=False), AfterValidator(_three_decimals), A_NUMBER
]
Share: TypeAlias = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False), A_NUMBER]
Seconds: TypeAlias = Annotated[int, Field(gt=0), A_NUMBER]


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Weights(_Settings):
    """What each term counts. `staleness` and `risk` are subtracted."""

    relevance: Weight = 1.0
    freshness: Weight = 0.25
    trust: Weight = 0.3
    importance: Weight = 0.4
    dependency: Weight = 0.35
    pin: Weight = 1.5
    policy_priority: Weight = 0.0  # at 0 the eight terms alone make the score
    staleness: Weight = 0.3
    risk: Weight = 0.6


class RiskBySensitivity(_Settings):
    """The risk an item carries for its sensitivity alone."""

    public: Share = 0.0
    internal: Share = 0.0
    restricted: Share = 0.3
    secret: Share = 1.0


class Compression(_Settings):
    """When and how far items are shortened."""

    enabled: bool = True
    ratio: Annotated[float, Field(gt=0, lt=1), A_NUMBER] = 0.4  # of the original, at most
    min_tokens: Annotated[int, Field(gt=0), A_NUMBER] = 24  # below this nothing useful is left
    long_tokens: Annotated[int, Field(gt=0), A_NUMBER] = (
        80  # an item shorter than this is taken or left
    )
    fresh_turns: Annotated[int, Field(ge=0), A_NUMBER] = 2  # user turns that count as current


# Scorers by name and version. Another version rates otherwise; its name says so.
BM25, PIECES, EMBEDDINGS = "bm25/1", "pieces/1", "wordllama/1"
SCORERS = {"bm25": BM25, "pieces": PIECES, "embeddings": EMBEDDINGS}


def scorer_name(name: str) -> str:
    """Return a scorer's name with its version; raises ValueError for one that there is not."""
    found = SCORERS.get(name, name)
    if found not in SCORERS.values():
        known = ", ".join([*SCORERS, *SCORERS.values()])
        raise ValueError(f"found {name[:40]!r}, expected one of {known}")
    return found


SCORER_WORDS = WithJsonSchema(
    {"type": "string", "enum": list(dict.fromkeys([*SCORERS, *SCORERS.values()]))}
)


class Relevance(_Settings):
    """Which scorer rates, and BM25's two constants. 0.1's scorer is not written: 0.1 wrote none."""

    scorer: Annotated[
        str, AfterValidator(scorer_name), SCORER_WORDS, Field(exclude_if=lambda name: name == BM25)
    ] = PIECES
    k1: Annotated[float, Field(ge=0, le=10), A_NUMBER] = 1.2
    b: Share = 0.75


class CompileConfig(_Settings):
    """How to compile. `scope`, `agent`, `task_type` and `environment` name for whom."""

    # Which passes decide: 1 are those of 0.1, and are not written, as 0.1 did not write them.
    compiler_version: Annotated[
        CompilerVersion, Field(exclude_if=lambda version: version == FIRST_VERSION)
    ] = CURRENT_VERSION
    weights: Weights = Weights()
    risk: RiskBySensitivity = RiskBySensitivity()
    relevance: Relevance = Relevance()
    compression: Compression = Compression()
    freshness_half_life_s: Seconds = 86_400
    stale_after_s: Seconds = 604_800
    min_score: Annotated[float, Field(ge=-10_000, le=10_000), A_NUMBER] | None = (
        None  # floor; None: no floor
    )
    required_kinds: list[str] = ["system", "tool_schema"]
    pinned: list[str] = []  # item ids, beside those tagged `pinned`
    previous_selected: list[str] = []  # item ids that went in last turn
    hysteresis_margin: Weight = 0.1  # what a newcomer must be better by, in points
    cycles: Literal["refuse", "together"] = "refuse"
    detect_conflicts: bool = True
    supersede_trust_gap: Share = 0.3  # a correction less trusted by more than this does not win
    max_item_bytes: Annotated[int, Field(gt=0), A_NUMBER] = 8_388_608
    clearance: Sensitivity = "restricted"  # the most sensitive an item may be to be shown
    scope: dict[str, Any] = {}
    agent: str | None = None
    task_type: str | None = None
    environment: str | None = None
