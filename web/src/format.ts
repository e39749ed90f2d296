/** Figures as people read them. */

const UNITS = ["B", "kB", "MB", "GB", "TB"];

export function bytes(count: number | null | undefined): string {
  if (count === null || count === undefined) return "–";
  let value = count;
  let unit = 0;
  while (value >= 1000 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${value >= 100 || unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

export function seconds(milliseconds: number): string {
  if (milliseconds < 1) return "<1 ms";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 60_000) return `${(milliseconds / 1000).toFixed(1)} s`;
  return `${Math.floor(milliseconds / 60_000)} min ${Math.round((milliseconds % 60_000) / 1000)} s`;
}

const COUNT = new Intl.NumberFormat("en");

export const count = (value: number): string => COUNT.format(value);

export function shortCount(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (size >= 1e4) return `${Math.round(value / 1e3)} k`;
  return COUNT.format(value);
}

/** Returns a date of the API as a local time: the hour alone where it was today. */
export function moment(value: string | number | null): string {
  if (value === null || value === "") return "–";
  const date = new Date(typeof value === "number" ? value * 1000 : value);
  const today = date.toDateString() === new Date().toDateString();
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return today ? time : `${date.toLocaleDateString([], { month: "short", day: "numeric" })} ${time}`;
}

/** Returns how long from now a moment is, in words. */
export function until(value: string | null, now = Date.now()): string {
  if (!value) return "–";
  const minutes = Math.round((Date.parse(value) - now) / 60_000);
  if (minutes < 1) return "soon";
  return minutes < 90 ? `in ${minutes} min` : `in ${Math.round(minutes / 60)} h`;
}
