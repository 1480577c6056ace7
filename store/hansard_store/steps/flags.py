"""Bits of span.flags: what is special about a step."""

from __future__ import annotations


class SpanFlag:
    """Stored as an integer; never renumber.

    Plain integers: ingest combines several a span, and an operation on an IntFlag costs a
    microsecond.
    """

    DUPLICATE = 1  # a second span for a call or tool that another one describes
    PENDING = 2  # announces a span that had not ended; its own id, the span as its parent
    FOLDED = 4  # a pending record whose real span has come: hidden
    PARENT_REPAIRED = 8  # parent id was invalid and emptied
    LINK_DROPPED = 16
    TIME_ODD = 32  # zero start, end before start, before 2000 or in the future
    TIME_HUGE = 64  # a time not below 2^63: NULL here, exact in the record
    ATTRIBUTES_DROPPED = 128  # the sender's SDK cut attributes
    REDACTED = 256
    HAS_LOGS = 512
    HAS_EVENTS = 1024
    HAS_LINKS = 2048
    ERROR = 4096  # status ERROR, or an error the dialect tells in another way
    PARENT_REMOTE = 8192  # the sender says that the parent is in another process
    SYNTHETIC = 16384  # made from log records
    CANCELLED = 32768  # ended before it was done, and nothing failed
    FOLLOWS_CALLS = 131072  # a root that tells no status: it failed where its last call did
    SUM_IS_WHOLE = 262144  # the calls below a root tell only a part of the sum that it tells
    REPORTED_ELSEWHERE = 524288  # a call that another trace reports as well, and counts
    FOLLOWS_AGENTS = 1048576  # a root that always reports `ok`: it failed where its last agent did
    USAGE_ALONE = 65536  # a model call by nothing but what it used: no operation, words or id
