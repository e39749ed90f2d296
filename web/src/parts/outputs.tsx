/** What a cell has shown: text, pictures, tables, and everything else in a cage of its own. */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";

import type { Failure, Output } from "../model";
import { Ansi } from "./ansi";
import { gridOf, GridTable } from "./table";

/** One thing that is shown. The address of a display is that of the event that brought it. */
export type Shown =
  | { kind: "text"; stream: "stdout" | "stderr"; text: string }
  | { kind: "display"; outputs: Output[]; address: string; display: string | null }
  | { kind: "note"; text: string };

const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

type Marker = (text: string) => ComponentChildren;

export function Shows({ shown, mark }: { shown: Shown[]; mark?: Marker }) {
  return <>{shown.map((each, at) => <One key={at} shown={each} {...(mark && { mark })} />)}</>;
}

function One({ shown, mark }: { shown: Shown; mark?: Marker }) {
  if (shown.kind === "note") return <p class="note">{shown.text}</p>;
  if (shown.kind === "display") return <Display outputs={shown.outputs} address={shown.address} />;
  return (
    <pre class={`text-output ${shown.stream}`} tabIndex={0} aria-label={shown.stream}>
      <Ansi text={shown.text} {...(mark && { mark })} />
    </pre>
  );
}

function Display({ outputs, address }: { outputs: Output[]; address: string }) {
  const find = (type: string): number => outputs.findIndex((each) => each.type === type);
  const text = outputs[find("text/plain")]?.data ?? "";
  const picture = outputs.find((each) => PICTURES.includes(each.type));
  if (picture) return <Picture source={`data:${picture.type};base64,${picture.data}`} text={text} />;
  const vector = find("image/svg+xml");
  if (vector >= 0) return <Picture source={`${address}/${vector}`} text={text} />;
  const page = find("text/html");
  if (page >= 0) return <Html html={outputs[page]?.data ?? ""} address={`${address}/${page}`} />;
  const first = outputs[0];
  if (text || !first) return <Plain text={text} />;
  return <Plain text={first.encoding ? `[${first.type}]` : first.data} />;
}

function Plain({ text }: { text: string }) {
  return (
    <pre class="text-output" tabIndex={0} aria-label="Result">
      <Ansi text={text} />
    </pre>
  );
}

function Picture({ source, text }: { source: string; text: string }) {
  return <img class="picture-output" src={source} alt={text || "A picture that the code has drawn"} />;
}

function Html({ html, address }: { html: string; address: string }) {
  const grid = useMemo(() => gridOf(html), [html]);
  return grid ? <GridTable grid={grid} /> : <Cage html={html} address={address} />;
}

const HAS_SCRIPTS = /<script[\s>]/i;
const BLOCKS = /<(p|div|tr|li|h[1-6]|br|pre|hr|summary)\b|\n(?=[^<]*<\/pre)/gi;
const LINE = 24;

/** Returns a height that fits most: a frame without scripts can't tell its own. It can be pulled. */
function guessedHeight(html: string): number {
  if (HAS_SCRIPTS.test(html) || /<(svg|img|canvas|iframe)\b/i.test(html)) return 380;
  const text = html.replace(/<style[\s\S]*?<\/style>|<[^>]*>/gi, "");
  const lines = Math.max(html.match(BLOCKS)?.length ?? 0, 1) + text.length / 110;
  return Math.min(Math.max(lines * LINE + 32, 64), 420);
}

/** A frame that can reach nothing: see SECURITY.md. Its scripts run when a person says so. */
function Cage({ html, address }: { html: string; address: string }) {
  const [running, setRunning] = useState(false);
  const source = running ? `${address}?scripts=run` : address;
  return (
    <div class="cage">
      <iframe
        key={source}
        src={source}
        title="Output of the cell"
        sandbox={running ? "allow-scripts" : ""}
        referrerpolicy="no-referrer"
        loading="lazy"
        style={{ height: `${guessedHeight(html)}px` }}
      />
      {HAS_SCRIPTS.test(html) && !running && (
        <div class="cage-bar">
          <span>This output has scripts. They can reach no network.</span>
          <button type="button" class="small" onClick={() => setRunning(true)}>Run its scripts</button>
        </div>
      )}
    </div>
  );
}

export function FailureBox({ failure }: { failure: Failure }) {
  const text = failure.traceback.trim() || `${failure.type}: ${failure.message}`;
  return (
    <div class="failure">
      <pre tabIndex={0} aria-label="Error"><Ansi text={text} /></pre>
      {failure.hint && <p>{failure.hint}</p>}
    </div>
  );
}
