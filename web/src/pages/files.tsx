/** Files of a session's workspace: dropped in, looked through, taken out. */

import { useEffect, useRef, useState } from "preact/hooks";

import { address, filePath, get, type Page, path, remove, upload } from "../api";
import { bytes, moment } from "../format";
import { ended, sessions } from "../live";
import type { FileInfo } from "../model";
import { say } from "../notices";
import * as notebook from "../notebook";
import { Icon, IconButton } from "../parts/icons";

export function Files() {
  const names = [...new Set([notebook.session.value, ...sessions.value.map(({ id }) => id)])];
  return (
    <section class="page narrow">
      <header class="page-head">
        <h1>Files</h1>
        <label class="session-choice">
          <span class="unseen">Session</span>
          <select value={notebook.session.value} onChange={(event) => notebook.choose(event.currentTarget.value)}>
            {names.map((name) => <option>{name}</option>)}
          </select>
        </label>
      </header>
      <div class="card"><FilesPanel session={notebook.session.value} /></div>
    </section>
  );
}

export function FilesPanel({ session }: { session: string }) {
  const [folder, setFolder] = useState("");
  const [found, setFound] = useState<FileInfo[]>([]);
  const [over, setOver] = useState(false);
  const picker = useRef<HTMLInputElement>(null);
  const exists = sessions.value.some(({ id }) => id === session);
  const after = ended.value;

  const look = async (): Promise<void> => {
    if (!exists) return setFound([]);
    const where = `${path("sessions", session)}/files?limit=200&path=${encodeURIComponent(folder)}`;
    setFound((await get<Page<FileInfo>>(where).catch(() => ({ items: [] }))).items);
  };
  useEffect(() => void look(), [session, folder, after, exists]);
  useEffect(() => setFolder(""), [session]);

  const take = async (files: Iterable<File>): Promise<void> => {
    for (const file of files) {
      const name = folder ? `${folder}/${file.name}` : file.name;
      if (await notebook.told(() => upload(filePath(session, name), file))) say(`${file.name} is in the session's workspace.`);
    }
    await look();
  };
  const dropped = (event: DragEvent): void => {
    event.preventDefault();
    setOver(false);
    if (event.dataTransfer) void take(event.dataTransfer.files);
  };
  return (
    <div
      class={`files ${over ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={dropped}
    >
      <div class="row files-head">
        <Trail folder={folder} open={setFolder} />
        <span class="grow" />
        <IconButton icon="refresh" label="Look again" onClick={() => void look()} />
      </div>
      {found.length > 0 && (
        <ul class="file-list">
          {foldersIn(found, folder).map((name) => (
            <li key={`${name}/`}>
              <Icon name="folder" size={16} />
              <button type="button" class="link name" onClick={() => setFolder(folder ? `${folder}/${name}` : name)}>{name}</button>
            </li>
          ))}
          {filesIn(found, folder).map((file) => (
            <FileRow key={file.path} file={file} session={session} gone={() => void look()} />
          ))}
        </ul>
      )}
      <button type="button" class="drop" onClick={() => picker.current?.click()}>
        <Icon name="upload" /> <span>Drop files here, or click to choose</span>
      </button>
      <input
        ref={picker}
        type="file"
        multiple
        hidden
        aria-label="Files to upload"
        onChange={(event) => {
          void take([...(event.currentTarget.files ?? [])]);
          event.currentTarget.value = "";
        }}
      />
    </div>
  );
}

function Trail({ folder, open }: { folder: string; open: (folder: string) => void }) {
  const parts = folder ? folder.split("/") : [];
  return (
    <nav class="trail" aria-label="Folder">
      <button type="button" class="link" onClick={() => open("")}>/workspace</button>
      {parts.map((part, at) => (
        <>
          <span aria-hidden="true">/</span>
          <button type="button" class="link" onClick={() => open(parts.slice(0, at + 1).join("/"))}>{part}</button>
        </>
      ))}
    </nav>
  );
}

const below = (file: FileInfo, folder: string): string => file.path.slice(folder ? folder.length + 1 : 0);

/** Returns the folders that the paths of files name, one level down. */
function foldersIn(found: FileInfo[], folder: string): string[] {
  const names = found.map((file) => below(file, folder).split("/"));
  return [...new Set(names.filter((parts) => parts.length > 1).map(([first]) => first ?? ""))];
}

function filesIn(found: FileInfo[], folder: string): FileInfo[] {
  return found.filter((file) => !below(file, folder).includes("/"));
}

function FileRow(props: { file: FileInfo; session: string; gone: () => void }) {
  const { file, session } = props;
  const name = file.path.split("/").at(-1) ?? file.path;
  const where = filePath(session, file.path);
  const removed = async (): Promise<void> => {
    if (await notebook.told(() => remove(where))) props.gone();
  };
  return (
    <li>
      <Icon name="file" size={16} />
      <a class="name" href={address(where)} download={name}>{name}</a>
      <span class="quiet">{bytes(file.size)}</span>
      <span class="quiet when">{moment(file.modified_at)}</span>
      <IconButton icon="trash" label={`Delete ${name}`} onClick={() => void removed()} />
    </li>
  );
}
