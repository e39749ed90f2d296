/** Tokens that models were spared: by day, by server and by tool. */

import { useEffect, useState } from "preact/hooks";

import { get } from "../api";
import { count, shortCount } from "../format";
import { ended } from "../live";
import { DayChart } from "../parts/day_chart";

export interface Sums {
  executions: number;
  calls: number;
  read: number;
  direct: number;
  saved: number;
  ratio: number;
}

interface ToolTotal {
  name: string;
  calls: number;
  tokens: number;
}

interface Stats {
  total: Sums;
  by_day: Record<string, Sums>;
  servers: ToolTotal[];
  tools: ToolTotal[];
}

const RANGES = [7, 30, 90];

export function Savings() {
  const [days, setDays] = useState(30);
  const [stats, setStats] = useState<Stats | null>(null);
  const [trouble, setTrouble] = useState("");
  const after = ended.value;
  useEffect(() => {
    get<Stats>(`stats?days=${days}`).then(setStats).catch((error: Error) => setTrouble(error.message));
  }, [days, after]);
  return (
    <section class="page">
      <header class="page-head">
        <h1>Savings</h1>
        <div class="tabs small-tabs" role="group" aria-label="Days">
          {RANGES.map((each) => (
            <button type="button" aria-pressed={days === each} onClick={() => setDays(each)}>{each} days</button>
          ))}
        </div>
      </header>
      {trouble && <p class="refusal">{trouble}</p>}
      {stats && <Report stats={stats} days={days} />}
    </section>
  );
}

function Report({ stats, days }: { stats: Stats; days: number }) {
  const { total } = stats;
  return (
    <>
      <div class="figures-row">
        <Figure name="Tokens saved" value={shortCount(total.saved)} note={total.direct ? `${(Math.floor(total.ratio * 1000) / 10).toFixed(1)} % of ${shortCount(total.direct)}` : "no tool was called yet"} />
        <Figure name="Tokens read" value={shortCount(total.read)} note="code, output and searches" />
        <Figure name="Executions" value={count(total.executions)} note={`in ${days} days`} />
        <Figure name="Tool calls" value={count(total.calls)} note="from code" />
      </div>
      <div class="card chart-card">
        <h2>By day</h2>
        <DayChart days={days} sums={stats.by_day} />
      </div>
      <div class="two">
        <Totals title="By server" totals={stats.servers} />
        <Totals title="By tool" totals={stats.tools.slice(0, 12)} />
      </div>
    </>
  );
}

function Figure({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div class="card figure">
      <span class="quiet">{name}</span>
      <strong>{value}</strong>
      <span class="quiet">{note}</span>
    </div>
  );
}

function Totals({ title, totals }: { title: string; totals: ToolTotal[] }) {
  const most = Math.max(1, ...totals.map((each) => each.tokens));
  return (
    <div class="card">
      <h2>{title}</h2>
      {totals.length === 0 && <p class="empty">No calls in these days.</p>}
      <ul class="bars">
        {totals.map((each) => (
          <li>
            <span class="name">{each.name}</span>
            <span class="quiet">{count(each.calls)} {each.calls === 1 ? "call" : "calls"}</span>
            <span class="number">{shortCount(each.tokens)}</span>
            <progress value={each.tokens} max={most} aria-label={`${each.name}: ${each.tokens} tokens`} />
          </li>
        ))}
      </ul>
    </div>
  );
}
