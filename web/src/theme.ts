/** Light or dark: as the system has it, until a person chooses. */

import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const KEY = "divingbell.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const chosen = signal(localStorage.getItem(KEY) as Theme | null);
export const theme = signal<Theme>("light");

function follow(): void {
  theme.value = chosen.value ?? (system.matches ? "dark" : "light");
}

system.addEventListener("change", follow);
effect(follow);
effect(() => {
  document.documentElement.dataset["theme"] = theme.value;
});

export function turn(): void {
  chosen.value = theme.value === "dark" ? "light" : "dark";
  localStorage.setItem(KEY, chosen.value);
}
