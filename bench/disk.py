"""What a conversation takes on disk when every call resends all of it."""

from __future__ import annotations

from bench import processes
from bench.figures import Figure, below
from bench.load import Agents, Batch, conversation, send

_CONVERSATIONS = 5
_MOST_GROWTH = 1.3  # 1: linear in what is new; the bytes sent grow by nearly 2


def run(*, turns: int = 100) -> list[Figure]:
    """Store conversations of some and of twice as many turns, and compare bytes a turn."""
    short = _stored([conversation(seed, turns=turns // 2) for seed in range(_CONVERSATIONS)])
    long = _stored([conversation(seed, turns=turns) for seed in range(_CONVERSATIONS)])
    sent = conversation(0, turns=turns)
    profile = _stored([Agents(3).batches(20_000)])
    return [
        below(
            f"disk a turn, {turns} turns against {turns // 2}",
            long / short,
            "times",
            bar=_MOST_GROWTH,
            note=f"{short:,.0f} and {long:,.0f} bytes a turn",
        ),
        Figure("sent a turn", sum(len(b.body) for b in sent) / turns, "bytes"),
        Figure("disk a span, agent profile", profile, "bytes"),
    ]


def _stored(loads: list[list[Batch]]) -> float:
    """Return bytes on disk a span, the empty store taken off."""
    with processes.folder() as data:
        with processes.hansard(data):
            pass
        empty = processes.disk_bytes(data)
        with processes.hansard(data) as server:
            for batches in loads:
                send(batches, server.grpc, senders=1)  # turns come one after the other
        spans = sum(batch.spans for batches in loads for batch in batches)
        return (processes.disk_bytes(data) - empty) / spans
