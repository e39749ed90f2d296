/** Streams that last, of all tabs together: a browser has six connections to one server, and Stop must have one. */

import { Problem, type ServerEvent } from "./api";

/** Lines that all tabs share; one more is for the stream of events. What a person does has the rest. */
const LINES = ["divingbell.line.1", "divingbell.line.2", "divingbell.line.3"];
/** While other tabs hold all lines: so long a stream is open, and so long it is closed then. */
const LOOK = 400;
const LOOK_EVERY = 1_000;
const ATTEMPTS = 5;
/** Browsers have locks where the page came over TLS or from this machine; elsewhere each tab has lines of its own. */
const locks = navigator.locks as LockManager | undefined;

type Open = (after: string, signal: AbortSignal) => AsyncGenerator<ServerEvent>;

/** Does something that only one tab shall do at a time, after those that came before. */
export async function alone(name: string, signal: AbortSignal, work: () => Promise<void>): Promise<void> {
  if (locks) await locks.request(name, { signal }, work);
  else await work();
}

/**
 * Yields the events of something that takes long, until `isWhole` says so. `first` opens its stream, `again` goes on after an
 * event: where the connection broke, or where other tabs hold all lines and this one looks now and then.
 */
export async function* followed(first: Open, again: Open, isWhole: () => boolean): AsyncGenerator<ServerEvent> {
  let open = first;
  let after = "";
  for (let failures = 0; failures < ATTEMPTS; ) {
    const release = await takeLine();
    const control = new AbortController();
    let closing: ReturnType<typeof setTimeout> | undefined;
    const close = (): void => {
      if (!release) closing ??= setTimeout(() => control.abort(), LOOK);
    };
    if (open === again) close(); // the first event of what was begun says where it goes on
    try {
      for await (const event of open(after, control.signal)) {
        after = event.id || after;
        failures = 0;
        yield event;
        close();
      }
      if (isWhole()) return;
      failures += 1;
    } catch (error) {
      if (error instanceof Problem && error.status > 0) throw error;
      if (!control.signal.aborted) failures += 1;
    } finally {
      clearTimeout(closing);
      control.abort();
      release?.();
    }
    await new Promise((resume) => setTimeout(resume, failures ? 300 * failures : LOOK_EVERY));
    open = again;
  }
}

/** Takes a line, and returns what gives it back; null where all are taken. */
async function takeLine(): Promise<(() => void) | null> {
  if (!locks) return () => {};
  for (const name of LINES) {
    const release = await new Promise<(() => void) | null>((taken) => {
      void locks.request(name, { ifAvailable: true }, (lock) =>
        lock ? new Promise<void>((given) => taken(given)) : taken(null),
      );
    });
    if (release) return release;
  }
  return null;
}
