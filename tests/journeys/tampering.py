# ruff: noqa: E501 - a statement is read as a whole
"""What somebody with `sqlite3` and the file of a store can do to it, and where that is named.

The list is the table of docs/accountability.md; a test holds the two together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_LAST_CHAINED: Final = "(SELECT max(seq) FROM event)"


@dataclass(frozen=True, slots=True)
class Tampering:
    """One thing that is done, in plain SQL, with every trigger dropped before."""

    what: str
    table: str  # whose row is named
    sql: str  # statements, parted by semicolons
    is_deep: bool = False  # named by `hansard verify --deep` alone


def _of(table: str, *rows: tuple[str, str]) -> list[Tampering]:
    return [Tampering(what, table, sql) for what, sql in rows]


def _deep(table: str, *rows: tuple[str, str]) -> list[Tampering]:
    return [Tampering(what, table, sql, is_deep=True) for what, sql in rows]


TAMPERINGS: Final = [
    *_of(
        "approval",
        ("arguments of what ran: 100 made 900", "UPDATE approval SET arguments = replace(arguments, '100', '900') WHERE tool = 'wire'"),
        ("who decided", "UPDATE approval SET decided_by = 'ceo' WHERE tool = 'wire'"),
        ("how the decider was authenticated", "UPDATE approval SET decided_method = 'session' WHERE tool = 'wire'"),
        ("when it was decided", "UPDATE approval SET decided_ns = 1 WHERE tool = 'wire'"),
        ("a rejection made an approval", "UPDATE approval SET status = 'approved' WHERE tool = 'rejected'"),
        ("the reason of a rejection", "UPDATE approval SET reason = 'wanted' WHERE tool = 'rejected'"),
        ("the tool", "UPDATE approval SET tool = 'read' WHERE tool = 'wire'"),
        ("what a person was shown", "UPDATE approval SET fields = '[]' WHERE tool = 'wire'"),
        ("whether the arguments are exact", "UPDATE approval SET is_exact = 0 WHERE tool = 'wire'"),
        ("which draft it is", "UPDATE approval SET revision = 7 WHERE tool = 'wire'"),
        ("the deadline of what waits", "UPDATE approval SET expires_ns = expires_ns * 2 WHERE tool = 'waits'"),
        ("who may decide", "UPDATE approval SET approvers = '[[\"eve\", null]]' WHERE tool = 'waits'"),
        ("how many people have to approve", "UPDATE approval SET approvals_required = 2 WHERE tool = 'waits'"),
        ("a person who did not approve", "UPDATE approval SET approved_by = '[{\"at_ns\":\"1\",\"method\":\"token\",\"name\":\"bo\"}]' WHERE tool = 'waits'"),
        ("an approval removed", "DELETE FROM approval WHERE tool = 'waits'"),
        ("an approval added without an event", "INSERT INTO approval SELECT number + 99, zeroblob(16), status, revision, version, tool, arguments, arguments_hash, is_redacted, is_exact, description, fields, effect, agent, trace_id, span_id, channel, batch_id, undo_of, undo, note, reason, created_ns, updated_ns, lifetime_ns, expires_ns, decided_by, decided_ns, approvers, asked, escalates_ns, policy, zeroblob(32), token, token_ends_ns, requested_by, requested_method, decided_method, approvals_required, approved_by FROM approval WHERE tool = 'waits'"),
    ),
    *_of(
        "approval_claim",
        ("a claim removed, so that it would run again", "DELETE FROM approval_claim WHERE approval_id = (SELECT approval_id FROM approval WHERE tool = 'wire')"),
        ("a failure made a success", "UPDATE approval_claim SET state = 'done', error = NULL WHERE state = 'failed'"),
        ("what came out of it", "UPDATE approval_claim SET result_ref = 'other' WHERE state = 'done'"),
        ("which process ran it", "UPDATE approval_claim SET holder = 'elsewhere' WHERE state = 'done'"),
    ),
    *_of(
        "event",
        ("who did it, in the log", f"UPDATE event SET who = 'nobody' WHERE seq = {_LAST_CHAINED} - 1"),
        ("what an event says", "UPDATE event SET body = '{}' WHERE type = 'action.approved'"),
        ("when it happened", "UPDATE event SET time_ns = 1 WHERE seq = 2"),
        ("an event removed", "DELETE FROM event_content WHERE event = 2; DELETE FROM event WHERE seq = 2"),
        ("the end of the log cut off", f"DELETE FROM event_content WHERE event > {_LAST_CHAINED} - 3; DELETE FROM event WHERE seq > {_LAST_CHAINED} - 3"),
        ("an event added, with a hash that does not fit", "INSERT INTO event SELECT seq + 1, time_ns, 0, 'failure', actor, who, action, source, subject, NULL, NULL, NULL, '{}', hash, zeroblob(32) FROM event ORDER BY seq DESC LIMIT 1"),
        ("two events exchanged", "UPDATE event SET seq = -1 WHERE seq = 3; UPDATE event SET seq = 3 WHERE seq = 2; UPDATE event SET seq = 2 WHERE seq = -1"),
        ("a draft in the log", "UPDATE event_content SET body = '{}' WHERE name = 'draft'"),
        ("a note in the log removed", "DELETE FROM event_content WHERE name = 'reason'"),
        ("a seal, added by somebody else", "INSERT INTO event SELECT seq + 1, time_ns, 0, 'record.sealed', 'system', 'hansard', 'seal', 'store', 'store', NULL, NULL, NULL, '{\"blocks\":{},\"buckets\":{}}', hash, zeroblob(32) FROM event ORDER BY seq DESC LIMIT 1"),
    ),
    *_of(
        "span_record",
        ("what a span said", "UPDATE span_record SET record = (SELECT record FROM span_record WHERE span = 2) WHERE span = 1"),
        ("when a span came", "UPDATE span_record SET received_ns = 1 WHERE span = 3"),
        ("what was repaired in a span", "UPDATE span_record SET notes = 'nothing' WHERE span = 3"),
        ("a span's record removed", "DELETE FROM span_record WHERE span = 4"),
    ),
    *_of(
        "span",
        ("who sent a span", "UPDATE span SET resource = (SELECT max(id) FROM resource) WHERE id = 1"),
        ("the run of a span", "UPDATE span SET trace_id = zeroblob(16) WHERE id = 1"),
        ("a span removed with its record", "DELETE FROM span_record WHERE span = 5; DELETE FROM span WHERE id = 5"),
    ),
    *_of(
        "log_record",
        ("when a log record came", "UPDATE log_record SET received_ns = 1"),
        ("a log record removed", "DELETE FROM log_record"),
    ),
    *_of("metric_point", ("a metric removed", "DELETE FROM metric_point")),
    *_of("resource", ("what a sender says of itself", "UPDATE resource SET record = x'00' WHERE id = 1")),
    *_of("scope", ("which library a span came from", "UPDATE scope SET name = 'other' WHERE id = 1")),
    *_of(
        "content",
        ("the words of a message", "UPDATE content SET body = (SELECT body FROM content WHERE id = 2) WHERE id = 1"),
        ("the words of a message, with their digest", "UPDATE content SET digest = zeroblob(32), size = 1, body = x'00' WHERE id = 1"),
    ),
    *_of("content_list", ("the order of a conversation", "UPDATE content_list SET content = 1 WHERE id = 2")),
    *_of(
        "payload",
        ("the bytes of a payload", "UPDATE payload SET body = zeroblob(8) WHERE digest = (SELECT max(digest) FROM payload WHERE body IS NOT NULL)"),
        ("what a payload is", "UPDATE payload SET media_type = 'text/html' WHERE digest = (SELECT max(digest) FROM payload)"),
        ("a payload removed", "DELETE FROM payload WHERE digest = (SELECT max(digest) FROM payload)"),
    ),
    *_of("payload_use", ("that a run needs a payload", "DELETE FROM payload_use WHERE run = (SELECT max(run) FROM payload_use)")),
    *_of("redaction", ("that a secret was removed", "DELETE FROM redaction")),
    *_of(
        "policy_check",
        ("every check allows", "UPDATE policy_check SET effect = 'allow', reason_code = 'allowed' WHERE effect = 'deny'"),
        ("which rule decided", "UPDATE policy_check SET rule_id = 'other' WHERE rule_id IS NOT NULL"),
        ("a check removed", "DELETE FROM policy_check WHERE span IS NULL"),
    ),
    *_of(
        "policy_rule",
        ("the effect of a rule", "UPDATE policy_rule SET effect = 'allow'"),
        ("every rule removed", "DELETE FROM policy_rule"),
    ),
    *_of("policy_rule_set", ("the text of a rule set", "UPDATE policy_rule_set SET document = '{}'")),
    *_of("policy_version", ("who put rules in force", "UPDATE policy_version SET actor = 'nobody'")),
    *_of("memory_body", ("what is remembered", "UPDATE memory_body SET content = '\"send money to eve\"'"),
         ("the metadata of a memory", "UPDATE memory_body SET metadata = '{\"a\": 1}'")),
    *_of(
        "memory",
        ("how sure a memory is", "UPDATE memory SET confidence = 1"),
        ("whether a memory is current", "UPDATE memory SET state = 'invalidated' WHERE id = 1"),
        ("who wrote a memory", "UPDATE memory SET written_by = 'ceo'"),
        ("who said that a memory does not hold", "UPDATE memory SET ended_by = 'ceo', ended_method = 'token', ended_ns = 1 WHERE id = 1"),
    ),
    *_of("memory_tag", ("a tag of a memory", "UPDATE memory_tag SET tag = 'other'")),
    *_of("memory_access", ("that a memory was read", "DELETE FROM memory_access WHERE kind = 'read'")),
    *_of(
        "annotation",
        ("a note that a person wrote", "UPDATE annotation SET text = 'all fine' WHERE kind = 'note'"),
        ("a score", "UPDATE annotation SET value = 1 WHERE kind = 'score'"),
        ("an annotation removed", "DELETE FROM annotation WHERE kind = 'note'"),
    ),
    *_of(
        "task",
        ("a task done that nobody did", "UPDATE task SET state = 'done', review = 0"),
        ("who decided about a task", "UPDATE task SET decided_by = 'ceo', decided_method = 'token'"),
    ),
    *_of(
        "transcript_message",
        ("what was said in a conversation", "UPDATE transcript_message SET content = (SELECT content FROM transcript_message WHERE position = 0 LIMIT 1) WHERE position = 1"),
        ("the last message removed", "DELETE FROM transcript_message WHERE rowid = (SELECT max(rowid) FROM transcript_message)"),
    ),
    *_of("conversation", ("the name of a conversation", "UPDATE conversation SET name = 'other' WHERE number = 1")),
    *_of(
        "replay",
        ("what a replay found", "UPDATE replay SET report = '{}'"),
        ("how a replay ended", "UPDATE replay SET state = 'failed', reason = 'x' WHERE id = 1"),
    ),
    *_of(
        "tombstone",
        ("why a run was deleted", "UPDATE tombstone SET reason = 'keep'"),
        ("a deletion forgotten", "DELETE FROM tombstone"),
        ("a deletion made up", "INSERT INTO tombstone SELECT zeroblob(16), deleted_ns, reason, span_count, digest, deleted_by FROM tombstone"),
    ),
    *_of(
        "ledger",
        ("how much came in", "UPDATE ledger SET received = received + 1, stored = stored + 1"),
        ("how much was rejected, hidden", "DELETE FROM ledger"),
    ),
    *_of("sender", ("who has sent", "UPDATE sender SET service = 'other' WHERE id = 1")),
    *_of("principal_token", ("what a token may do", "UPDATE principal_token SET scopes = 'admin'"),
         ("a revoked token in force again", "UPDATE principal_token SET revoked_ns = NULL, revoked_by = NULL WHERE revoked_ns IS NOT NULL"),
         ("a token added", "INSERT INTO principal_token (name, scopes, hash, created_ns, created_by) VALUES ('eve', 'decide', zeroblob(32), 1, 'eve')")),
    *_of("seal_row", ("a leaf of a seal", "UPDATE seal_row SET leaf = zeroblob(16) WHERE table_name = 'memory'")),
    *_of("seal_block", ("leaves of spans", "UPDATE seal_block SET leaves = zeroblob(length(leaves)) WHERE table_name = 'span'")),
    *_of(
        "receipt",
        ("every first receipt a denial", "UPDATE receipt SET decision = 'exclude', reason = 'policy_denied' WHERE ordinal = 0"),
        ("what a candidate took", "UPDATE receipt SET tokens_after = 1 WHERE ordinal = 0"),
    ),
    *_of("compilation", ("the hash of a compile", "UPDATE compilation SET hash = 'sha256:00'"),
         ("how many were included", "UPDATE compilation SET included = included + 1")),
    *_deep("receipt", ("where a candidate came from", "UPDATE receipt SET source = 'elsewhere' WHERE ordinal = 0")),
    *_deep("compilation", ("the budget of a compile", "UPDATE compilation SET budget_tokens = 1")),
    *_deep("tool_event", ("every tool call removed", "DELETE FROM tool_event"),
           ("a tool call of a run that is not there", "INSERT INTO tool_event (run, name) VALUES (99999, 'wire')")),
    *_deep("text", ("the role of what was said", "UPDATE text SET role = 'system' WHERE role = 'user'")),
    *_deep("text_use", ("a text that another run said", "INSERT INTO text_use SELECT min(id), (SELECT max(id) FROM run) FROM text WHERE id NOT IN (SELECT text FROM text_use WHERE run = (SELECT max(id) FROM run))")),
    *_deep("run", ("whether a run was made of log records", "UPDATE run SET synthetic = 1 - synthetic"),
           ("which library tells its calls", "UPDATE run SET call_scope = 99 WHERE call_scope IS NOT NULL")),
    *_deep("log_record", ("how bad a log record is", "UPDATE log_record SET severity = severity + 1")),
    *_deep("metric_point", ("the value of a metric", "UPDATE metric_point SET value = 2")),
    *_deep("run", ("how a run ended", "UPDATE run SET status = 'ok' WHERE status <> 'ok'"),
           ("what a run cost", "UPDATE run SET tokens_input = 1, cost_usd_nano = 1 WHERE tokens_input IS NOT NULL")),
    *_deep("call", ("which model answered", "UPDATE call SET response_model = 'other'"),
           ("the tokens of a call", "UPDATE call SET tokens_output = 1")),
    *_deep("span", ("how a step is shown", "UPDATE span SET role = 'other', summary = 'fine' WHERE id = 1")),
    *_deep("span_link", ("what a step follows from", "DELETE FROM span_link")),
    *_deep("run_facet", ("what a run is found by", "DELETE FROM run_facet WHERE kind = 'model'"),
           ("what a run that is not there is found by", "INSERT INTO run_facet VALUES ('model', 'gpt', 99999)")),
    *_deep("text_use", ("who said it", "DELETE FROM text_use WHERE run = 1"),
           ("a run that is not there said it", "INSERT INTO text_use SELECT min(id), 99999 FROM text")),
    *_deep("usage_below", ("tokens below a step that is not there", "INSERT INTO usage_below VALUES (zeroblob(16), zeroblob(8))")),
]  # fmt: skip
