"""The names that recorded calls of models write, beside those of `hansard.semconv`."""

from __future__ import annotations

from typing import Final

PROVIDER_NAME: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
RESPONSE_MODEL: Final = "gen_ai.response.model"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
TOOL_DEFINITIONS: Final = "gen_ai.tool.definitions"
STOP_SEQUENCES: Final = "gen_ai.request.stop_sequences"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"
RESEND_COUNT: Final = "http.request.resend_count"
RESPONSE_BODY_SIZE: Final = "http.response.body.size"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

REQUEST: Final = "hansard.request"  # .ref, .redacted
RESPONSE: Final = "hansard.response"  # .ref, .redacted
REF: Final = ".ref"
REDACTED: Final = ".redacted"
DUPLICATE: Final = "hansard.duplicate"
EVENT_ATTEMPT: Final = "hansard.attempt"  # a try that the client made again
