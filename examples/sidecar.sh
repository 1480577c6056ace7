#!/bin/sh
# An agent without an SDK: it tells a running `hansard serve` what it does, with nothing but curl.
#
#   sh examples/sidecar.sh [http://127.0.0.1:4318]
set -eu
H=${1:-${HANSARD_ENDPOINT:-http://127.0.0.1:4318}}

post() { curl -sS --fail-with-body --json "$2" "$H$1"; }
id() { sed -E "s/.*\"$1\":\"([^\"]*)\".*/\1/"; }

RUN=$(post /v1/runs/start '{"agent_name": "disk watcher", "user_goal": "Is the disk full?"}' | id run_id)
STEP=$(post "/v1/runs/$RUN/steps" '{"name": "look", "kind": "chain"}' | id step_id)

post /v1/tools/call '{"run_id": "'"$RUN"'", "parent_step_id": "'"$STEP"'", "name": "df",
  "call_id": "df-1", "arguments": {"path": "/"}}' >/dev/null
USED=$(df -P / | awk 'NR == 2 { sub("%", "", $5); print $5 }')
post /v1/tools/result '{"run_id": "'"$RUN"'", "call_id": "df-1", "result": {"used_pct": '"$USED"'}}' \
  >/dev/null

if [ "$USED" -lt 90 ]; then ANSWER="No, $USED % is used."; else ANSWER="Nearly: $USED % is used."; fi
post "/v1/runs/$RUN/steps" '{"step_id": "'"$STEP"'", "output": "'"$ANSWER"'", "status": "completed"}' \
  >/dev/null
post "/v1/runs/$RUN/end" '{"output": "'"$ANSWER"'"}' >/dev/null
echo "$ANSWER"
