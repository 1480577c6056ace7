-- Lists of users and of conversations sum over runs: what they read of a run stands in these
-- indexes, so that no row of a run, with its texts, is read for them.

CREATE INDEX run_user_sums ON run (user_id, started_ns, ended_ns, status, model_calls, tokens_input,
  tokens_output, cost_usd_nano, agent_name, conversation_id)
  WHERE user_id IS NOT NULL;                                             -- users

DROP INDEX run_conversation;
CREATE INDEX run_conversation ON run (conversation_id, started_ns, ended_ns, status, error_count,
  model_calls, tokens_input, tokens_output, cost_usd_nano, user_id, agent_name)
  WHERE conversation_id IS NOT NULL;                                     -- a conversation's runs, sums
