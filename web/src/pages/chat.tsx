/** Chat: a conversation with the agent, with its code and what that shows, as it comes. */

import { useEffect, useRef, useState } from "preact/hooks";

import { get, type Page, path, post, remove } from "../api";
import { ask, type Conversation, newConversation, recall, sessionInSight, type Turn } from "../conversation";
import { moment, seconds, shortCount } from "../format";
import { may, me } from "../live";
import { told } from "../notebook";
import { ApprovalsOf } from "../parts/approval";
import { Code } from "../parts/code";
import { Icon, IconButton } from "../parts/icons";
import { Markdown } from "../parts/markdown";
import { FailureBox, Shows } from "../parts/outputs";
import { QuestionCard } from "../parts/question";
import { marker, shown, turnOn } from "../real_values";
import { go, link, route } from "../route";

export interface Talk {
  id: string;
  title: string;
  session: string;
  created_at: string;
}

export function Chat() {
  const [talks, setTalks] = useState<Talk[]>([]);
  const id = route.value.about;
  const look = (): void => {
    get<Page<Talk>>("conversations?limit=50").then(({ items }) => setTalks(items)).catch(() => setTalks([]));
  };
  useEffect(look, [id]);
  const dropped = async (talk: Talk): Promise<void> => {
    if (!(await told(() => remove(path("conversations", talk.id))))) return;
    if (talk.id === id) go("chat");
    look();
  };
  return (
    <section class="chat">
      <nav class="talks" aria-label="Conversations">
        <h1 class="unseen">Chat</h1>
        <button type="button" class="primary" disabled={!may("run")} onClick={() => go("chat")}>
          <Icon name="plus" /> New conversation
        </button>
        <ul>
          {talks.map((talk) => (
            <li key={talk.id}>
              <a href={link("chat", talk.id)} aria-current={talk.id === id ? "page" : undefined} title={moment(talk.created_at)}>{talk.title || "Untitled"}</a>
              <IconButton icon="trash" label={`Delete ${talk.title || "this conversation"}`} onClick={() => void dropped(talk)} />
            </li>
          ))}
        </ul>
      </nav>
      <Thread key={id} id={id} session={talks.find((each) => each.id === id)?.session ?? ""} changed={look} />
    </section>
  );
}

function Thread({ id, session, changed }: { id: string; session: string; changed: () => void }) {
  const [talk, setTalk] = useState<Conversation>(() => recall(id));
  const turns = useRef<HTMLDivElement>(null);
  const answering = talk.answering.value;
  const count = talk.turns.value.length;
  useEffect(() => {
    turns.current?.scrollTo({ top: turns.current.scrollHeight });
  }, [count, answering]);

  useEffect(() => {
    if (session) sessionInSight.value = session;
  }, [session]);
  useEffect(() => () => void (sessionInSight.value = ""), []);

  const sent = async (text: string): Promise<void> => {
    let current = talk;
    if (!current.id) {
      const made = await post<Talk>("conversations").catch((error: Error) => {
        talk.trouble.value = error.message;
        return null;
      });
      if (!made) return;
      current = newConversation(made.id);
      sessionInSight.value = made.session;
      setTalk(current);
      history.replaceState(null, "", link("chat", made.id));
    }
    await ask(current, text);
    changed();
  };
  return (
    <div class="thread">
      <div class="turns" ref={turns} tabIndex={0} role="log" aria-label="Conversation">
        {count === 0 && !answering && <Empty />}
        {talk.turns.value.map((turn, at) => <TurnBox key={at} turn={turn} talk={talk} />)}
        {sessionInSight.value && <ApprovalsOf session={sessionInSight.value} />}
        {answering && <p class="foot"><span class="pulse" /> answering</p>}
        {talk.trouble.value && <p class="refusal" role="alert">{talk.trouble.value}</p>}
      </div>
      <Composer talk={talk} send={sent} />
    </div>
  );
}

function Empty() {
  return (
    <div class="beginning">
      <h2>Ask something</h2>
      <p>The model writes code, the sandbox runs it with your tools, and you see all of it as it comes.</p>
    </div>
  );
}

function Composer({ talk, send }: { talk: Conversation; send: (text: string) => Promise<void> }) {
  const [text, setText] = useState("");
  const answering = talk.answering.value;
  const submitted = (event: Event): void => {
    event.preventDefault();
    if (!text.trim() || answering) return;
    setText("");
    void send(text.trim());
  };
  const pressed = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submitted(event);
  };
  return (
    <div class="composer">
      <form onSubmit={submitted}>
        <textarea rows={1} aria-label="Your question" placeholder="What should be found out?" value={text} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={pressed} />
        {answering ? (
          <button type="button" class="danger" onClick={() => void told(() => post(`${path("conversations", talk.id)}/cancel`))}><Icon name="stop" size={14} /> Stop</button>
        ) : (
          <button type="submit" class="primary" disabled={!text.trim() || !may("run")}><Icon name="send" /> Send</button>
        )}
      </form>
      <p class="quiet row">
        {talk.tokens.value > 0 && <span>{shortCount(talk.tokens.value)} tokens</span>}
        {me.value?.privacy !== "off" && may("reveal") && (
          <label><input type="checkbox" checked={shown.value} onChange={(event) => turnOn(event.currentTarget.checked)} /> Show real values where the model reads tokens</label>
        )}
      </p>
    </div>
  );
}

function TurnBox({ turn, talk }: { turn: Turn; talk: Conversation }) {
  const mark = marker(talk.id);
  if (turn.kind === "person") return <div class="turn person">{mark(turn.text)}</div>;
  if (turn.kind === "model") return <div class="turn model"><Markdown text={turn.text} mark={mark} /></div>;
  // Who may approve has the card with the four words in its place.
  if (turn.kind === "question" && turn.approval && may("approve")) return null;
  if (turn.kind === "question") return turn.open ? <QuestionCard key={turn.id} id={turn.id} asked={turn.asked} conversation={talk.id} /> : null;
  if (turn.kind === "notice") return <p class="note">{turn.text}</p>;
  if (turn.kind === "thinking")
    return <details class="turn thinking"><summary>Thinking</summary><p>{mark(turn.text)}</p></details>;
  if (turn.kind === "tool")
    return (
      <details class="turn calls">
        <summary><code>{turn.name}</code> {turn.failed && <span class="bad">failed</span>}</summary>
        <Code code={`${turn.arguments}\n\n${turn.text}`} label="Call" />
      </details>
    );
  return (
    <div class="turn ran">
      <Code code={turn.code} label="Code of the model" />
      {(turn.running || turn.result || turn.shown.length > 0) && (
        <div class="cell-output">
          <Shows shown={turn.shown} mark={mark} />
          {turn.result?.failure && <FailureBox failure={turn.result.failure} />}
          {turn.result ? <p class="foot"><span class={`mark ${turn.result.status === "ok" ? "good" : "bad"}`}>{turn.result.status}</span>{seconds(turn.result.execution_time_ms)}</p> : <p class="foot"><span class="pulse" /> running</p>}
        </div>
      )}
    </div>
  );
}
