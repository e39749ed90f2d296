/** Tokens by day, drawn by uPlot: what would have been read, and what was. */

import { useEffect, useRef } from "preact/hooks";

import type { Sums } from "../pages/savings";
import { shortCount } from "../format";
import { theme } from "../theme";

const DAY = 86_400;
const HEIGHT = 240;

export function DayChart({ days, sums }: { days: number; sums: Record<string, Sums> }) {
  const box = useRef<HTMLDivElement>(null);
  const look = theme.value;
  useEffect(() => {
    const parent = box.current;
    if (!parent) return;
    let gone = false;
    let undo = (): void => {};
    void import("./plot").then(({ bars }) => {
      if (!gone) undo = bars(parent, series(days, sums), HEIGHT);
    });
    return () => {
      gone = true;
      undo();
    };
  }, [days, sums, look]);
  const saved = Object.values(sums).reduce((sum, each) => sum + each.saved, 0);
  return (
    <figure class="chart">
      <div ref={box} class="plot" role="img" aria-label={`Tokens by day over ${days} days; ${shortCount(saved)} were saved`} />
      <figcaption class="row quiet legend">
        <span><i class="swatch saved" /> saved</span>
        <span><i class="swatch read" /> read</span>
      </figcaption>
    </figure>
  );
}

/** Returns days as seconds, tokens that were read, and those with what was saved on top. */
function series(days: number, sums: Record<string, Sums>): [number[], number[], number[]] {
  const today = Math.floor(Date.now() / 1000 / DAY) * DAY;
  const dates = Array.from({ length: days }, (_, at) => today - (days - 1 - at) * DAY);
  const of = dates.map((date) => sums[new Date(date * 1000).toISOString().slice(0, 10)]);
  const read = of.map((each) => each?.read ?? 0);
  return [dates, read, of.map((each, at) => (read[at] ?? 0) + Math.max(0, each?.saved ?? 0))];
}
