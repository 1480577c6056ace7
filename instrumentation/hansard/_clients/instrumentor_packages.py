"""Which packages watch the official clients of models, and what makes them send messages.

One table: the empty page, the page of a run without messages, `hansard.instrument()` and the
documents take their lines from here. `make test-peers` runs them with pinned packages,
`make test-newest` with those of the day.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_CAPTURE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@dataclass(frozen=True, slots=True)
class Instrumentor:
    """A package that works with the client of one library."""

    library: str
    language: str  # as `telemetry.sdk.language` says it
    package: str
    page: str  # of docs/connect


@dataclass(frozen=True, slots=True)
class Setup:
    """What a shell needs so that a program is recorded with nothing changed in it."""

    language: str
    install: tuple[str, ...]  # a command, and what it installs
    run: tuple[str, ...]  # a command with its options, and the program
    content: str = ""  # NAME=value without which no messages are sent; "" where none is needed
    file: str = ""  # the name of a file that `run` reads, and
    text: str = ""  # what it holds

    @property
    def lines(self) -> tuple[str, ...]:
        """The lines, as a shell takes them."""
        switch = (f"export {self.content}",) if self.content else ()
        return " ".join(self.install), *switch, " ".join(self.run)


@dataclass(frozen=True, slots=True)
class ContentSwitch:
    """How a sender is made to send messages; by what it calls its instrumentation scope."""

    sender: str
    scopes: tuple[str, ...]  # prefixes
    lines: str  # for the shell that the program is started from


INSTRUMENTORS: Final = (
    Instrumentor("openai", "python", "opentelemetry-instrumentation-genai-openai", "openai-python"),
    Instrumentor(
        "anthropic", "python", "opentelemetry-instrumentation-genai-anthropic", "anthropic-python"
    ),
    Instrumentor(
        "openai", "nodejs", "@arizeai/openinference-instrumentation-openai", "openai-node"
    ),
    Instrumentor(
        "anthropic", "nodejs", "@arizeai/openinference-instrumentation-anthropic", "anthropic-node"
    ),
)


def package_for(library: str, language: str = "python") -> str | None:
    """Return the package that works with a library's client; None for one that is not listed."""
    for one in INSTRUMENTORS:
        if (one.library, one.language) == (library, language):
            return one.package
    return None


PYTHON: Final = Setup(
    "python",
    install=(
        "pip", "install", "opentelemetry-distro", "opentelemetry-exporter-otlp",
        *(one.package for one in INSTRUMENTORS if one.language == "python"),
    ),
    content=f"{_CAPTURE}=span_only",
    run=("opentelemetry-instrument", "python", "my_agent.py"),
)  # fmt: skip
# OpenTelemetry's own for Node takes `openai` before version 7 only, and what is loaded by `import`
# only behind an experimental option of Node; it is silent about both.
NODE: Final = Setup(
    "nodejs",
    install=(
        "npm", "install", "@opentelemetry/api", "@opentelemetry/sdk-node",
        "@arizeai/openinference-instrumentation-openai",
    ),
    run=("node", "--import", "./tracing.mjs", "my_agent.js"),
    file="tracing.mjs",
    text="""\
import { OpenAIInstrumentation } from "@arizeai/openinference-instrumentation-openai";
import { NodeSDK } from "@opentelemetry/sdk-node";
import OpenAI from "openai";

const watched = new OpenAIInstrumentation();
const sdk = new NodeSDK({ instrumentations: [watched] });
sdk.start();
watched.manuallyInstrument(OpenAI);
process.once("beforeExit", () => sdk.shutdown());
process.once("uncaughtException", async (error) => {
  console.error(error);
  await sdk.shutdown(); // else spans that are queued are lost
  process.exit(1);
});
""",
)  # fmt: skip

_CONTENT_SWITCHES: Final = (
    ContentSwitch(
        "OpenTelemetry's instrumentation for Python",
        ("opentelemetry.instrumentation.genai.",),
        f"export {PYTHON.content}",
    ),
    ContentSwitch(
        "opentelemetry-instrumentation-openai-v2",
        ("opentelemetry.instrumentation.openai_v2", "opentelemetry.instrumentation.vertexai"),
        f"export {_CAPTURE}=true",
    ),
    ContentSwitch(
        "OpenTelemetry's instrumentation for Node",
        ("@opentelemetry/instrumentation-",),
        f"export {_CAPTURE}=true",
    ),
    ContentSwitch(
        "OpenInference",
        ("openinference.", "@arizeai/openinference-"),
        "export OPENINFERENCE_HIDE_INPUTS=false OPENINFERENCE_HIDE_OUTPUTS=false",
    ),
    ContentSwitch(
        "Claude Code",
        ("com.anthropic.claude_code",),
        "export OTEL_LOG_USER_PROMPTS=1 OTEL_LOG_ASSISTANT_RESPONSES=1\n"
        "export OTEL_LOG_TOOL_DETAILS=1 OTEL_LOG_TOOL_CONTENT=1",
    ),
    ContentSwitch(
        "the anthropic package's own spans, which never have messages",
        ("com.anthropic.sdk.python",),
        "\n".join(PYTHON.lines),
    ),
    ContentSwitch(
        "the Anthropic SDK's own spans, which never have messages",
        ("com.anthropic.sdk.typescript",),
        f"npm install {package_for('anthropic', 'nodejs')}",
    ),
    ContentSwitch("the Hansard SDK", ("hansard",), "export HANSARD_RETENTION=redacted_payloads"),
    ContentSwitch(
        "OpenLLMetry",
        ("opentelemetry.instrumentation.", "@traceloop/"),
        "export TRACELOOP_TRACE_CONTENT=true",
    ),
)


def content_switch(scopes: Iterable[str]) -> ContentSwitch | None:
    """Return how the first sender that is known by its scope is made to send messages."""
    for scope in scopes:
        for switch in _CONTENT_SWITCHES:
            if scope.startswith(switch.scopes):
                return switch
    return None
