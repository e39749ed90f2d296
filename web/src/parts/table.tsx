/** Plain tables of an output, made again from their texts alone: nothing of the markup is used.
 *
 * A frame can't tell its height without scripts, and tables are most of what pandas shows. What is
 * more than a table of texts stays in its frame.
 */

import type { VNode } from "preact";

interface Cell {
  head: boolean;
  text: string;
  across: number;
  down: number;
}

export interface Grid {
  head: Cell[][];
  body: Cell[][];
  note: string;
}

interface Policies {
  createPolicy(name: string, rules: { createHTML: (html: string) => string }): { createHTML(html: string): string };
}

// The page's policy takes markup from here alone, and this is for a document that is never shown:
// it loads nothing and runs nothing.
const policies = (window as { trustedTypes?: Policies }).trustedTypes;
const policy = policies?.createPolicy("inert", { createHTML: (html) => html });
const inert = (html: string): string => policy?.createHTML(html) ?? html;

const MOST_CELLS = 20_000;
const WRAPPERS = new Set(["DIV", "STYLE", "P"]);

/** Returns the table that some HTML is, or null where it is anything else. */
export function gridOf(html: string): Grid | null {
  if (!/<table[\s>]/i.test(html) || /<(script|img|svg|iframe|a|input|caption)[\s>]/i.test(html)) return null;
  const parsed = new DOMParser().parseFromString(inert(withoutStyles(html)), "text/html");
  const tables = parsed.querySelectorAll("table");
  const [table] = tables;
  if (!table || tables.length > 1 || table.querySelectorAll("th, td").length > MOST_CELLS) return null;
  if (table.querySelector("th *, td *") || table.querySelector("[id]")) return null; // styled by hand
  const others = [...parsed.body.querySelectorAll("*")].filter((each) => !table.contains(each));
  if (others.some((each) => !WRAPPERS.has(each.tagName))) return null;
  const note = others.filter((each) => each.tagName === "P").map((each) => each.textContent).join(" ");
  const rows = (part: string): Cell[][] => [...table.querySelectorAll(`${part} > tr`)].map(cells);
  return { head: rows("thead"), body: rows("tbody"), note };
}

/** Only texts are wanted, and the page's policy would complain of every style. */
function withoutStyles(html: string): string {
  return html.replace(/<style[\s\S]*?<\/style>/gi, "").replace(/\sstyle=("[^"]*"|'[^']*')/gi, "");
}

function cells(row: Element): Cell[] {
  return [...row.children].map((cell) => ({
    head: cell.tagName === "TH",
    text: cell.textContent ?? "",
    across: span(cell, "colspan"),
    down: span(cell, "rowspan"),
  }));
}

function span(cell: Element, name: string): number {
  return Math.min(Math.max(Number(cell.getAttribute(name)) || 1, 1), 1000);
}

const NUMBER = /^-?[\d,. ]+%?$|^(NaN|<NA>|NaT|inf|-inf)$/;

function Row({ cells, scope }: { cells: Cell[]; scope: "col" | "row" }): VNode {
  return (
    <tr>
      {cells.map((cell) =>
        cell.head && cell.text ? (
          <th scope={scope} colSpan={cell.across} rowSpan={cell.down}>{cell.text}</th>
        ) : (
          <td colSpan={cell.across} rowSpan={cell.down} class={NUMBER.test(cell.text) ? "number" : ""}>
            {cell.text}
          </td>
        ),
      )}
    </tr>
  );
}

export function GridTable({ grid }: { grid: Grid }): VNode {
  return (
    <div class="grid-output">
      <div class="scrolling" tabIndex={0} role="region" aria-label="Table">
        <table>
          <thead>{grid.head.map((row) => <Row cells={row} scope="col" />)}</thead>
          <tbody>{grid.body.map((row) => <Row cells={row} scope="row" />)}</tbody>
        </table>
      </div>
      {grid.note && <p class="quiet">{grid.note}</p>}
    </div>
  );
}
