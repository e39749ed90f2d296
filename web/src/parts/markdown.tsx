/** A model's words: paragraphs, lists, headings, code and emphasis, as elements; never as markup. */

import type { ComponentChildren, VNode } from "preact";

import { Code } from "./code";

const FENCE = /^```\s*(\w*)\s*$/;

type Marker = (text: string) => ComponentChildren;

export function Markdown({ text, mark = (piece) => piece }: { text: string; mark?: Marker }) {
  const blocks: VNode[] = [];
  const lines = text.split("\n");
  for (let at = 0; at < lines.length; ) {
    const [block, next] = taken(lines, at, mark);
    if (block) blocks.push(block);
    at = next;
  }
  return <div class="markdown">{blocks}</div>;
}

function taken(lines: string[], at: number, mark: Marker): [VNode | null, number] {
  const line = lines[at] ?? "";
  if (!line.trim()) return [null, at + 1];
  if (FENCE.test(line)) {
    let end = at + 1;
    while (end < lines.length && !/^```\s*$/.test(lines[end] ?? "")) end += 1;
    return [<Code code={lines.slice(at + 1, end).join("\n")} />, end + 1];
  }
  const heading = /^(#{1,6})\s+(.*)$/.exec(line);
  if (heading) return [<p class="heading">{inline(heading[2] ?? "", mark)}</p>, at + 1];
  if (/^\s*\|.*\|\s*$/.test(line)) return table(lines, at, mark);
  if (/^\s*([-*]|\d+[.)])\s/.test(line)) return list(lines, at, mark);
  let end = at;
  while (end < lines.length && lines[end]?.trim() && !/^(```|#{1,6}\s|\s*[-*]\s|\s*\d+[.)]\s|\s*\|)/.test(lines[end] ?? "")) end += 1;
  end = Math.max(end, at + 1);
  return [<p>{inline(lines.slice(at, end).join("\n"), mark)}</p>, end];
}

function list(lines: string[], at: number, mark: Marker): [VNode, number] {
  const item = /^\s*([-*]|\d+[.)])\s+(.*)$/;
  const items: VNode[] = [];
  const numbered = /^\s*\d/.test(lines[at] ?? "");
  let end = at;
  for (let found = item.exec(lines[end] ?? ""); found; found = item.exec(lines[end] ?? "")) {
    items.push(<li>{inline(found[2] ?? "", mark)}</li>);
    end += 1;
  }
  return [numbered ? <ol>{items}</ol> : <ul>{items}</ul>, end];
}

function table(lines: string[], at: number, mark: Marker): [VNode, number] {
  let end = at;
  while (/^\s*\|.*\|\s*$/.test(lines[end] ?? "")) end += 1;
  const rows = lines.slice(at, end).map((line) => line.trim().slice(1, -1).split("|").map((cell) => cell.trim()));
  const body = rows.slice(1).filter((row) => !row.every((cell) => /^:?-+:?$/.test(cell)));
  return [
    <div class="scrolling" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead><tr>{rows[0]?.map((cell) => <th scope="col">{inline(cell, mark)}</th>)}</tr></thead>
        <tbody>{body.map((row) => <tr>{row.map((cell) => <td>{inline(cell, mark)}</td>)}</tr>)}</tbody>
      </table>
    </div>,
    end,
  ];
}

const INLINE = /(`[^`\n]+`|\*\*[^*\n]+\*\*|\*[^*\n]+\*)/;

function inline(text: string, mark: Marker): ComponentChildren[] {
  return text.split(INLINE).map((piece) => {
    if (piece.startsWith("`") && piece.length > 2) return <code>{mark(piece.slice(1, -1))}</code>;
    if (piece.startsWith("**") && piece.length > 4) return <strong>{mark(piece.slice(2, -2))}</strong>;
    if (piece.startsWith("*") && piece.length > 2) return <em>{mark(piece.slice(1, -1))}</em>;
    return mark(piece);
  });
}
