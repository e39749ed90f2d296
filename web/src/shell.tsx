/** The frame around every page: where one is, where one can go, and what waits for an answer. */

import { effect, signal } from "@preact/signals";
import type { VNode } from "preact";

import { post } from "./api";
import { sessionInSight } from "./conversation";
import { approvals, connected, end, may, me, signedIn, waiting } from "./live";
import type { Approval } from "./model";
import * as notebook from "./notebook";
import { Notices } from "./notices";
import { Approvals } from "./pages/approvals";
import { Audit } from "./pages/audit";
import { Cells } from "./pages/cells";
import { Chat } from "./pages/chat";
import { Files } from "./pages/files";
import { Login } from "./pages/login";
import { Savings } from "./pages/savings";
import { Sessions } from "./pages/sessions";
import { Skills } from "./pages/skills";
import { Tools } from "./pages/tools";
import { ApprovalCard } from "./parts/approval";
import { Icon, IconButton, type IconName } from "./parts/icons";
import { link, route } from "./route";
import { theme, turn } from "./theme";

interface Place {
  name: IconName;
  title: string;
  page: () => VNode;
  shown?: () => boolean;
}

const PLACES: Place[] = [
  { name: "cells", title: "Cells", page: () => <Cells /> },
  { name: "chat", title: "Chat", page: () => <Chat />, shown: () => me.value?.features.conversations ?? false },
  { name: "sessions", title: "Sessions", page: () => <Sessions /> },
  { name: "files", title: "Files", page: () => <Files /> },
  { name: "tools", title: "Tools", page: () => <Tools /> },
  { name: "approvals", title: "Approvals", page: () => <Approvals /> },
  { name: "savings", title: "Savings", page: () => <Savings /> },
  { name: "skills", title: "Skills", page: () => <Skills />, shown: () => me.value?.features.skills ?? false },
  { name: "audit", title: "Audit", page: () => <Audit />, shown: () => me.value?.features.audit ?? false },
];

const menuOpen = signal(false);

effect(() => {
  route.value; // another page closes the menu
  menuOpen.value = false;
});

const placeNow = (): Place => PLACES.find(({ name }) => name === route.value.page) ?? PLACES[0]!;

effect(() => {
  document.title = `${waiting.value ? `(${waiting.value}) ` : ""}${placeNow().title} · Divingbell`;
});

export function Shell() {
  if (signedIn.value !== true) return <Login />;
  const place = placeNow();
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>To the page</a>
      <Bar />
      <Navigation current={place} />
      <main id="main" tabIndex={-1}>
        {!connected.value && <p class="away" role="status">The server can't be reached at the moment. Trying again …</p>}
        {place.page()}
      </main>
      <Dock hidden={place.name === "approvals"} />
      <Notices />
    </>
  );
}

function Bar() {
  return (
    <header class="bar">
      <IconButton icon={menuOpen.value ? "close" : "menu"} label={menuOpen.value ? "Close the menu" : "Open the menu"} onClick={() => (menuOpen.value = !menuOpen.value)} />
      <span class="brand"><Bell /> Divingbell</span>
      <span class="grow" />
      {waiting.value > 0 && <a class="badge" href={link("approvals")} aria-label={`${waiting.value} approvals wait`}>{waiting.value}</a>}
    </header>
  );
}

function Bell() {
  return (
    <svg class="bell" width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <path d="M8 23v-7a8 8 0 0 1 16 0v7M5.500 23.500h21M16 4.500v3.500" />
      <circle cx="16" cy="16.500" r="2.600" />
    </svg>
  );
}

function Navigation({ current }: { current: Place }) {
  const dark = theme.value === "dark";
  return (
    <nav class={`navigation ${menuOpen.value ? "open" : ""}`} aria-label="Pages">
      <span class="brand"><Bell /> Divingbell</span>
      <ul>
        {PLACES.filter(({ shown }) => shown?.() ?? true).map(({ name, title }) => (
          <li>
            <a href={link(name)} aria-current={current.name === name ? "page" : undefined}>
              <Icon name={name} /> {title}
              {name === "approvals" && waiting.value > 0 && <span class="badge">{waiting.value}</span>}
            </a>
          </li>
        ))}
      </ul>
      <div class="who">
        <p><strong>{me.value?.user}</strong></p>
        <p class="quiet">{me.value?.backend} · {me.value?.version}</p>
        <div class="row">
          <IconButton icon={dark ? "sun" : "moon"} label={dark ? "Light" : "Dark"} onClick={turn} />
          <IconButton icon="leave" label="Sign out" onClick={() => void left()} />
        </div>
      </div>
    </nav>
  );
}

async function left(): Promise<void> {
  await post("/logout").catch(() => {}); // without the server there is nothing to leave
  end();
  signedIn.value = false;
}

/** The approval that has waited longest, on whatever page one is. */
function Dock({ hidden }: { hidden: boolean }) {
  const elsewhere = approvals.value.filter((each) => !isInSight(each));
  const [first, ...more] = elsewhere;
  if (hidden || !first || !may("approve")) return null;
  return (
    <section class="dock" role="alert" aria-label="An approval waits">
      <ApprovalCard key={first.id} approval={first} />
      {more.length > 0 && <a href={link("approvals")}>and {more.length} more</a>}
    </section>
  );
}

/** Whether the page shows the approval itself, in the cell or the conversation that waits. */
function isInSight({ execution, session }: Approval): boolean {
  if (route.value.page === "chat") return session === sessionInSight.value;
  return route.value.page === "cells" && notebook.cells.value.some(({ run }) => execution !== null && run.execution.value === execution);
}
