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
    const where = `${path("sessions", session)}/files?path=${encodeURIComponent(folder)}`;
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
          {found.map((file) => (
            <FileRow key={file.path} file={file} session={session} open={setFolder} gone={() => void look()} />
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

function FileRow(props: { file: FileInfo; session: string; open: (folder: string) => void; gone: () => void }) {
  const { file, session } = props;
  const name = file.path.split("/").at(-1) ?? file.path;
  const where = filePath(session, file.path);
  const removed = async (): Promise<void> => {
    if (await notebook.told(() => remove(where))) props.gone();
  };
  return (
    <li>
      <Icon name={file.kind === "folder" ? "folder" : "file"} size={16} />
      {file.kind === "folder" ? (
        <button type="button" class="link name" onClick={() => props.open(file.path)}>{name}</button>
      ) : (
        <a class="name" href={address(where)} download={name}>{name}</a>
      )}
      <span class="quiet">{file.kind === "file" ? bytes(file.size) : ""}</span>
      <span class="quiet when">{moment(file.modified)}</span>
      {file.kind !== "folder" && <IconButton icon="trash" label={`Delete ${name}`} onClick={() => void removed()} />}
    </li>
  );
}
