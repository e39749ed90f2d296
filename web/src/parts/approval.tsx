/** Approvals: what a tool is about to do, and the four words that answer. */

import { useState } from "preact/hooks";

import { path, post } from "../api";
import { moment } from "../format";
import { approvals, dropApproval, may } from "../live";
import type { Approval } from "../model";
import { told } from "../notebook";

type Word = "yes" | "no" | "session" | "always";

const WORDS: [Word, string, string][] = [
  ["yes", "Allow once", "primary"],
  ["session", "Allow in this session", ""],
  ["always", "Always allow", ""],
  ["no", "Refuse", "danger"],
];

/** The approvals that an execution waits for, in the place where it runs. */
export function ApprovalCards({ execution }: { execution: string }) {
  const here = approvals.value.filter((each) => execution && each.execution === execution);
  return <>{here.map((each) => <ApprovalCard key={each.id} approval={each} />)}</>;
}

/** The approvals that a session waits for. */
export function ApprovalsOf({ session }: { session: string }) {
  return <>{approvals.value.filter((each) => each.session === session).map((each) => <ApprovalCard key={each.id} approval={each} />)}</>;
}

export function ApprovalCard({ approval }: { approval: Approval }) {
  const [sent, setSent] = useState(false);
  const answer = async (word: Word): Promise<void> => {
    setSent(true);
    if (await told(() => post(path("approvals", approval.id), { word }))) dropApproval(approval.id);
    else setSent(false);
  };
  return (
    <div class="approval" role="group" aria-label={`Approval of ${approval.tool}`}>
      <p class="approval-head">
        <strong>{approval.tool}</strong> <span class="quiet">{approval.session} · asked at {moment(approval.asked_at)}</span>
      </p>
      {approval.reason && <p>{approval.reason}</p>}
      <Arguments value={approval.arguments} />
      <div class="row">
        {WORDS.map(([word, label, style]) => (
          <button type="button" class={style} disabled={sent || !may("approve")} onClick={() => void answer(word)}>{label}</button>
        ))}
      </div>
    </div>
  );
}

function Arguments({ value }: { value: unknown }) {
  const given = typeof value === "string" ? parsed(value) : value;
  if (!given || typeof given !== "object") return given === undefined ? null : <pre class="arguments">{String(given)}</pre>;
  return (
    <dl class="arguments">
      {Object.entries(given).map(([name, each]) => (
        <div>
          <dt>{name}</dt>
          <dd>{typeof each === "string" ? each : JSON.stringify(each, null, 1)}</dd>
        </div>
      ))}
    </dl>
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text; // cut short, since it was long
  }
}
