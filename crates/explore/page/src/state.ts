// Everything that can be chosen, in the address: a page that is loaded again, or sent, shows the same.

export type ViewName = "space" | "emergence" | "neighbours" | "shift" | "layers" | "studies";

export interface State {
  v: ViewName;
  run: string;
  pair: string;
  step: number;
  layer: number;
  /** What the points are. */
  kind: "sentences" | "words";
  proj: "pca" | "difference";
  mode: "raw" | "centered" | "aligned";
  /** What the colour of a point means. */
  colour: "language" | "found" | "rank" | "hubness" | "length";
  /** What is shown beside the space: nothing, this run untrained, or another run. */
  beside: string;
  /** What is looked for in texts and glosses. */
  find: string;
  /** The pinned point: language, row. */
  sel: string;
  /** Language and text of a query for neighbours. */
  ql: string;
  q: string;
  /** The shift: weight, layer, direction, text. */
  a: number;
  sl: number;
  from: string;
  to: string;
  text: string;
  /** The other side of a comparison of layers: a run, and its step. */
  other: string;
  ostep: number;
  value: "debiased" | "cka" | "within_length";
  /** The finding that is open. */
  f: string;
}

export const initial: State = {
  v: "space", run: "", pair: "", step: -1, layer: -1, kind: "sentences", proj: "pca", mode: "raw", colour: "language", beside: "", find: "", sel: "", ql: "", q: "",
  a: 0.6, sl: -1, from: "", to: "", text: "", other: "", ostep: -1, value: "debiased", f: "",
};

export const state: State = { ...initial };

type Listener = (changed: Set<keyof State>) => void;
const listeners: Listener[] = [];

export function onChange(listener: Listener) {
  listeners.push(listener);
}

function read(): Partial<State> {
  const found: Record<string, string | number> = {};
  for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
    if (!(name in initial)) continue;
    const isNumber = typeof initial[name as keyof State] === "number";
    if (isNumber && !Number.isFinite(Number(text))) continue;
    found[name] = isNumber ? Number(text) : text;
  }
  return found as Partial<State>;
}

function write() {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value !== initial[name as keyof State]) params.set(name, String(value));
  }
  const hash = `#${params}`;
  if (hash !== location.hash) history.replaceState(null, "", hash);
}

/** Changes some of it, and tells everybody what has changed. */
export function change(changes: Partial<State>) {
  const changed = new Set<keyof State>();
  for (const [name, value] of Object.entries(changes) as [keyof State, never][]) {
    if (state[name] !== value) {
      (state[name] as unknown) = value;
      changed.add(name);
    }
  }
  if (changed.size === 0) return;
  write();
  for (const listener of listeners) listener(changed);
}

export function readAddress() {
  Object.assign(state, initial, read());
}

// What an address leaves open is as it was; what it leaves out is at its beginning.
window.addEventListener("hashchange", () => {
  const { run, pair, step, layer, sl, from, to, ql } = state;
  change({ ...initial, run, pair, step, layer, sl, from, to, ql, ...read() });
});
