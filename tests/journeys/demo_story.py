"""What a demo left behind, read back over its API."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from hansard_web.demo.coding.coder import SCRIPT


@dataclass(frozen=True)
class Story:
    """One demo, after its agents have ended."""

    address: str
    printed: str  # on its standard output

    @property
    def links(self) -> list[str]:
        """The addresses of the printed questions, in order."""
        questions = self.printed.partition("programs counted.")[2].partition("in another terminal")[
            0
        ]
        return [one for one in questions.split() if one.startswith(f"{self.address}/")]

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self.address}{path}", timeout=60) as response:
            return json.load(response)

    @property
    def runs(self) -> list[str]:
        """The two runs of the agent, the first one first."""
        items = self.get("/v1/runs?agent=coding-agent&limit=50")["items"]
        own = [run for run in items if run["name"] == "invoke_agent coding-agent"]
        return [run["run_id"] for run in sorted(own, key=lambda run: run["started_at"])][:2]

    def steps(self, run_id: str, role: str) -> list[dict[str, Any]]:
        items = self.get(f"/v1/runs/{run_id}/steps?limit=500")["items"]
        return [step for step in items if step["role"] == role]

    def receipts(self, run_id: str, turn: int) -> dict[str, dict[str, Any]]:
        """What became of each candidate of one turn, by item id."""
        compiled = self.steps(run_id, "compile")[turn]
        told = self.get(f"/v1/steps/{compiled['step_id']}")["receipts"]
        return {one["item_id"]: one for one in told}

    def payload(self, ref: str) -> bytes:
        with urllib.request.urlopen(f"{self.address}/v1/payloads/{ref}", timeout=60) as response:
            data: bytes = response.read()
            return data

    def refusal(self, step_id: str) -> str | None:
        """The typed reason why a step would not be replayed; None: it would."""
        body = json.dumps({"step_id": step_id, "script": json.loads(SCRIPT.read_bytes())}).encode()
        request = urllib.request.Request(
            f"{self.address}/v1/replay/preview",
            body,
            {"content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                refused = json.load(response)["refusal"]
                return None if refused is None else str(refused["reason"])
        except urllib.error.HTTPError as error:
            answer = json.load(error)["error"]
            assert answer["code"] == "not_replayable"
            return str(answer["details"]["reason"])

    def call(self, run_id: str, turn: int) -> str:
        """The model call of one turn."""
        return str(self.steps(run_id, "llm")[turn]["step_id"])
