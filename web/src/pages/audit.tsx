/** The audit log: what was run and called, newest first. */

import { useEffect, useState } from "preact/hooks";

import { get, type Json, type Page } from "../api";
import { moment } from "../format";
import { ended } from "../live";

interface AuditRecord extends Json {
  at: string;
  kind: string;
  user: string;
  session: string;
}

export function Audit() {
  const [records, setRecords] = useState<AuditRecord[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const [trouble, setTrouble] = useState("");
  const [open, setOpen] = useState(-1);
  const after = ended.value;
  const look = (cursor = ""): void => {
    get<Page<AuditRecord>>(`audit?limit=50${cursor && `&cursor=${encodeURIComponent(cursor)}`}`)
      .then((page) => {
        setRecords((before) => (cursor ? [...before, ...page.items] : page.items));
        setNext(page.next);
      })
      .catch((error: Error) => setTrouble(error.message));
  };
  useEffect(() => look(), [after]);
  return (
    <section class="page">
      <header class="page-head"><h1>Audit</h1></header>
      {trouble && <p class="refusal">{trouble}</p>}
      {!records.length && !trouble && <p class="empty card">Nothing was recorded yet.</p>}
      {records.length > 0 && (
        <div class="card scrolling" tabIndex={0} role="region" aria-label="Records">
          <table class="list records">
            <thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">Session</th><th scope="col">Details</th></tr></thead>
            <tbody>
              {records.map((record, at) => (
                <tr>
                  <td class="quiet nowrap">{moment(record.at)}</td>
                  <td class="nowrap"><button type="button" class="link" aria-expanded={open === at} onClick={() => setOpen(open === at ? -1 : at)}>{words(record.kind)}</button></td>
                  <td class="nowrap">{record.session}</td>
                  <td class="details">{open === at ? <pre tabIndex={0} aria-label="Record">{JSON.stringify(record, null, 2)}</pre> : brief(record)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {next && <button type="button" class="more" onClick={() => look(next)}>Older records</button>}
    </section>
  );
}

const words = (name: string): string => name.replaceAll("_", " ").replaceAll(".", " ");
const OWN = new Set(["at", "kind", "user", "session", "client", "conversation", "chain", "number", "previous", "hash"]);
/** What code and arguments are recorded as: their text, and more that the whole record shows. */
const isText = (value: unknown): value is { text: string } =>
  typeof value === "object" && value !== null && typeof (value as { text?: unknown }).text === "string";

const LONGEST = 160;

function brief(record: AuditRecord): string {
  return Object.entries(record)
    .map(([name, value]): [string, unknown] => [name, isText(value) ? value.text : value])
    .filter(([name, value]) => !OWN.has(name) && value !== null && value !== "" && typeof value !== "object")
    .map(([name, value]) => `${words(name)} ${String(value).slice(0, LONGEST)}`)
    .join(" · ");
}
