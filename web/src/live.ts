/** What the server tells of by itself, over one stream for all tabs: sessions and approvals. */

import { computed, signal } from "@preact/signals";

import { get, type Json, onSignedOut, type Page, type ServerEvent, stream } from "./api";
import { alone } from "./lines";
import type { Approval, Me, Session } from "./model";

export interface Reading {
  at: number;
  cpu: number;
  memory: number;
}

const KEPT_READINGS = 60;
const LONGEST_PAUSE = 10_000;

export const me = signal<Me | null>(null);
export const signedIn = signal<boolean | null>(null);
export const connected = signal(true);
export const sessions = signal<Session[]>([]);
export const approvals = signal<Approval[]>([]);
/** Of each session: what it has used, reading after reading. */
export const readings = signal<Record<string, Reading[]>>({});
export const may = (scope: string): boolean => me.value?.scopes.includes(scope) ?? false;
export const waiting = computed(() => approvals.value.length);
/** Counts what has ended, for those who show totals. */
export const ended = signal(0);

onSignedOut(() => {
  signedIn.value = false;
});

let open: AbortController | null = null;

/** Asks who we are, and follows what happens from then on. */
export async function begin(): Promise<void> {
  try {
    me.value = await get<Me>("me");
    signedIn.value = true;
  } catch {
    signedIn.value = false;
    return;
  }
  if (open) return;
  open = new AbortController();
  void follow(open);
}

export function end(): void {
  open?.abort();
  open = null;
  me.value = null;
  sessions.value = [];
  approvals.value = [];
}

/** What the tab that holds the stream tells the others: an event, or whether there is a connection. */
type Told = { event: ServerEvent } | { connected: boolean };

/** One tab holds the stream for all tabs of this user; when it goes, the next one does. */
async function follow(control: AbortController): Promise<void> {
  const name = `divingbell.events.${me.value?.user}`;
  const others = new BroadcastChannel(name);
  others.onmessage = ({ data }: MessageEvent<Told>) => hear(data);
  const tell = (told: Told): void => {
    hear(told);
    others.postMessage(told);
  };
  void refresh().catch(() => {}); // what the others hear from now on is new
  try {
    await alone(name, control.signal, () => read(control, tell));
  } catch {
    // we have left before it was our turn
  } finally {
    others.close();
  }
}

async function read(control: AbortController, tell: (told: Told) => void): Promise<void> {
  let pause = 500;
  while (!control.signal.aborted && signedIn.value) {
    try {
      for await (const event of stream("GET", "events", { signal: control.signal })) {
        pause = 500;
        tell({ connected: true });
        tell({ event });
      }
    } catch {
      if (control.signal.aborted) return; // we have left; else the server is away, and comes back
    }
    tell({ connected: false });
    await new Promise((resume) => setTimeout(resume, pause));
    pause = Math.min(pause * 2, LONGEST_PAUSE);
  }
}

function hear(told: Told): void {
  if ("connected" in told) connected.value = told.connected;
  // The first one says that nothing is missed from now on.
  else if (told.event.event === "hello") void refresh().catch(() => {}); // the next connection asks again
  else take(told.event);
}

/** Asks for all sessions and approvals again. */
export async function refresh(): Promise<void> {
  const [asked] = await Promise.all([may("approve") ? get<Page<Approval>>("approvals") : { items: [] }, refreshSessions()]);
  approvals.value = asked.items;
}

async function refreshSessions(): Promise<void> {
  const all = await get<Page<Session>>("sessions?limit=200");
  sessions.value = all.items;
  all.items.forEach(note);
}

function take({ event, data }: ServerEvent): void {
  if (event === "session.changed") putSession(data["session"] as unknown as Session);
  // Not approvals: a list from before one was asked would take it away again.
  else if (event === "session.opened") void refreshSessions().catch(() => {}); // the next event tells it, too
  else if (event === "session.ended") dropSession(String(data["session"]));
  else if (event === "approval.asked") putApproval(data["approval"] as unknown as Approval);
  else if (event === "approval.answered") dropApproval(String(data["id"]));
  else if (event === "execution.started" || event === "execution.ended") turnState(event, data);
}

function putSession(session: Session): void {
  const known = sessions.value.some(({ id }) => id === session.id);
  sessions.value = known
    ? sessions.value.map((each) => (each.id === session.id ? session : each))
    : [...sessions.value, session];
  note(session);
}

function dropSession(id: string): void {
  sessions.value = sessions.value.filter((each) => each.id !== id);
  const { [id]: _, ...rest } = readings.value;
  readings.value = rest;
}

function putApproval(approval: Approval): void {
  approvals.value = [...approvals.value.filter(({ id }) => id !== approval.id), approval];
}

export function dropApproval(id: string): void {
  approvals.value = approvals.value.filter((each) => each.id !== id);
}

function turnState(event: string, data: Json): void {
  const state = event.endsWith("started") ? "running" : "idle";
  const id = String(data["session"] ?? "");
  sessions.value = sessions.value.map((each) => (each.id === id ? { ...each, state } : each));
  if (state === "idle") ended.value += 1;
}

function note(session: Session): void {
  const before = readings.value[session.id] ?? [];
  const reading = { at: Date.now(), cpu: session.cpu_seconds ?? 0, memory: session.memory ?? 0 };
  readings.value = { ...readings.value, [session.id]: [...before, reading].slice(-KEPT_READINGS) };
}

/** Returns the processors that a session has used lately: 1 is one core, all of the time. */
export function load(session: string): number {
  const [before, now] = (readings.value[session] ?? []).slice(-2);
  if (!before || !now || now.at - before.at < 200) return 0;
  return Math.max(0, (now.cpu - before.cpu) / ((now.at - before.at) / 1000));
}
