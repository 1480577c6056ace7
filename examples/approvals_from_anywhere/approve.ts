// A program in TypeScript asks before it does something. No package is needed: fetch and the JSON API.
//
//     hansard serve                                               # in another terminal
//     node examples/approvals_from_anywhere/approve.ts            # Node 22.18 or newer, or any bundler
//     hansard approvals approve ID --by ana                       # ID as printed; or the page /approvals

type Json = Record<string, unknown>;
type Approval = { approval_id: string; status: string; arguments: Json; must_repropose: boolean;
  note: string | null; decided_by: string | null; proposal_key?: string };

const base = `${process.env.HANSARD_ENDPOINT ?? "http://127.0.0.1:4318"}/v1/approvals`;

async function ask<T>(method: string, path: string, body?: Json, headers: Record<string, string> = {}): Promise<T> {
  const answer = await fetch(base + path, {
    method,
    headers: { "content-type": "application/json", ...headers },
    body: body && JSON.stringify(body),
  });
  const told = await answer.json();
  // Fail closed: whatever is no clear yes ends the program before anything ran.
  if (!answer.ok) throw new Error(`${answer.status} ${told.error?.code}: ${told.error?.message}`);
  return told as T;
}

/** Run a function of its arguments once somebody approved the call, with the arguments as approved. */
async function confirmed<A extends Json, R>(tool: string, args: A, run: (args: A) => Promise<R>): Promise<R | string> {
  const proposed = await ask<Approval>("POST", "", { tool, arguments: args, effect: "write", agent: "mailer" });
  const id = proposed.approval_id;
  const key = { "Hansard-Proposal-Key": proposed.proposal_key ?? "" };
  console.log(`waiting for somebody to decide on ${id}`);
  let found: Approval = proposed;
  while (found.status === "awaiting") found = await ask<Approval>("GET", `/${id}?wait=60`);
  if (found.status !== "approved") return `${found.status}: nothing was done`;
  // Edited by the approver? Then the record has what to run. Else run what was proposed.
  const approved = found.must_repropose ? args : (found.arguments as A);
  const { claim_id } = await ask<{ claim_id: string }>("POST", `/${id}/claim`, { arguments: approved }, key);
  try {
    const result = await run(approved);
    await ask("POST", `/${id}/result`, { claim_id, ok: true });
    return result;
  } catch (error) {
    await ask("POST", `/${id}/result`, { claim_id, ok: false, error: String(error) });
    throw error;
  }
}

const outcome = await confirmed("send_mail", { to: "maria@acme.com", subject: "The offer" }, async (mail) => {
  return `sent "${mail.subject}" to ${mail.to}`;
});
console.log(outcome);
