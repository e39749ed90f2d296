/** Cells: code, and what it shows as it runs. */

import { useState } from "preact/hooks";

import { path, post } from "../api";
import { bytes, seconds, shortCount } from "../format";
import { load, may, sessions } from "../live";
import * as notebook from "../notebook";
import { ApprovalCards } from "../parts/approval";
import { EditorBox } from "../parts/code";
import type { Suggestion } from "../parts/editor";
import { Icon, IconButton } from "../parts/icons";
import { FailureBox, Shows } from "../parts/outputs";
import { VariablesPanel } from "../parts/variables";
import { FilesPanel } from "./files";

const EXAMPLES = [
  ["A sum", "sum(n * n for n in range(1_000))"],
  ["A table", "import pandas as pd\n\npd.DataFrame({\"depth\": [10, 20, 30], \"pressure\": [2, 3, 4]})"],
  [
    "A plot",
    "import numpy as np\nimport matplotlib.pyplot as plt\n\nx = np.linspace(0, 10, 300)\nplt.figure(figsize=(7, 3))\nplt.plot(x, np.exp(-x / 4) * np.sin(4 * x))\nplt.title(\"A damped wave\");",
  ],
] as const;

export function Cells() {
  const [side, setSide] = useState<"files" | "variables">("files");
  return (
    <div class="workbench">
      <section class="notebook" aria-label="Cells">
        <SessionBar />
        <h1 class="unseen">Cells</h1>
        {notebook.cells.value.map((cell, at) => <CellBox key={cell.key} cell={cell} number={at + 1} />)}
        <div class="row after-cells">
          <button type="button" class="subtle" onClick={() => notebook.add()}>
            <Icon name="plus" /> Cell
          </button>
          <span class="quiet hint"><kbd>Shift</kbd> <kbd>Enter</kbd> runs and goes on, <kbd>Ctrl</kbd> <kbd>Enter</kbd> runs</span>
        </div>
        <Beginning />
      </section>
      <aside class="side" aria-label="Session">
        <div class="tabs" role="tablist">
          {(["files", "variables"] as const).map((each) => (
            <button type="button" role="tab" aria-selected={side === each} onClick={() => setSide(each)}>
              {each === "files" ? "Files" : "Variables"}
            </button>
          ))}
        </div>
        {side === "files" ? <FilesPanel session={notebook.session.value} /> : <VariablesPanel session={notebook.session.value} />}
      </aside>
    </div>
  );
}

function Beginning() {
  const [only, ...others] = notebook.cells.value;
  if (!only || others.length || only.code.value || only.run.state.value !== "idle") return null;
  return (
    <div class="beginning">
      <h2>Run something</h2>
      <p>Code runs in a sealed sandbox on the server: variables stay from cell to cell, the network does not exist.</p>
      <div class="row">
        {EXAMPLES.map(([name, code]) => (
          <button type="button" onClick={() => begin(code)}>{name}</button>
        ))}
      </div>
    </div>
  );
}

function begin(code: string): void {
  const [first] = notebook.cells.value;
  const cell = notebook.add(undefined, code);
  if (first) notebook.drop(first);
  notebook.run(cell);
}

function SessionBar() {
  const { known, session, busy } = notebook;
  const running = busy.value || known.value?.state === "running";
  return (
    <header class="session-bar">
      <SessionChoice />
      <span class={`state ${running ? "running" : "idle"}`}>{running ? "running" : known.value ? "idle" : "not started"}</span>
      {known.value && (
        <span class="figures quiet">
          {Math.round(load(session.value) * 100)} % CPU · {bytes(known.value.memory)}
        </span>
      )}
      <span class="grow" />
      <button type="button" class="danger" disabled={!running} onClick={notebook.stopRunning}>
        <Icon name="stop" size={14} /> Stop
      </button>
      <button type="button" class="wide-only" disabled={busy.value} onClick={notebook.runAll}>Run all</button>
      <button type="button" class="wide-only" disabled={!known.value || busy.value} onClick={notebook.reset} title="Forget all variables; files stay">
        Reset
      </button>
    </header>
  );
}

const NEW = "\u0000new";

function SessionChoice() {
  const { session, known } = notebook;
  const names = [...new Set([session.value, ...sessions.value.map(({ id }) => id)])];
  const chosen = (value: string): void => {
    if (value === NEW) notebook.openNew(notebook.freeName());
    else notebook.choose(value);
  };
  return (
    <label class="session-choice">
      <span class="unseen">Session</span>
      <select value={session.value} onChange={(event) => chosen(event.currentTarget.value)}>
        {names.map((name) => (
          <option value={name}>{name}{name === session.value && !known.value ? " (new)" : ""}</option>
        ))}
        <option value={NEW}>New session …</option>
      </select>
    </label>
  );
}

