/** Short words in the corner, which go by themselves. */

import { signal } from "@preact/signals";

const LINGER = 6000;

interface Notice {
  key: number;
  text: string;
}

const notices = signal<Notice[]>([]);
let keys = 0;

export function say(text: string): void {
  keys += 1;
  const notice = { key: keys, text };
  notices.value = [...notices.value.slice(-3), notice];
  setTimeout(() => {
    notices.value = notices.value.filter((each) => each !== notice);
  }, LINGER);
}

export function Notices() {
  return (
    <div class="notices" role="status" aria-live="polite">
      {notices.value.map(({ key, text }) => <p key={key}>{text}</p>)}
    </div>
  );
}
