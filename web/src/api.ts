/** Requests to the API: answers as data, failures as words, streams as events. */

export type Json = Record<string, unknown>;

export interface Page<Item> {
  items: Item[];
  next: string | null;
}

export interface ServerEvent<Data = Json> {
  id: string;
  event: string;
  data: Data;
}

/** A refusal by the server, in its own words (RFC 9457). */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    detail: string,
    readonly retryAfter: number,
  ) {
    super(detail);
  }
}

const BASE = "/api/v1/";
let signedOut: () => void = () => {};

/** Names what is done when the server no longer knows us. */
export function onSignedOut(action: () => void): void {
  signedOut = action;
}

/** Returns the path with each part made safe for an address. */
export function path(...parts: string[]): string {
  return parts.map(encodeURIComponent).join("/");
}

/** Returns a path of files, whose slashes stay slashes. */
export function filePath(session: string, file: string): string {
  return `${path("sessions", session, "files")}/${file.split("/").map(encodeURIComponent).join("/")}`;
}

export function address(operation: string): string {
  return BASE + operation;
}

async function send(method: string, where: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(where, { method, ...init });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "unreachable", "The server can't be reached. Is it still running?", 0);
  }
  if (answer.ok) return answer;
  if (answer.status === 401 && where.startsWith(BASE)) signedOut();
  throw await problem(answer);
}

async function problem(answer: Response): Promise<Problem> {
  const told = (await answer.json().catch(() => ({}))) as Json;
  const words = told["detail"] ?? told["title"] ?? `The server answered ${answer.status}.`;
  const retry = Number(answer.headers.get("retry-after") ?? 0);
  return new Problem(answer.status, String(told["code"] ?? ""), String(words), retry);
}

/** Asks and returns the answer's data; nothing for an empty answer. */
export async function call<Answer = Json>(
  method: string,
  operation: string,
  body?: unknown,
): Promise<Answer> {
  const init: RequestInit = { headers: { accept: "application/json" } };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { accept: "application/json", "content-type": "application/json" };
  }
  const where = operation.startsWith("/") ? operation : BASE + operation;
  const answer = await send(method, where, init);
  const text = await answer.text();
  return (text ? JSON.parse(text) : undefined) as Answer;
}

export const get = <Answer>(operation: string): Promise<Answer> => call<Answer>("GET", operation);
export const post = <Answer = Json>(operation: string, body: unknown = {}): Promise<Answer> =>
  call<Answer>("POST", operation, body);
export const remove = (operation: string): Promise<unknown> => call("DELETE", operation);

/** Sends a file's bytes. */
export async function upload(operation: string, file: Blob): Promise<void> {
  await send("PUT", BASE + operation, { body: file });
}

/** Asks for events and yields them as they come, until the server ends the stream. */
export async function* stream(
  method: string,
  operation: string,
  options: { body?: unknown; after?: string; signal?: AbortSignal } = {},
): AsyncGenerator<ServerEvent> {
  const headers: Record<string, string> = { accept: "text/event-stream" };
  const init: RequestInit = { headers };
  if (options.body !== undefined) {
    headers["content-type"] = "application/json";
    init.body = JSON.stringify(options.body);
  }
  if (options.after) headers["last-event-id"] = options.after;
  if (options.signal) init.signal = options.signal;
  const answer = await send(method, BASE + operation, init);
  if (answer.body) yield* events(answer.body);
}

async function* events(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as unknown as ReadableWritablePair<string, Uint8Array>).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).split(/\r?\n\r?\n/);
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        const event = parsed(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {}); // the connection is gone already, or goes with this
  }
}

function parsed(block: string): ServerEvent | null {
  const event: ServerEvent = { id: "", event: "message", data: {} };
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const at = line.indexOf(":");
    if (at < 1) continue; // a comment that keeps the connection alive
    const value = line.slice(at + 1).replace(/^ /, "");
    const field = line.slice(0, at);
    if (field === "data") data.push(value);
    else if (field === "event") event.event = value;
    else if (field === "id") event.id = value;
  }
  if (!data.length) return null;
  event.data = JSON.parse(data.join("\n")) as Json;
  return event;
}