async function complete(code: string, position: number): Promise<Suggestion[]> {
  if (notebook.busy.value || !notebook.known.value) return [];
  const where = `${path("sessions", notebook.session.value)}/complete`;
  try {
    return (await post<{ items: Suggestion[] }>(where, { code, position })).items;
  } catch {
    return []; // a session that has begun to run in the meantime: nothing is offered
  }
}

function focusBeside(cell: notebook.Cell, direction: -1 | 1): void {
  const all = notebook.cells.value;
  const other = all[all.indexOf(cell) + direction];
  if (other) focus(other);
}

function focus(cell: notebook.Cell): void {
  notebook.focused.value = cell.key;
  document.querySelector<HTMLElement>(`[data-cell="${cell.key}"] :is(.cm-content, textarea)`)?.focus();
}

function runAndGoOn(cell: notebook.Cell, next: boolean): void {
  notebook.run(cell);
  if (!next) return;
  const all = notebook.cells.value;
  const other = all[all.indexOf(cell) + 1];
  if (other) focus(other);
  else notebook.add(cell);
}

function CellBox({ cell, number }: { cell: notebook.Cell; number: number }) {
  const { run, code } = cell;
  const state = run.state.value;
  const active = state === "running" || state === "queued" || state === "waiting";
  return (
    <article class={`cell ${state}`} data-cell={cell.key} aria-label={`Cell ${number}`}>
      <div class="cell-code">
        {active ? (
          <IconButton icon="stop" label={`Stop cell ${number}`} class="run-button stop" onClick={notebook.stopRunning} />
        ) : (
          <IconButton icon="run" label={`Run cell ${number}`} class="run-button" disabled={!may("run")} onClick={() => notebook.run(cell)} />
        )}
        <EditorBox
          code={code.value}
          label={`Code of cell ${number}`}
          focused={notebook.focused.value === cell.key}
          changed={(text) => {
            code.value = text;
            notebook.keep();
          }}
          complete={complete}
          run={(next) => runAndGoOn(cell, next)}
          leave={(direction) => focusBeside(cell, direction)}
        />
        <div class="cell-tools">
          <IconButton icon="up" label={`Move cell ${number} up`} disabled={number === 1} onClick={() => notebook.move(cell, -1)} />
          <IconButton icon="down" label={`Move cell ${number} down`} disabled={number === notebook.cells.value.length} onClick={() => notebook.move(cell, 1)} />
          <IconButton icon="trash" label={`Delete cell ${number}`} onClick={() => notebook.drop(cell)} />
        </div>
      </div>
      <CellOutput cell={cell} />
    </article>
  );
}

function CellOutput({ cell }: { cell: notebook.Cell }) {
  const { shown, result, refusal, progress, state } = cell.run;
  const failure = result.value?.failure;
  if (state.value === "idle" && !refusal.value) return null;
  return (
    <div class="cell-output" aria-live="polite">
      {progress.value && <p class="progress">{progress.value}</p>}
      <Shows shown={shown.value} />
      <ApprovalCards execution={cell.run.execution.value} />
      {failure && <FailureBox failure={failure} />}
      {refusal.value && <p class="refusal">{refusal.value}</p>}
      <Foot cell={cell} />
    </div>
  );
}

function Foot({ cell }: { cell: notebook.Cell }) {
  const result = cell.run.result.value;
  if (!result) return cell.run.state.value === "ended" ? null : <p class="foot"><span class="pulse" /> {cell.run.state.value}</p>;
  const saved = result.ledger?.saved ?? 0;
  return (
    <>
      {result.notes.map((note) => <p class="note">{note}</p>)}
      {result.calls.length > 0 && (
        <details class="calls">
          <summary>{result.calls.length} tool {result.calls.length === 1 ? "call" : "calls"}</summary>
          <ul>{result.calls.map((call) => <li><code>{call.name}({call.arguments})</code> <span class={call.status === "ok" ? "quiet" : "bad"}>{call.status}, {seconds(call.milliseconds)}</span></li>)}</ul>
        </details>
      )}
      <p class="foot">
        <span class={`mark ${result.status === "ok" ? "good" : "bad"}`}>{result.limit ? `limit: ${result.limit}` : result.status}</span>
        {seconds(result.execution_time_ms)}
        {result.usage.cpu_ms !== null && <span> · {seconds(result.usage.cpu_ms)} CPU</span>}
        {saved > 0 && <span> · {shortCount(saved)} tokens saved</span>}
        {result.state !== "kept" && <span> · {result.state === "fresh" ? "variables are gone" : `variables are as after cell ${result.state_cell}`}</span>}
      </p>
    </>
  );
}
