/** The editor: loaded after the page is there, since it is most of its weight. */

import { autocompletion, type Completion, type CompletionContext, completionKeymap, closeBrackets, closeBracketsKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { pythonLanguage } from "@codemirror/lang-python";
import { bracketMatching, indentOnInput, indentUnit, LanguageSupport, syntaxHighlighting } from "@codemirror/language";
import { EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, keymap, placeholder } from "@codemirror/view";
import { classHighlighter, highlightTree } from "@lezer/highlight";

export interface Suggestion {
  start: number;
  end: number;
  text: string;
}

export interface EditorOptions {
  parent: HTMLElement;
  code: string;
  label: string;
  changed: (code: string) => void;
  complete: (code: string, position: number) => Promise<Suggestion[]>;
  /** Runs the code; `next` also goes on to the next cell. */
  run: (next: boolean) => void;
  leave: (direction: -1 | 1) => void;
}

const nonce = document.querySelector<HTMLMetaElement>("meta[property=csp-nonce]")?.nonce ?? "";

/** Positions of Python count characters, those of the page units of UTF-16. */
function completer(options: EditorOptions) {
  return async (context: CompletionContext) => {
    const word = context.matchBefore(/[\w.%'"/[\]]+$/);
    if (!context.explicit && !word?.text.match(/(\w{2,}|\.\w*)$/)) return null;
    const code = context.state.doc.toString();
    const before = code.slice(0, context.pos);
    const found = await options.complete(code, [...before].length);
    const [first] = found;
    if (!first || context.aborted) return null;
    const from = [...before].slice(0, first.start).join("").length;
    const items: Completion[] = found.map((each) => ({ label: each.text, type: "variable" }));
    return { from, options: items, validFor: /^\w*$/ };
  };
}

function keys(options: EditorOptions) {
  const edge = (view: EditorView, direction: -1 | 1): boolean => {
    const { main } = view.state.selection;
    const line = view.state.doc.lineAt(main.head).number;
    if (!main.empty || line !== (direction < 0 ? 1 : view.state.doc.lines)) return false;
    options.leave(direction);
    return true;
  };
  const ran = (next: boolean) => () => {
    options.run(next);
    return true;
  };
  return [
    { key: "Shift-Enter", run: ran(true) },
    { key: "Mod-Enter", run: ran(false) },
    { key: "ArrowUp", run: (view: EditorView) => edge(view, -1) },
    { key: "ArrowDown", run: (view: EditorView) => edge(view, 1) },
  ];
}

export function edit(options: EditorOptions): EditorView {
  return new EditorView({
    parent: options.parent,
    state: EditorState.create({
      doc: options.code,
      extensions: [
        EditorView.cspNonce.of(nonce),
        Prec.high(keymap.of(keys(options).slice(0, 2))),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("    "),
        bracketMatching(),
        closeBrackets(),
        new LanguageSupport(pythonLanguage),
        syntaxHighlighting(classHighlighter),
        autocompletion({ override: [completer(options)], icons: false, activateOnTypingDelay: 150 }),
        placeholder("Python, e.g. 1 + 1"),
        EditorView.contentAttributes.of({ "aria-label": options.label }),
        EditorView.lineWrapping,
        keymap.of([...closeBracketsKeymap, ...completionKeymap, ...keys(options).slice(2), ...historyKeymap, ...defaultKeymap]),
        // Tab indents within code, and leaves an empty line: the keyboard is never trapped.
        keymap.of([{ key: "Tab", run: (view) => view.state.selection.main.head > 0 && (indentWithTab.run?.(view) ?? false), shift: indentWithTab.shift! }]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) options.changed(update.state.doc.toString());
        }),
      ],
    }),
  });
}

/** Returns pieces of Python with the classes of their colours, for code that is only read. */
export function coloured(code: string): { text: string; style: string }[] {
  const pieces: { text: string; style: string }[] = [];
  let at = 0;
  highlightTree(pythonLanguage.parser.parse(code), classHighlighter, (from, to, style) => {
    if (from > at) pieces.push({ text: code.slice(at, from), style: "" });
    pieces.push({ text: code.slice(from, to), style });
    at = to;
  });
  if (at < code.length) pieces.push({ text: code.slice(at), style: "" });
  return pieces;
}
