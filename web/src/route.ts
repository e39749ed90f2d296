/** The page that is shown: a word behind the # of the address, with what it is about. */

import { signal } from "@preact/signals";

function current(): { page: string; about: string } {
  const [page = "", ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  return { page: page || "cells", about: decode(rest.join("/")) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return ""; // an address that somebody has typed wrong
  }
}

export const route = signal(current());

addEventListener("hashchange", () => {
  route.value = current();
});

export function link(page: string, about = ""): string {
  return about ? `#/${page}/${encodeURIComponent(about)}` : `#/${page}`;
}

export function go(page: string, about = ""): void {
  location.hash = link(page, about);
}
