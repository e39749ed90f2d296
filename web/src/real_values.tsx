/** Real values in the places of the tokens that a model reads, marked, for those who may see them. */

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import { post } from "./api";
import { may } from "./live";
import { told } from "./notebook";

const TOKEN = /(\[[A-Z][A-Z_]*_\d+\])/;

export const shown = signal(false);
const known = signal<Record<string, string>>({});
const asked = new Set<string>();

export function turnOn(on: boolean): void {
  shown.value = on;
}

/** Asks once for each token that is in sight: a reveal is written into the audit log. */
function ask(token: string, conversation: string): void {
  const key = `${conversation} ${token}`;
  if (asked.has(key)) return;
  asked.add(key);
  void told(async () => {
    const { text } = await post<{ text: string }>("reveal", { text: token, conversation });
    known.value = { ...known.value, [key]: text };
  });
}

/** Returns what marks the tokens in a text of one conversation. */
export function marker(conversation: string): (text: string) => ComponentChildren {
  if (!shown.value || !may("reveal")) return (text) => text;
  return (text) =>
    text.split(TOKEN).map((piece, at) => {
      if (at % 2 === 0) return piece;
      const value = known.value[`${conversation} ${piece}`];
      if (value === undefined) ask(piece, conversation);
      return value === undefined || value === piece ? piece : <mark title={`The model reads ${piece}`}>{value}</mark>;
    });
}
