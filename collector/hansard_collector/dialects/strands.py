"""AWS Strands: GenAI attributes, contents of tools in span events."""

from __future__ import annotations

from hansard_collector.dialects.content.parts import arguments_of, result_of
from hansard_collector.dialects.engine.sources import first_record
from hansard_collector.dialects.engine.values import opened

# On a tool's span, the tool message holds the arguments, and the choice the result, in Bedrock's
# blocks.
tool_arguments = first_record(("gen_ai.tool.message",), "content", read=arguments_of)
tool_result = first_record(("gen_ai.choice",), "message", read=lambda sent: result_of(opened(sent)))
