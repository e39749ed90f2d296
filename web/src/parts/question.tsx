/** A question of a conversation, to be answered where it is asked. */

import { useState } from "preact/hooks";

import { path, post } from "../api";
import type { Asked, Field } from "../conversation";
import { told } from "../notebook";

type Content = Record<string, string | number | boolean>;

export function QuestionCard({ id, asked, conversation }: { id: string; asked: Asked; conversation: string }) {
  const fields = Object.entries(asked.requestedSchema?.properties ?? {});
  const [content, setContent] = useState<Content>(() => shownAtFirst(fields));
  const [sent, setSent] = useState(false);
  const [first] = fields;
  const choices = first && fields.length === 1 ? choicesOf(first[1]) : [];
  const answer = async (action: "accept" | "decline", given: Content): Promise<void> => {
    setSent(true);
    const body = action === "accept" ? { id, action, content: given } : { id, action };
    if (!(await told(() => post(`${path("conversations", conversation)}/answer`, body)))) setSent(false);
  };
  return (
    <div class="approval" role="group" aria-label="A question">
      <p class="asked">{asked.message}</p>
      {!choices.length && fields.map(([name, field]) => (
        <FieldInput key={name} name={name} field={field} changed={(value) => setContent({ ...content, [name]: value })} />
      ))}
      <div class="row">
        {choices.map(([value, title]) => (
          <button type="button" disabled={sent} onClick={() => void answer("accept", { [first![0]]: value })}>{title}</button>
        ))}
        {!choices.length && <button type="button" class="primary" disabled={sent} onClick={() => void answer("accept", content)}>Accept</button>}
        <button type="button" class="danger" disabled={sent} onClick={() => void answer("decline", {})}>Decline</button>
      </div>
    </div>
  );
}

/** Returns what is answered where nothing is changed: a list shows its first choice as chosen. */
function shownAtFirst(fields: [string, Field][]): Content {
  return Object.fromEntries(fields.flatMap(([name, field]) => choicesOf(field).slice(0, 1).map(([value]) => [name, value])));
}

/** Returns the values that a field can have, with their names. */
function choicesOf(field: Field): [string, string][] {
  if (field.oneOf) return field.oneOf.map((each) => [each.const, each.title]);
  return (field.enum ?? []).map((value, at) => [value, field.enumNames?.[at] ?? value]);
}

function FieldInput({ name, field, changed }: { name: string; field: Field; changed: (value: string | number | boolean) => void }) {
  const title = field.title ?? name;
  const choices = choicesOf(field);
  if (choices.length)
    return (
      <label>{title} <select onChange={(event) => changed(event.currentTarget.value)}>{choices.map(([value, words]) => <option value={value}>{words}</option>)}</select></label>
    );
  if (field.type === "boolean") return <label><input type="checkbox" onChange={(event) => changed(event.currentTarget.checked)} /> {title}</label>;
  const number = field.type === "number" || field.type === "integer";
  return (
    <label>{title} <input type="text" inputMode={number ? "decimal" : "text"} onInput={(event) => changed(number ? Number(event.currentTarget.value) : event.currentTarget.value)} /></label>
  );
}
