/** Skills: functions that were saved, with their code, their uses and their versions. */

import { useEffect, useState } from "preact/hooks";

import { get, type Page, path, post, remove } from "../api";
import { count, moment } from "../format";
import { may } from "../live";
import { say } from "../notices";
import { told } from "../notebook";
import { Code } from "../parts/code";
import { Icon } from "../parts/icons";
import { go, link, route } from "../route";

interface Skill {
  name: string;
  description: string;
  version: number;
  uses: number;
  last_used: string | null;
  warning: string | null;
}

interface Version {
  version: number;
  saved_at: string;
  code: string;
}

interface Details extends Skill {
  code: string;
  versions: Version[];
}

export function Skills() {
  const name = route.value.about;
  return name ? <One name={name} /> : <All />;
}

function All() {
  const [skills, setSkills] = useState<Skill[] | null>(null);
  const [trouble, setTrouble] = useState("");
  useEffect(() => {
    get<Page<Skill>>("skills?limit=100").then(({ items }) => setSkills(items)).catch((error: Error) => setTrouble(error.message));
  }, []);
  return (
    <section class="page">
      <header class="page-head"><h1>Skills</h1></header>
      {trouble && <p class="refusal">{trouble}</p>}
      {skills?.length === 0 && (
        <p class="empty card">No skill is saved. Code keeps a function for later with <code>save_skill(function)</code>.</p>
      )}
      <ul class="skill-list">
        {skills?.map((skill) => (
          <li class="card">
            <a class="title" href={link("skills", skill.name)}>{skill.name}</a>
            <p>{skill.description}</p>
            <p class="quiet">version {skill.version} · used {count(skill.uses)} times{skill.last_used ? `, last ${moment(skill.last_used)}` : ""}</p>
            {skill.warning && <p class="note">{skill.warning}</p>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function One({ name }: { name: string }) {
  const [skill, setSkill] = useState<Details | null>(null);
  const [shown, setShown] = useState<number | null>(null);
  const [trouble, setTrouble] = useState("");
  const look = (): void => {
    get<Details>(path("skills", name)).then(setSkill).catch((error: Error) => setTrouble(error.message));
  };
  useEffect(look, [name]);
  const rollback = async (version: number): Promise<void> => {
    if (!(await told(() => post(`${path("skills", name)}/rollback`, { version })))) return;
    say(`${name} is as in version ${version} again.`);
    setShown(null);
    look();
  };
  const dropped = async (): Promise<void> => {
    if (await told(() => remove(path("skills", name)))) go("skills");
  };
  const version = shown ?? skill?.version ?? 0;
  const code = skill?.versions.find((each) => each.version === version)?.code ?? skill?.code ?? "";
  return (
    <section class="page">
      <header class="page-head">
        <a class="back" href={link("skills")}><Icon name="back" /> Skills</a>
        <h1>{name}</h1>
        <span class="grow" />
        {skill && <button type="button" class="danger" disabled={!may("run")} onClick={() => void dropped()}>Delete</button>}
      </header>
      {trouble && <p class="refusal">{trouble}</p>}
      {skill && (
        <>
          <p>{skill.description}</p>
          <p class="quiet">used {count(skill.uses)} times{skill.last_used ? `, last ${moment(skill.last_used)}` : ""}</p>
          {skill.warning && <p class="note">{skill.warning}</p>}
          <div class="row versions">
            <label>Version{" "}
              <select value={String(version)} onChange={(event) => setShown(Number(event.currentTarget.value))}>
                {skill.versions.map((each) => (
                  <option value={String(each.version)}>{each.version}{each.version === skill.version ? " (in use)" : ""}, {moment(each.saved_at)}</option>
                ))}
              </select>
            </label>
            {version !== skill.version && (
              <button type="button" class="primary" disabled={!may("run")} onClick={() => void rollback(version)}>Use version {version} again</button>
            )}
          </div>
          <Code code={code} label={`Code of ${name}`} />
        </>
      )}
    </section>
  );
}
