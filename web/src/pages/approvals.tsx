/** Approvals that wait for a person. */

import { approvals, may } from "../live";
import { ApprovalCard } from "../parts/approval";

export function Approvals() {
  return (
    <section class="page narrow">
      <header class="page-head"><h1>Approvals</h1></header>
      {!may("approve") && <p class="refusal">Your token may not answer: it needs the scope <code>approve</code>.</p>}
      {approvals.value.length === 0 ? (
        <p class="empty card">Nothing waits for you. When code calls a tool that asks first, it is shown here and on every page.</p>
      ) : (
        approvals.value.map((each) => <ApprovalCard key={each.id} approval={each} />)
      )}
    </section>
  );
}
