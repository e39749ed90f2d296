/** The cells of this tab: their code is kept in the tab, what they showed is asked for again. */

import { computed, signal, type Signal } from "@preact/signals";

import { path, post, Problem } from "./api";
import { sessions } from "./live";
import { execute, newRun, resume, type Run, stop } from "./run";
import { say } from "./notices";

export interface Cell {
  key: number;
  code: Signal<string>;
  run: Run;
}

const KEY = "divingbell.cells";
const FIRST = "console";
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

let keys = 0;

export const session = signal(FIRST);
export const cells = signal<Cell[]>([]);
export const focused = signal(0);
export const busy = signal(false);
export const known = computed(() => sessions.value.find(({ id }) => id === session.value));

function newCell(code = "", execution = ""): Cell {
  keys += 1;
  return { key: keys, code: signal(code), run: newRun(execution) };
}

interface Kept {
  session: string;
  cells: { code: string; execution: string }[];
}

/** Brings back the cells of this tab, with what they showed as far as the server has it. */
export function restore(): void {
  const kept = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Kept | null;
  session.value = kept?.session ?? FIRST;
  cells.value = kept?.cells.length
    ? kept.cells.map(({ code, execution }) => newCell(code, execution))
    : [newCell()];
  focused.value = cells.value.at(-1)?.key ?? 0;
  for (const { run } of cells.value) if (run.execution.value) void restoreRun(run);
}

async function restoreRun(run: Run): Promise<void> {
  await resume(run);
  if (run.result.value) return;
  run.execution.value = "";
  run.refusal.value = "What this cell showed is no longer kept. Run it again.";
}

export function keep(): void {
  const kept: Kept = {
    session: session.value,
    cells: cells.value.map(({ code, run }) => ({ code: code.value, execution: run.execution.value })),
  };
  try {
    sessionStorage.setItem(KEY, JSON.stringify(kept));
  } catch {
    say("These cells are too long to be kept in this tab when it is loaded again.");
  }
}

/** Takes another session; the cells stay as they are. */
export function choose(name: string): void {
  session.value = name;
  keep();
}

export function openNew(name: string): boolean {
  if (!NAME.test(name)) {
    say("A session's name has letters, digits, dots, dashes and underscores, at most 64.");
    return false;
  }
  choose(name);
  cells.value = [newCell()];
  focused.value = cells.value[0]?.key ?? 0;
  keep();
  return true;
}

/** Returns a name that no session has yet. */
export function freeName(): string {
  const taken = new Set(sessions.value.map(({ id }) => id));
  let number = sessions.value.length + 1;
  while (taken.has(`session-${number}`)) number += 1;
  return `session-${number}`;
}

export function add(after?: Cell, code = ""): Cell {
  const cell = newCell(code);
  const at = after ? cells.value.indexOf(after) + 1 : cells.value.length;
  cells.value = [...cells.value.slice(0, at), cell, ...cells.value.slice(at)];
  focused.value = cell.key;
  keep();
  return cell;
}

export function drop(cell: Cell): void {
  const rest = cells.value.filter((each) => each !== cell);
  cells.value = rest.length ? rest : [newCell()];
  keep();
}

export function move(cell: Cell, direction: -1 | 1): void {
  const order = [...cells.value];
  const from = order.indexOf(cell);
  const other = order[from + direction];
  if (!other) return;
  order[from + direction] = cell;
  order[from] = other;
  cells.value = order;
  keep();
}

const waitingCells: Cell[] = [];

/** Runs a cell after those that were asked for before it: one stream at a time. */
export function run(cell: Cell): void {
  if (!cell.code.value.trim() || waitingCells.includes(cell)) return;
  cell.run.state.value = "waiting";
  waitingCells.push(cell);
  if (!busy.value) void work();
}

async function work(): Promise<void> {
  busy.value = true;
  try {
    for (let cell = waitingCells[0]; cell; cell = waitingCells[0]) {
      await execute(cell.run, session.value, cell.code.value);
      waitingCells.shift();
      keep();
      if (cell.run.refusal.value || cell.run.result.value?.status !== "ok") forgetWaiting();
    }
  } finally {
    busy.value = false;
  }
}

function forgetWaiting(): void {
  for (const cell of waitingCells.splice(0)) cell.run.state.value = "idle";
}

export function runAll(): void {
  cells.value.forEach(run);
}

export async function stopRunning(): Promise<void> {
  const current = waitingCells[0];
  waitingCells.splice(1).forEach((cell) => (cell.run.state.value = "idle"));
  await told(() => (current ? stop(current.run, session.value) : post(`${path("sessions", session.value)}/interrupt`)));
}

export async function reset(): Promise<void> {
  await told(() => post(`${path("sessions", session.value)}/reset`));
}

/** Does something and tells a refusal in the corner. */
export async function told(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    say(error instanceof Problem ? error.message : String(error));
    return false;
  }
}
