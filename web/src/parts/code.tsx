/** Code: to be written in an editor, or to be read. */

import { useEffect, useRef, useState } from "preact/hooks";

import type { EditorOptions } from "./editor";

const LONGEST_COLOURED = 200_000;
const loadEditor = () => import("./editor");

export type EditorBoxProps = Omit<EditorOptions, "parent"> & { focused?: boolean };

/** An editor; until its program has come, a plain field in which one can write already. */
export function EditorBox(props: EditorBoxProps) {
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const [ready, setReady] = useState(false);

  useEffect(() => {
    let view: { destroy(): void } | null = null;
    let gone = false;
    void loadEditor().then(({ edit }) => {
      if (gone || !box.current) return;
      const had = document.activeElement === field.current;
      const made = edit({
        parent: box.current,
        code: latest.current.code,
        label: props.label,
        changed: (code) => latest.current.changed(code),
        complete: (code, position) => latest.current.complete(code, position),
        run: (next) => latest.current.run(next),
        leave: (direction) => latest.current.leave(direction),
      });
      const end = field.current?.selectionEnd ?? made.state.doc.length;
      view = made;
      setReady(true);
      if (had || latest.current.focused) {
        made.focus();
        made.dispatch({ selection: { anchor: Math.min(end, made.state.doc.length) } });
      }
    });
    return () => {
      gone = true;
      view?.destroy();
    };
  }, []);

  const pressed = (event: KeyboardEvent): void => {
    if (event.key !== "Enter" || !(event.shiftKey || event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    props.run(event.shiftKey);
  };
  return (
    <div class="editor" ref={box}>
      {!ready && (
        <textarea
          ref={field}
          aria-label={props.label}
          spellcheck={false}
          rows={Math.max(1, props.code.split("\n").length)}
          value={props.code}
          placeholder="Python, e.g. 1 + 1"
          onInput={(event) => props.changed(event.currentTarget.value)}
          onKeyDown={pressed}
        />
      )}
    </div>
  );
}

/** Code that is only read, with its colours once they are there. */
export function Code({ code, label = "Code" }: { code: string; label?: string }) {
  const [pieces, setPieces] = useState<{ text: string; style: string }[] | null>(null);
  useEffect(() => {
    let gone = false;
    if (code.length <= LONGEST_COLOURED)
      void loadEditor().then(({ coloured }) => gone || setPieces(coloured(code)));
    return () => {
      gone = true;
    };
  }, [code]);
  const fits = pieces && pieces.reduce((sum, each) => sum + each.text.length, 0) === code.length;
  return (
    <pre class="code" tabIndex={0} aria-label={label}>
      {fits ? pieces.map(({ text, style }) => (style ? <span class={style}>{text}</span> : text)) : code}
    </pre>
  );
}
