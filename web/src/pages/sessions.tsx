/** Sessions: what runs, what it uses, and a way to stop it. */

import { path, post, remove } from "../api";
import { bytes, moment, until } from "../format";
import { load, may, type Reading, readings, sessions } from "../live";
import type { Session } from "../model";
import * as notebook from "../notebook";
import { Icon, IconButton } from "../parts/icons";
import { Sparkline } from "../parts/sparkline";
import { go } from "../route";

export function Sessions() {
  const all = sessions.value;
  return (
    <section class="page">
      <header class="page-head">
        <h1>Sessions</h1>
        <button type="button" class="primary" disabled={!may("run")} onClick={() => void opened()}>
          <Icon name="plus" /> New session
        </button>
      </header>
      {all.length === 0 && <p class="empty card">No session is open. One is made when a cell runs.</p>}
      <ul class="session-cards">
        {all.map((session) => <SessionCard key={session.id} session={session} />)}
      </ul>
    </section>
  );
}

async function opened(): Promise<void> {
  const id = notebook.freeName();
  if (await notebook.told(() => post("sessions", { id }))) notebook.openNew(id);
}

/** Returns the processors that were used between each two readings. */
function loads(all: Reading[]): number[] {
  return all.slice(1).map((now, at) => {
    const before = all[at]!;
    return Math.max(0, (now.cpu - before.cpu) / Math.max(0.2, (now.at - before.at) / 1000));
  });
}

function SessionCard({ session }: { session: Session }) {
  const all = readings.value[session.id] ?? [];
  const where = path("sessions", session.id);
  const memory = session.limits["memory"] ?? 0;
  const show = (): void => {
    notebook.choose(session.id);
    go("cells");
  };
  return (
    <li class="card session-card">
      <div class="row">
        <button type="button" class="link title" onClick={show}>{session.id}</button>
        <span class={`state ${session.state}`}>{session.state}</span>
        <span class="grow" />
        <button type="button" class="danger small" disabled={session.state !== "running" || !may("run")} onClick={() => void notebook.told(() => post(`${where}/interrupt`))}>
          <Icon name="stop" size={13} /> Stop
        </button>
        <IconButton icon="trash" label={`End session ${session.id}`} disabled={!may("run")} onClick={() => void notebook.told(() => remove(where))} />
      </div>
      <div class="meters">
        <div>
          <span class="quiet">CPU</span>
          <strong>{Math.round(load(session.id) * 100)} %</strong>
          <Sparkline values={loads(all)} most={1} label="CPU over the last minutes" />
        </div>
        <div>
          <span class="quiet">Memory</span>
          <strong>{bytes(session.memory)}</strong>
          <Sparkline values={all.map((each) => each.memory)} most={memory} label="Memory over the last minutes" />
        </div>
      </div>
      <p class="quiet figures">
        {session.cells} {session.cells === 1 ? "cell" : "cells"} · {(session.cpu_seconds ?? 0).toFixed(1)} s CPU · peak {bytes(session.memory_peak)}
        {memory ? ` of ${bytes(memory)}` : ""} · {session.backend} · since {moment(session.created_at)}
        {session.expires_at && ` · ends ${until(session.expires_at)}`}
      </p>
    </li>
  );
}
