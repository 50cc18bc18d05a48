// The run that is looked at: what was fetched of it, and the place among its steps, which every view follows.

import { type Items, type Metrics, type PointArray, type Run, type RunList, get, getPoints } from "./api";
import { change, state } from "./state";

export interface Session {
  list: RunList;
  run: Run | null;
  /** Why there is none. */
  failure: string;
  /** The sentences, and the words where they were asked for. */
  items: Items | null;
  words: Items | null;
  /** By layer; they differ in their title. */
  metrics: Map<number, Promise<Metrics>>;
  /** By request: ranks of translations, and hubness. */
  ranks: Map<string, Promise<PointArray>>;
  /** The place among the steps, with fractions while it moves. */
  at: number;
}

export const session: Session = {
  list: { runs: [], laboratory: null, beside: null, version: "" },
  run: null,
  failure: "",
  items: null,
  words: null,
  metrics: new Map(),
  ranks: new Map(),
  at: 0,
};

/** The parameters by which every request names the run. */
export const here = () => ({ run: session.run?.id, pair: session.run?.pair });

export function metrics(): Promise<Metrics> {
  const layer = state.layer;
  let known = session.metrics.get(layer);
  if (!known) {
    known = get<Metrics>("/api/metrics", { ...here(), layer });
    session.metrics.set(layer, known);
    known.catch(() => session.metrics.delete(layer));
  }
  return known;
}

/** The ranks of the translations of a run's sentences, at every step. */
export function ranks(run: Run, layer: number): Promise<PointArray> {
  const params = { run: run.id, pair: run.pair, layer, mode: state.mode === "raw" ? "raw" : "centered" };
  const key = `${JSON.stringify(params)} ${run.steps.length}`;
  let known = session.ranks.get(key);
  if (!known) {
    known = getPoints(params, "/api/ranks");
    session.ranks.set(key, known);
    known.catch(() => session.ranks.delete(key));
  }
  return known;
}

/** What a text means word by word, where its language's words have meanings; ? for a word that is not among them. */
export function glossOf(all: Items, language: number, text: string): string | undefined {
  const lexicon = all.lexicon[language] ?? {};
  const meanings = text.split(" ").map((word) => (Object.hasOwn(lexicon, word) ? lexicon[word] : "?"));
  return meanings.some((meaning) => meaning !== "?") ? meanings.join(" ") : undefined;
}

/** Whether a text or its gloss has what is looked for. */
export function isSought(all: Items, language: number, text: string): boolean {
  const sought = state.find.toLowerCase();
  return sought !== "" && `${text}\n${glossOf(all, language, text) ?? ""}`.toLowerCase().includes(sought);
}

/** The numbers of the points that have it. */
export function soughtPoints(all: Items): number[] {
  const points: number[] = [];
  let point = 0;
  all.texts.forEach((texts, language) => texts.forEach((text) => (isSought(all, language, text) && points.push(point), point++)));
  return points;
}

/** Chooses a sentence or a word in all views. */
export function choose(all: Items, language: number, row: number) {
  const [code, text] = [all.languages[language].code, all.texts[language][row]];
  const shifted = { from: code, to: all.languages[(language + 1) % all.languages.length].code, text };
  change({ sel: `${language}:${row}`, ql: code, q: text, ...(state.kind === "sentences" ? shifted : {}) });
}

export async function items(): Promise<Items> {
  session.items ??= await get<Items>("/api/items", here());
  return session.items;
}

/** How requests name what the points are. */
export const kind = () => ({ kind: state.kind === "words" ? state.kind : undefined });

/** What a point is. */
export const noun = () => (state.kind === "words" ? "word" : "sentence");

/** What the points are of, once it is fetched. */
export const shownItems = () => (state.kind === "words" ? session.words : session.items);

export async function fetchShown(): Promise<Items> {
  if (state.kind !== "words") return items();
  session.words ??= await get<Items>("/api/items", { ...here(), ...kind() });
  return session.words;
}

/** The number of the step that is nearest to the place. */
export const nearestStep = () => Math.max(0, Math.min(Math.round(session.at), (session.run?.steps.length ?? 1) - 1));

/** Opens the run of the address, or the first. */
export async function open() {
  const known = session.list.runs.some((run) => run.id === state.run);
  const id = known ? state.run : (session.list.runs[0]?.id ?? "");
  session.run = null;
  session.items = null;
  session.words = null;
  session.metrics.clear();
  session.ranks.clear();
  session.failure = "";
  if (!id) {
    session.failure = "There is no run here that saved its states.";
    return;
  }
  try {
    const run = await get<Run>("/api/run", { run: id, pair: known ? state.pair : undefined }).catch(() => get<Run>("/api/run", { run: id }));
    session.run = run;
    const codes = run.languages.map((language) => language.code);
    const step = run.steps.includes(state.step) ? state.step : run.steps[run.steps.length - 1];
    session.at = run.steps.indexOf(step);
    const inside = (layer: number) => layer >= 0 && layer < run.layers;
    change({
      kind: run.has_steps ? state.kind : "sentences",
      run: id,
      pair: run.pair,
      step,
      layer: inside(state.layer) ? state.layer : run.best_layer,
      sl: inside(state.sl) ? state.sl : run.shift_layer,
      from: codes.includes(state.from) ? state.from : codes[0],
      to: codes.includes(state.to) ? state.to : (codes[1] ?? codes[0]),
      ql: codes.includes(state.ql) ? state.ql : codes[0],
    });
  } catch (error) {
    session.failure = (error as Error).message;
    change({ run: id });
  }
}

/** A text and its language, by the number of a point. */
export function pointOf(all: Items, point: number): { language: number; row: number } {
  let row = point;
  for (let language = 0; language < all.texts.length; language++) {
    if (row < all.texts[language].length) return { language, row };
    row -= all.texts[language].length;
  }
  return { language: 0, row: 0 };
}

/** The number of the point of a row. */
export function pointAt(all: Items, language: number, row: number): number {
  return all.texts.slice(0, language).reduce((sum, texts) => sum + texts.length, 0) + row;
}
