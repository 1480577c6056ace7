"""The same load against another backend that is running on this machine.

    pip install arize-phoenix && phoenix serve        # in an environment of its own
    python -m bench peer --peer phoenix --target 127.0.0.1:4317

Nothing of a peer is installed or started here: it is measured as its own documentation starts it.
"""

from __future__ import annotations

from bench.figures import Figure
from bench.load import Agents, send


def run(*, name: str, target: str, protocol: str, spans: int = 5_000) -> list[Figure]:
    """Send the agent profile to a server that runs already, and time its answers.

    Only what it acknowledges is counted; whether that is stored by then is the peer's own affair.
    """
    sent = send(Agents(0).batches(spans), target, protocol=protocol)
    return [
        Figure(
            f"{name}: spans acknowledged",
            sent.per_second,
            "spans/s",
            note=f"{sent.spans:,} of {spans:,}, {sent.failed} requests failed",
        )
    ]
