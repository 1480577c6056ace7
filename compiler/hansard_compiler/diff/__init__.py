"""Comparing any two: compiles, texts, JSON, messages, requests, steps, figures. Pure.

Each function gives nothing for a thing against itself, and the mirror image when its sides change
places. `docs/diff.md` says what each of them promises and where it is bounded.
"""

from hansard_compiler.diff.changes import Change, changes_between, reverted
from hansard_compiler.diff.compiles import Because, CompileDiff, ItemDiff, compile_diff
from hansard_compiler.diff.counterfactuals import explain
from hansard_compiler.diff.explanations import Delta, headline
from hansard_compiler.diff.json_paths import JsonChange, JsonDiff, json_diff
from hansard_compiler.diff.messages import MessageMark, MessagePair, align_messages
from hansard_compiler.diff.requests import RequestDiff, request_diff
from hansard_compiler.diff.sequences import align
from hansard_compiler.diff.sides import CompileSide, ItemSide, side_of_context, side_of_result
from hansard_compiler.diff.steps import StepMark, StepPair, align_steps
from hansard_compiler.diff.words import TextOp, text_diff

__all__ = [
    "Because", "Change", "CompileDiff", "CompileSide", "Delta", "ItemDiff", "ItemSide",
    "JsonChange", "JsonDiff", "MessageMark", "MessagePair", "RequestDiff", "StepMark", "StepPair",
    "TextOp", "align", "align_messages", "align_steps", "changes_between", "compile_diff",
    "explain", "headline", "json_diff", "request_diff", "reverted", "side_of_context",
    "side_of_result", "text_diff",
]  # fmt: skip
