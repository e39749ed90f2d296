/** Text of a terminal as text of a page: colours are kept, all other sequences are dropped. */

import type { ComponentChildren } from "preact";

// Sequences: colours (group 1), other control sequences, titles and links, single letters.
const SEQUENCE =
  /\x1b\[([\d;]*)m|\x1b\[[\d;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-_]|[\x00-\x08\x0b-\x0c\x0e-\x1f]/g;

/** Returns what a terminal would show of a line that was written over itself. */
function settled(text: string): string {
  return text.includes("\r")
    ? text.replace(/\r+\n/g, "\n").replace(/[^\n]*\r(?=[^\n])/g, "")
    : text;
}

export function Ansi({ text, mark = (piece) => piece }: { text: string; mark?: (piece: string) => ComponentChildren }) {
  const parts: ComponentChildren[] = [];
  const plain = settled(text);
  let at = 0;
  let style = "";
  const add = (piece: string): void => {
    if (piece) parts.push(style ? <span class={style}>{mark(piece)}</span> : mark(piece));
  };
  for (const match of plain.matchAll(SEQUENCE)) {
    add(plain.slice(at, match.index));
    at = match.index + match[0].length;
    if (match[1] !== undefined) style = next(style, match[1]);
  }
  add(plain.slice(at));
  return <>{parts}</>;
}

function next(style: string, codes: string): string {
  let classes = style ? style.split(" ") : [];
  for (const code of (codes || "0").split(";").map(Number)) {
    if (code === 0) classes = [];
    else if (code === 1) classes = [...classes, "ansi-bold"];
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97))
      classes = [...classes.filter((each) => each === "ansi-bold"), `ansi-${code % 10}`];
    else if (code === 39) classes = classes.filter((each) => each === "ansi-bold");
    else if (code === 38 || code === 48) break; // of 256 colours or more: left as it is
  }
  return classes.join(" ");
}
