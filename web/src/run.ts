/** One run of some code: what it shows, grown event by event. */

import { signal, type Signal } from "@preact/signals";

import { path, post, Problem, remove, type ServerEvent, stream } from "./api";
import { followed } from "./lines";
import type { Output, Result } from "./model";
import type { Shown } from "./parts/outputs";

export type RunState = "idle" | "waiting" | "queued" | "running" | "ended";

export interface Run {
  state: Signal<RunState>;
  shown: Signal<Shown[]>;
  result: Signal<Result | null>;
  progress: Signal<string>;
  /** Why the server would not run it. */
  refusal: Signal<string>;
  execution: Signal<string>;
  cell: Signal<number>;
}

export function newRun(execution = ""): Run {
  return {
    state: signal<RunState>("idle"),
    shown: signal<Shown[]>([]),
    result: signal<Result | null>(null),
    progress: signal(""),
    refusal: signal(""),
    execution: signal(execution),
    cell: signal(0),
  };
}

/** Runs code in a session, and returns when it has ended. A broken line is taken up again. */
export async function execute(run: Run, session: string, code: string): Promise<void> {
  clear(run);
  run.execution.value = "";
  const body = { code, on_disconnect: "keep" };
  await follow(run, (_, signal) => stream("POST", `${path("sessions", session)}/execute`, { body, signal }));
}

/** Shows again what an execution has shown, and goes on with it. */
export async function resume(run: Run): Promise<void> {
  clear(run);
  await follow(run, (after, signal) => events(run, after, signal));
}

function events(run: Run, after: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  return stream("GET", `${path("executions", run.execution.value)}/events`, { after, signal });
}

function clear(run: Run): void {
  run.state.value = "waiting";
  run.shown.value = [];
  run.result.value = null;
  run.refusal.value = "";
  run.progress.value = "";
}

async function follow(run: Run, first: Parameters<typeof followed>[0]): Promise<void> {
  const again: typeof first = (after, signal) => events(run, after, signal);
  try {
    // What has no name cannot be found again.
    for await (const event of followed(first, again, () => !!run.result.value || !run.execution.value)) take(run, event);
  } catch (error) {
    if (error instanceof Problem) run.refusal.value = error.message;
  }
  if (!run.result.value && !run.refusal.value)
    run.refusal.value = "The connection to the server was lost. What the code did is in its session.";
  run.state.value = "ended";
  run.progress.value = "";
}

function take(run: Run, { event, data, id }: ServerEvent): void {
  if (event === "queued") {
    run.state.value = "queued";
    run.progress.value = `Waiting for its turn: place ${data["place"]}`;
    if (data["execution"]) run.execution.value = String(data["execution"]);
  } else if (event === "started") {
    run.state.value = "running";
    run.progress.value = "";
    run.execution.value = String(data["execution"] ?? run.execution.value);
    run.cell.value = Number(data["cell"] ?? 0);
  } else if (event === "done") {
    const result = (data["result"] ?? data) as unknown as Result;
    run.result.value = result;
    run.cell.value = result.cell;
  } else run.shown.value = added(run, { event, data, id });
}

/** Returns what is shown after one more event. */
export function added(run: Pick<Run, "shown" | "execution" | "progress">, { event, data, id }: ServerEvent): Shown[] {
  const shown = run.shown.value;
  const text = String(data["text"] ?? "");
  if (event === "stdout" || event === "stderr") return withText(shown, event, text);
  if (event === "display" || event === "result") return withDisplay(shown, run.execution.value, { event, data, id });
  if (event === "clear") return [];
  if (event === "notice") return [...shown, { kind: "note", text }];
  if (event === "gap") return [...shown, { kind: "note", text: "Some output came too fast to be kept here." }];
  if (event === "progress" || event === "log") run.progress.value = [data["tool"], text].filter(Boolean).join(": ");
  return shown;
}

function withText(shown: Shown[], stream: "stdout" | "stderr", text: string): Shown[] {
  const last = shown.at(-1);
  if (last?.kind === "text" && last.stream === stream)
    return [...shown.slice(0, -1), { ...last, text: last.text + text }];
  return [...shown, { kind: "text", stream, text }];
}

function withDisplay(shown: Shown[], execution: string, { data, id }: ServerEvent): Shown[] {
  const display = data["display_id"] ? String(data["display_id"]) : null;
  const address = `/outputs/${path(execution, id)}`;
  const item: Shown = { kind: "display", outputs: data["outputs"] as Output[], address, display };
  if (data["update"] && display)
    return shown.map((each) => (each.kind === "display" && each.display === display ? item : each));
  return [...shown, item];
}

/** Stops what runs: first as Ctrl-C does, so that the session's variables stay. */
export async function stop(run: Run, session: string): Promise<void> {
  if (run.state.value === "queued" && run.execution.value) await remove(path("executions", run.execution.value));
  else await post(`${path("sessions", session)}/interrupt`);
}
