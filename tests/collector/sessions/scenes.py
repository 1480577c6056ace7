"""One realistic turn of each agent, as the records it exports."""

from __future__ import annotations

import json

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.collector.sessions.maker import SESSION, claude, codex, gemini

CLAUDE_MODEL = "claude-sonnet-4-5-20250929"
CODEX_MODEL = "gpt-5.1-codex"
GEMINI_MODEL = "gemini-2.5-pro"


def claude_turn(turn: str | None = "prompt-1", *, at_s: float = 0) -> list[LogRecord]:
    """A prompt, two model calls and a failed one, a tool, a compaction; numbers are texts."""
    return [
        claude("user_prompt", at_s, turn=turn, prompt="Fix the failing test", prompt_length="20"),
        claude(
            "api_request", at_s + 5, turn=turn, model=CLAUDE_MODEL, input_tokens="10",
            output_tokens="50", cache_read_tokens="1000", cache_creation_tokens="200",
            cost_usd="0.0123", duration_ms="3000", ttft_ms="800", request_id=f"req_1{turn}",
            query_source="repl_main_thread",
        ),
        claude(
            "assistant_response", at_s + 5.01, turn=turn, model=CLAUDE_MODEL,
            response="I will run the tests.", response_length="21", request_id=f"req_1{turn}",
        ),
        claude(
            "tool_decision", at_s + 5.2, turn=turn, tool_name="Bash", tool_use_id=f"toolu_1{turn}",
            decision="accept", source="config",
        ),
        claude(
            "tool_result", at_s + 6, turn=turn, tool_name="Bash", tool_use_id=f"toolu_1{turn}",
            success="true", duration_ms="700", tool_result_size_bytes="512",
            tool_parameters=json.dumps({"bash_command": "pytest -x"}),
        ),
        claude(
            "api_error", at_s + 7, turn=turn, model=CLAUDE_MODEL, error="Overloaded",
            status_code="529", duration_ms="500", attempt="1", request_id=f"req_e{turn}",
        ),
        claude("compaction", at_s + 9, turn=turn, trigger="auto", success="true",
               duration_ms="900", pre_tokens="150000", post_tokens="20000"),
        claude(
            "api_request", at_s + 13, turn=turn, model=CLAUDE_MODEL, input_tokens="20",
            output_tokens="60", cache_read_tokens="1200", cache_creation_tokens="0",
            cost_usd="0.0100", duration_ms="3500", request_id=f"req_2{turn}",
            query_source="repl_main_thread",
        ),
        claude(
            "assistant_response", at_s + 13.01, turn=turn, model=CLAUDE_MODEL,
            response="Fixed it.", response_length="9", request_id=f"req_2{turn}",
        ),
        claude("hook_execution_complete", at_s + 14, turn=turn, hook_name="Stop"),
    ]  # fmt: skip


def codex_turn(
    *, at_s: float = 0, prompt: str = "Add a test", log_prompt: bool = True, session: str = SESSION
) -> list[LogRecord]:
    """A prompt, two calls of which the first was refused once, a tool and the final answer."""

    def event(name: str, after_s: float, **sent: object) -> LogRecord:
        return codex(name, at_s + after_s, session=session, **sent)

    return [
        event("user_prompt", 0, prompt_length=str(len(prompt)),
              prompt=prompt if log_prompt else "[REDACTED]"),
        event("api_request", 0.5, attempt=0, duration_ms="300", endpoint="responses",
              http__response__status_code=429, error__message="too many requests"),
        event("api_request", 2, attempt=1, duration_ms="400", endpoint="responses",
              http__response__status_code=200),
        event("sse_event", 2.1, event__kind="response.created", duration_ms="100"),
        event("sse_event", 4, event__kind="response.completed", duration_ms="5"),
        event("sse_event", 4.01, event__kind="response.completed", input_token_count="2000",
              output_token_count="300", cached_token_count=1500, reasoning_token_count=100,
              tool_token_count="2300", ttft_ms="350"),
        event("tool_decision", 4.2, tool_name="shell", call_id=f"call_1{at_s}",
              decision="approved", source="config"),
        event("tool_result", 6, tool_name="shell", call_id=f"call_1{at_s}", duration_ms="1500",
              success="false", arguments='{"command":["pytest"]}', output="1 failed",
              mcp_server="", mcp_server_origin=""),
        event("api_request", 7, attempt=0, duration_ms="500", endpoint="responses",
              http__response__status_code=200),
        event("agent_response", 8.9, turn__id="turn-of-the-answer", agent__type="main",
              response="Added the test.", response_length=15),
        event("sse_event", 9, event__kind="response.completed", input_token_count="2500",
              output_token_count="50", cached_token_count=2400, reasoning_token_count=0,
              tool_token_count="2550"),
    ]  # fmt: skip


def gemini_turn(*, at_s: float = 0, turn: str = f"{SESSION}########0") -> list[LogRecord]:
    """A prompt, a call with the event of the conventions, a tool, a failed and a further call."""
    request = json.dumps([{"role": "user", "parts": [{"text": "List the files"}]}])
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Listing."}]}]
    asked = [{"role": "user", "parts": [{"type": "text", "content": "List the files"}]}]
    return [
        gemini("user_prompt", at_s, turn=turn, prompt_length=14, prompt="List the files"),
        gemini("api_request", at_s + 1, turn=turn, model=GEMINI_MODEL, request_text=request),
        gemini(
            "gen_ai.client.inference.operation.details", at_s + 1, turn=None,
            gen_ai__request__model=GEMINI_MODEL, gen_ai__input__messages=json.dumps(asked),
        ),
        gemini(
            "api_response", at_s + 3, turn=turn, model=GEMINI_MODEL, duration_ms=2000,
            input_token_count=100, output_token_count=20, cached_content_token_count=40,
            thoughts_token_count=30, tool_token_count=5, total_token_count=155,
            status_code=200, finish_reasons=["stop"],
        ),
        gemini(
            "gen_ai.client.inference.operation.details", at_s + 3, turn=None,
            gen_ai__request__model=GEMINI_MODEL, gen_ai__response__id="resp-1",
            gen_ai__input__messages=json.dumps(asked),
            gen_ai__output__messages=json.dumps(answer),
            gen_ai__usage__input_tokens=100, gen_ai__usage__output_tokens=20,
        ),
        gemini(
            "tool_call", at_s + 4, turn=turn, function_name="list_directory",
            function_args='{\n  "path": "."\n}', duration_ms=40, success=True,
            decision="auto_accept", tool_type="native",
        ),
        gemini("api_request", at_s + 5, turn=turn, model=GEMINI_MODEL, request_text=request),
        gemini(
            "api_error", at_s + 6, turn=turn, model=GEMINI_MODEL, duration_ms=1000,
            error="Quota exceeded", error__type="ApiError", status_code=429,
            http__status_code=429,
        ),
        gemini("api_request", at_s + 7, turn=turn, model=GEMINI_MODEL, request_text=request),
        gemini(
            "api_response", at_s + 9, turn=turn, model=GEMINI_MODEL, duration_ms=2000,
            input_token_count=200, output_token_count=10, cached_content_token_count=0,
            thoughts_token_count=0, tool_token_count=0, total_token_count=210,
            response_text="Two files.", finish_reasons=["stop"],
        ),
        gemini("chat_compression", at_s + 10, turn=None, tokens_before=9000, tokens_after=900),
    ]  # fmt: skip
