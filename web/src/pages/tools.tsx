/** Tools: searched as the model searches them, with the words that it reads. */

import { useEffect, useState } from "preact/hooks";

import { get, type Json, type Page, path } from "../api";
import { Code } from "../parts/code";
import { Icon } from "../parts/icons";

interface Server {
  name: string;
  state: string;
  tools: number;
  reason: string;
}

interface Tool {
  name: string;
  description: string;
}

const PAUSE = 150;

export function Tools() {
  const [servers, setServers] = useState<Server[] | null>(null);
  const [query, setQuery] = useState("");
  const [found, setFound] = useState<Tool[]>([]);
  const [open, setOpen] = useState("");
  const [trouble, setTrouble] = useState("");

  useEffect(() => {
    get<Page<Server>>("mcp/servers")
      .then(({ items }) => setServers(items))
      .catch((error: Error) => setTrouble(error.message));
  }, []);
  useEffect(() => {
    const later = setTimeout(() => {
      get<Page<Tool>>(`mcp/tools/search?query=${encodeURIComponent(query)}&detail_level=with_description&limit=50`)
        .then(({ items }) => setFound(items))
        .catch((error: Error) => setTrouble(error.message));
    }, PAUSE);
    return () => clearTimeout(later);
  }, [query]);

  return (
    <section class="page">
      <header class="page-head"><h1>Tools</h1></header>
      {servers && servers.length > 0 && (
        <ul class="server-list">
          {servers.map((server) => (
            <li class="card">
              <span class={`dot ${server.reason ? "bad" : "good"}`} />
              <strong>{server.name}</strong>
              <span class="quiet">{server.reason || `${server.tools} tools`}</span>
            </li>
          ))}
        </ul>
      )}
      <label class="search">
        <Icon name="search" />
        <span class="unseen">Search tools</span>
        <input type="search" placeholder="What should a tool do?" value={query} onInput={(event) => setQuery(event.currentTarget.value)} />
      </label>
      {trouble && <p class="refusal">{trouble}</p>}
      {!found.length && !trouble && (
        <p class="empty card">
          {servers?.length === 0
            ? "No MCP server is configured. Add one to divingbell.toml, and its tools are found here and by code."
            : "No tool is found."}
        </p>
      )}
      <ul class="tool-list">
        {found.map((tool) => (
          <li class="card" key={tool.name}>
            <button type="button" class="link title" aria-expanded={open === tool.name} onClick={() => setOpen(open === tool.name ? "" : tool.name)}>
              {tool.name}
            </button>
            <p>{tool.description}</p>
            {open === tool.name && <Details tool={tool} />}
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Returns the name of the server and that of its tool. */
function parts(name: string): [string, string] {
  const at = name.indexOf(".");
  return [name.slice(0, at), name.slice(at + 1)];
}

function Details({ tool }: { tool: Tool }) {
  const [told, setTold] = useState<Json | null>(null);
  useEffect(() => {
    get<Json>(path("mcp", "tools", ...parts(tool.name))).then(setTold).catch((error: Error) => setTold({ error: error.message }));
  }, [tool.name]);
  if (!told) return <p class="quiet">…</p>;
  return <Code code={JSON.stringify(told, null, 2)} label={`Details of ${tool.name}`} />;
}
