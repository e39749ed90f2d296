/** A conversation with the agent: what was said, thought, run and shown, in order. */

import { signal, type Signal } from "@preact/signals";

import { type Json, path, Problem, type ServerEvent, stream } from "./api";
import { followed } from "./lines";
import type { Result } from "./model";
import type { Shown } from "./parts/outputs";
import { added } from "./run";

export type Turn =
  | { kind: "person"; text: string }
  | { kind: "model"; text: string }
  | { kind: "thinking"; text: string }
  | { kind: "code"; call: string; code: string; shown: Shown[]; result: Result | null; running: boolean }
  | { kind: "tool"; call: string; name: string; arguments: string; text: string; failed: boolean }
  | { kind: "question"; id: string; asked: Asked; open: boolean; approval: boolean }
  | { kind: "notice"; text: string };

/** A question as MCP's elicitation has it: words, and the fields of the answer. */
export interface Asked {
  message: string;
  requestedSchema?: { properties?: Record<string, Field> };
}

export interface Field {
  type?: string;
  title?: string;
  enum?: string[];
  enumNames?: string[];
  oneOf?: { const: string; title: string }[];
}

export interface Conversation {
  id: string;
  turns: Signal<Turn[]>;
  answering: Signal<boolean>;
  trouble: Signal<string>;
  tokens: Signal<number>;
}

/** The session of the conversation that the page shows: its questions stand there. */
export const sessionInSight = signal("");

export function newConversation(id: string): Conversation {
  const talk = { id, turns: signal<Turn[]>([]), answering: signal(false), trouble: signal(""), tokens: signal(0) };
  if (id) open.set(id, talk);
  return talk;
}

const open = new Map<string, Conversation>();

/** Returns a conversation of this tab, or one that is there and is read from its beginning. */
export function recall(id: string): Conversation {
  const known = open.get(id);
  if (known) return known;
  const talk = newConversation(id);
  if (id) void rejoin(talk);
  return talk;
}

/** Asks, and shows the answer as it comes. */
export async function ask(talk: Conversation, text: string): Promise<void> {
  await follow(talk, (_, signal) => stream("POST", `${path("conversations", talk.id)}/messages`, { body: { text }, signal }));
}

/** Goes on with an answer that is under way. */
export async function rejoin(talk: Conversation): Promise<void> {
  await follow(talk, (after, signal) => events(talk, after, signal));
}

function events(talk: Conversation, after: string, signal: AbortSignal): AsyncGenerator<ServerEvent> {
  return stream("GET", `${path("conversations", talk.id)}/events`, { after, signal });
}

async function follow(talk: Conversation, first: Parameters<typeof followed>[0]): Promise<void> {
  const again: typeof first = (after, signal) => events(talk, after, signal);
  talk.answering.value = true;
  talk.trouble.value = "";
  try {
    // The server ends the stream with the answer.
    for await (const event of followed(first, again, () => true)) take(talk, event);
  } catch (error) {
    if (error instanceof Problem) talk.trouble.value = error.message;
  }
  talk.answering.value = false;
}

function take(talk: Conversation, event: ServerEvent): void {
  const { data } = event;
  const text = String(data["text"] ?? "");
  if (event.event === "asked") push(talk, { kind: "person", text });
  else if (event.event === "failed") talk.trouble.value = String(data["detail"]);
  else if (event.event === "cancelled") push(talk, { kind: "notice", text: "The answer was stopped." });
  else if (event.event === "approval" || event.event === "question")
    push(talk, { kind: "question", id: String(data["id"]), asked: data["asked"] as unknown as Asked, open: true, approval: event.event === "approval" });
  else if (event.event === "approval_ended" || event.event === "question_ended") closeQuestion(talk, String(data["id"]));
  else if (event.event === "text") grow(talk, "model", text);
  else if (event.event === "thinking") grow(talk, "thinking", text);
  else if (event.event === "code_written" || event.event === "cell_started")
    putCode(talk, data, (turn) => ({ ...turn, code: String(data["code"]), running: event.event === "cell_started" }));
  else if (event.event === "cell_event") putCode(talk, data, (turn) => ({ ...turn, shown: shownAfter(turn.shown, event, talk.id) }));
  else if (event.event === "cell_ended")
    putCode(talk, data, (turn) => ({ ...turn, running: false, result: data["result"] as unknown as Result }));
  else if (event.event === "tool_started")
    push(talk, { kind: "tool", call: String(data["call"]), name: String(data["name"]), arguments: String(data["arguments"]), text: "", failed: false });
  else if (event.event === "tool_ended") endTool(talk, data, text);
  else if (event.event === "notice") push(talk, { kind: "notice", text });
  else if (event.event === "helper_started") push(talk, { kind: "notice", text: `A helper begins: ${data["task"]}` });
  else if (event.event === "usage_told" || event.event === "done") count(talk, data);
}

function push(talk: Conversation, turn: Turn): void {
  talk.turns.value = [...talk.turns.value, turn];
}

function grow(talk: Conversation, kind: "model" | "thinking", text: string): void {
  const last = talk.turns.value.at(-1);
  if (last?.kind === kind) talk.turns.value = [...talk.turns.value.slice(0, -1), { ...last, text: last.text + text }];
  else push(talk, { kind, text });
}

type CodeTurn = Extract<Turn, { kind: "code" }>;

function putCode(talk: Conversation, data: Json, change: (turn: CodeTurn) => CodeTurn): void {
  const call = String(data["call"]);
  const isIt = (turn: Turn): turn is CodeTurn => turn.kind === "code" && turn.call === call;
  if (!talk.turns.value.some(isIt)) push(talk, { kind: "code", call, code: "", shown: [], result: null, running: false });
  talk.turns.value = talk.turns.value.map((turn) => (isIt(turn) ? change(turn) : turn));
}

function shownAfter(shown: Shown[], { data, id }: ServerEvent, conversation: string): Shown[] {
  const event = data["event"] as Json;
  const place = { shown: signal(shown), execution: signal(conversation), progress: signal("") };
  return added(place, { event: String(event["type"]), data: event, id });
}

function endTool(talk: Conversation, data: Json, text: string): void {
  talk.turns.value = talk.turns.value.map((turn) =>
    turn.kind === "tool" && turn.call === data["call"] ? { ...turn, text, failed: Boolean(data["failed"]) } : turn,
  );
}

function closeQuestion(talk: Conversation, id: string): void {
  talk.turns.value = talk.turns.value.map((turn) => (turn.kind === "question" && turn.id === id ? { ...turn, open: false } : turn));
}

function count(talk: Conversation, data: Json): void {
  const total = data["total"] as Json | undefined;
  if (total) talk.tokens.value = Number(total["input_tokens"] ?? 0) + Number(total["output_tokens"] ?? 0);
}
