/** The variables of a session, as descriptions. */

import { useEffect, useState } from "preact/hooks";

import { get, path } from "../api";
import { ended, sessions } from "../live";

interface Variable {
  name: string;
  type: string;
  shape: number[] | null;
  length: number | null;
  preview: string | null;
}

export function VariablesPanel({ session }: { session: string }) {
  const [found, setFound] = useState<Variable[] | null>(null);
  const running = sessions.value.find(({ id }) => id === session)?.state;
  const after = ended.value;
  useEffect(() => {
    if (running !== "idle") return;
    get<{ items: Variable[] }>(`${path("sessions", session)}/variables`)
      .then(({ items }) => setFound(items))
      .catch(() => setFound(null)); // it runs again already, or is gone
  }, [session, running, after]);
  if (!found?.length) return <p class="empty">Variables are listed here after a cell has run.</p>;
  return (
    <ul class="variables">
      {found.map((each) => (
        <li>
          <code class="name">{each.name}</code>
          <span class="quiet">{each.type}{each.shape ? ` ${each.shape.join(" × ")}` : each.length !== null ? ` of ${each.length}` : ""}</span>
          {each.preview && <code class="preview">{each.preview}</code>}
        </li>
      ))}
    </ul>
  );
}
