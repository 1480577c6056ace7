#!/bin/sh
# A shell asks before it does something, with curl alone: propose, wait, claim, run, tell the result.
#
#     hansard serve                              # in another terminal
#     sh examples/approvals_from_anywhere/approve.sh
#     hansard approvals approve ID --by ana      # ID as printed; or on the page /approvals
#
# HANSARD_ENDPOINT is the server's address, by default http://127.0.0.1:4318.
set -eu

base="${HANSARD_ENDPOINT:-http://127.0.0.1:4318}/v1/approvals"
arguments='{"path": "/srv/cache", "older_than_days": 30}'

# One value of the answer: `field NAME` reads JSON from the input.
field() { python3 -c "import json, sys; print(json.load(sys.stdin).get('$1') or '')"; }
post() { curl --silent --show-error --fail-with-body -X POST -H 'content-type: application/json' "$@"; }

# 1. Propose. The answer's key is this program's own: nobody else can claim the call.
proposed=$(post "$base" -d "{\"tool\": \"clean_cache\", \"effect\": \"write\", \"agent\": \"janitor\",
  \"description\": \"Remove files older than 30 days from /srv/cache\", \"arguments\": $arguments}")
id=$(echo "$proposed" | field approval_id)
key=$(echo "$proposed" | field proposal_key)
echo "waiting for somebody to decide on $id"

# 2. Wait: each request stays open until something happens, for a minute at most.
status=awaiting
while [ "$status" = awaiting ]; do
  status=$(curl --silent --show-error --fail "$base/$id?wait=60" | field status)
done
[ "$status" = approved ] || { echo "$status: nothing was done"; exit 0; }

# 3. Claim: once, with exactly the arguments that were approved. Whoever comes second gets 409.
claim=$(post "$base/$id/claim" -H "Hansard-Proposal-Key: $key" -d "{\"arguments\": $arguments}" |
  field claim_id)

# 4. Run, and 5. tell the result.
echo "removing files older than 30 days from /srv/cache"
post "$base/$id/result" -d "{\"claim_id\": \"$claim\", \"ok\": true}" >/dev/null
echo "done"
