/** Skills: functions that were saved, with their code, their uses and their versions. */

import { useEffect, useState } from "preact/hooks";

import { get, type Page, path, post, remove } from "../api";
import { count, moment, shortCount } from "../format";
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
  state: string;
  reason: string;
  tools: string[];
  saved_at: string;
  uses: number;
  failures: number;
  tokens_saved: number;
}

interface Whole {
  skill: Skill;
  code: string | null;
  files: string[];
  versions: Skill[];
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
        <p class="empty card">No skill is saved. Code keeps a function for later with <code>save_skill(name, function, description)</code>.</p>
      )}
      <ul class="skill-list">
        {skills?.map((skill) => (
          <li class="card">
            <a class="title" href={link("skills", skill.name)}>{skill.name}</a>
            <p>{skill.description}</p>
            <Uses skill={skill} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Uses({ skill }: { skill: Skill }) {
  return (
    <>
      <p class="quiet">
        version {skill.version}, {moment(skill.saved_at)} · used {count(skill.uses)} times
        {skill.failures > 0 && ` (${count(skill.failures)} failed)`} · {shortCount(skill.tokens_saved)} tokens saved
        {skill.tools.length > 0 && ` · calls ${skill.tools.join(", ")}`}
      </p>
      {skill.reason && <p class="note">{skill.state}: {skill.reason}</p>}
    </>
  );
}

function One({ name }: { name: string }) {
  const [whole, setWhole] = useState<Whole | null>(null);
  const [trouble, setTrouble] = useState("");
  const look = (): void => {
    get<Whole>(path("skills", name)).then(setWhole).catch((error: Error) => setTrouble(error.message));
  };
  useEffect(look, [name]);
  const rollback = async (version: number): Promise<void> => {
    if (!(await told(() => post(`${path("skills", name)}/rollback`, { version })))) return;
    say(`${name} is as in version ${version} again.`);
    look();
  };
  const dropped = async (): Promise<void> => {
    if (await told(() => remove(path("skills", name)))) go("skills");
  };
  return (
    <section class="page">
      <header class="page-head">
        <a class="back" href={link("skills")}><Icon name="back" /> Skills</a>
        <h1>{name}</h1>
        {whole && <button type="button" class="danger" disabled={!may("run")} onClick={() => void dropped()}>Delete</button>}
      </header>
      {trouble && <p class="refusal">{trouble}</p>}
      {whole && (
        <>
          <p>{whole.skill.description}</p>
          <Uses skill={whole.skill} />
          {whole.code !== null && <Code code={whole.code} label={`Code of ${name}`} />}
          <h2 class="versions">Versions</h2>
          <ul class="skill-list">
            {whole.versions.map((each) => (
              <li class="card row" key={each.version}>
                <strong>Version {each.version}</strong>
                <span class="quiet">{moment(each.saved_at)} · used {count(each.uses)} times</span>
                <span class="grow" />
                {each.version === whole.skill.version ? (
                  <span class="mark">in use</span>
                ) : (
                  <button type="button" class="small" disabled={!may("run")} onClick={() => void rollback(each.version)}>Use version {each.version} again</button>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
