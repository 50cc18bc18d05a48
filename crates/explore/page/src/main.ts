// The page: the bar above, the scrubber, and one view below.

import { type Run, type RunList, follow, get, isBaked } from "./api";
import { h, percent, reducedMotion, refill, segmented, select, share, stepName, thousands } from "./dom";
import { searchBox } from "./search";
import { here, metrics, nearestStep, open, session } from "./session";
import { type ViewName, change, onChange, readAddress, state } from "./state";
import type { View } from "./views/common";
import { emergenceView } from "./views/emergence";
import { layersView } from "./views/layers";
import { neighboursView } from "./views/neighbours";
import { shiftView } from "./views/shift";
import { spaceView } from "./views/space";
import { studiesView } from "./views/studies";

const NAMES: [ViewName, string][] = [
  ["space", "Space"], ["emergence", "Emergence"], ["neighbours", "Neighbours"], ["shift", "Shift"], ["layers", "Layers"], ["studies", "Studies"],
];
/** Steps that are played in a second, at least, and seconds that all take, at most. */
const PACE = 1.6;
const LONGEST = 10;
/** Views whose models have the weights of a few steps alone. */
const OF_WEIGHTS: ViewName[] = ["neighbours", "shift", "layers"];
const KEYS: [string, string][] = [
  ["1 to 6", "the views"], ["← →", "the step before, the step after"], ["p", "play, pause"], ["/", "search texts and glosses; ↓ goes to what is found"],
  ["Esc", "let go of the chosen sentence, of what is searched"], ["Shift and drag", "list an area of the space"], ["?", "this list"],
];

const top = document.getElementById("top")!;
const main = document.getElementById("view")!;
const bar = h("div", { class: "bar" });
const tabs = h("nav", { class: "tabs", "aria-label": "Views" });
const message = h("p", { class: "message", role: "status" });
const play = h("button", { type: "button", class: "play", "aria-label": "Play training", click: () => toggle() }, "▶");
const scrubber = h("input", { type: "range", class: "scrubber", "aria-label": "Training step", step: "any", min: 0, input: () => (stop(), goToPlace(Number(scrubber.value), false)), change: () => goToPlace(Math.round(Number(scrubber.value)), false) });
const readout = h("div", { class: "readout", "aria-live": "polite" });
const time = h("div", { class: "time" }, play, scrubber, readout);
const search = searchBox();
const keys = h("dialog", { class: "keys", "aria-label": "Keys", click: () => keys.close() },
  h("h2", {}, "Keys"), h("dl", {}, ...KEYS.flatMap(([key, what]) => [h("dt", {}, key), h("dd", {}, what)])), h("button", { type: "button" }, "Close"));
const help = h("button", { type: "button", class: "quiet", "aria-label": "Keys", title: "Keys", click: () => keys.showModal() }, "?");
const tools = h("div", { class: "tools" }, search.element, help);
top.append(bar, h("div", { class: "second" }, tabs, tools), time, message, keys);

const views = new Map<ViewName, View>();
let shown: ViewName | null = null;
let playing = 0;
let ended: () => void = () => {};

function view(name: ViewName): View {
  const make: Record<ViewName, () => View> = {
    space: () => spaceView(goToStep), emergence: () => emergenceView(goToStep), neighbours: neighboursView, shift: shiftView, layers: layersView, studies: studiesView,
  };
  let known = views.get(name);
  if (!known) {
    known = make[name]();
    views.set(name, known);
  }
  return known;
}

// The scrubber.

function goToPlace(at: number, glide: boolean) {
  const run = session.run;
  if (!run) return;
  const goal = Math.max(0, Math.min(at, run.steps.length - 1));
  if (glide && !reducedMotion() && Math.abs(goal - session.at) > 0.5) return glideTo(goal);
  session.at = goal;
  moved();
}

let gliding = 0;
function glideTo(goal: number) {
  cancelAnimationFrame(gliding);
  const from = session.at;
  const start = performance.now();
  const frame = (now: number) => {
    const share = Math.min(1, (now - start) / 450);
    session.at = from + (goal - from) * (share * (2 - share));
    moved();
    if (share < 1) gliding = requestAnimationFrame(frame);
  };
  gliding = requestAnimationFrame(frame);
}

function goToStep(step: number) {
  stop();
  const place = session.run?.steps.indexOf(step) ?? -1;
  if (place >= 0) goToPlace(place, true);
}

let told = -1;
function moved() {
  const run = session.run!;
  scrubber.value = String(session.at);
  scrubber.setAttribute("aria-valuetext", stepName(run.steps[nearestStep()], run.from_random));
  if (shown) view(shown).move?.();
  if (told !== nearestStep()) void showReadout();
  told = nearestStep();
  // The address, and what needs a model, follow when the scrubber rests.
  clearTimeout(resting);
  resting = setTimeout(rest, 120) as unknown as number;
}
let resting = 0;

/** Where a model answers, the scrubber rests at steps of which there are weights. */
function rest() {
  const run = session.run;
  if (!run) return;
  const last = run.steps.length - 1;
  const saved = run.steps.map((_, place) => place).filter((place) => place === last || run.snapshots.includes(run.steps[place]));
  const here = nearestStep();
  if (OF_WEIGHTS.includes(state.v) && !playing && !saved.includes(here)) {
    const distance = (place: number) => Math.abs(Math.log1p(run.steps[place] / 50) - Math.log1p(run.steps[here] / 50));
    return goToPlace(saved.reduce((best, place) => (distance(place) < distance(best) ? place : best)), true);
  }
  change({ step: run.steps[here] });
}

function stop() {
  cancelAnimationFrame(playing);
  cancelAnimationFrame(gliding);
  playing = 0;
  readout.setAttribute("aria-live", "polite");
  play.textContent = "▶";
  play.setAttribute("aria-label", "Play training");
}

function toggle() {
  if (playing) return stop();
  const run = session.run;
  if (!run) return;
  if (session.at >= run.steps.length - 1) session.at = 0;
  readout.setAttribute("aria-live", "off");
  play.textContent = "❚❚";
  play.setAttribute("aria-label", "Pause");
  let before = performance.now();
  let position = session.at;
  const frame = (now: number) => {
    const last = run.steps.length - 1;
    position += ((now - before) / 1000) * Math.max(PACE, last / LONGEST);
    before = now;
    // The time of a frame may lie before that of the click.
    session.at = Math.max(0, Math.min(reducedMotion() ? Math.floor(position) : position, last));
    moved();
    if (position >= last) return stop();
    playing = requestAnimationFrame(frame);
  };
  playing = requestAnimationFrame(frame);
}

async function showReadout() {
  const run = session.run;
  if (!run) return readout.replaceChildren();
  const numbers = await metrics().catch(() => null);
  const at = nearestStep();
  const parts = [h("strong", {}, run.has_steps ? stepName(run.steps[at], run.from_random) : run.name)];
  const layer = state.layer;
  if (numbers?.raw[at]?.length) {
    const chance = numbers.chance === null ? "" : ` (chance ${share(numbers.chance)})`;
    parts.push(measure("P@1", percent(numbers.raw[at][layer]), "How often the nearest sentence of the other language is the translation", chance));
    parts.push(measure("centred", percent(numbers.centered[at][layer]), "The same with each language's mean subtracted"));
  }
  if (numbers?.language_share[at]) parts.push(measure("language", percent(numbers.language_share[at][layer]), "The share of the variance of all vectors that lies between the languages' means"));
  const progress = run.progress;
  if (progress?.live) parts.push(h("span", { class: "live" }, `training: step ${thousands(progress.step)} of ${thousands(progress.goal)}`));
  readout.replaceChildren(...parts);
}

const measure = (name: string, value: string, title: string, more = "") => h("span", { class: "measure", title }, `${name} `, h("b", {}, value), more);

// The bar.

function showBar() {
  const run = session.run;
  const { runs } = session.list;
  const parts: (Node | string)[] = [h("span", { class: "brand" }, "Isogloss")];
  if (runs.length > 1) parts.push(select("Run", runs.map((one): [string, string] => [one.id, one.name]), state.run, (id) => change({ run: id, pair: "", beside: "", kind: "sentences", sel: "", q: "", text: "", other: "", ostep: -1 })));
  else if (runs.length === 1) parts.push(h("span", { class: "name" }, runs[0].name));
  if (run && run.pairs.length > 1) parts.push(select("Languages", run.pairs.map((pair): [string, string] => [pair, pair]), run.pair, (pair) => change({ pair, sel: "", q: "", text: "", from: "", to: "", ql: "" })));
  if (run && state.v !== "studies") {
    const layers = Array.from({ length: run.layers }, (_, layer): [number, string, string] => [layer, layer === 0 ? "E" : String(layer), layer === 0 ? "Embeddings" : `Layer ${layer}`]);
    if (run.has_steps && (state.v === "space" || state.v === "neighbours")) {
      const kinds: [typeof state.kind, string, string][] = [
        ["sentences", "sentences", "Sentences of which the run saved states"],
        ["words", "words", "The most frequent words of the vocabulary, each read as a sentence of one word, with the weights that were saved"],
      ];
      parts.push(segmented("Points", kinds, state.kind, (kind) => change({ kind, sel: "", q: "", mode: state.mode === "aligned" ? "centered" : state.mode })));
    }
    parts.push(h("span", { class: "labelled" }, "layer ", run.layers > 14 ? select("Layer", layers.map(([layer, name]): [number, string] => [layer, name]), state.layer, (layer) => change({ layer })) : segmented("Layer", layers, state.layer, (layer) => change({ layer }))));
  }
  refill(bar, ...parts);
  refill(tabs, ...NAMES.map(([name, title]) => h("a", { href: `#v=${name}`, "aria-current": name === state.v ? "page" : undefined, click: (event: MouseEvent) => (event.preventDefault(), change({ v: name })) }, title)));
  time.hidden = !run || state.v === "studies";
  play.hidden = scrubber.hidden = !run?.has_steps || run.steps.length < 2;
  if (run) {
    scrubber.max = String(Math.max(1, run.steps.length - 1));
    scrubber.value = String(session.at);
  }
  search.update();
  const notes = [...(run?.notes ?? [])];
  if (isBaked) notes.push("An exported page: what can be typed freely in isogloss explore is here for some sentences.");
  message.textContent = notes.join(" ");
  message.hidden = notes.length === 0;
  document.title = run ? `${run.name} · Isogloss` : "Isogloss";
}

function show(changed: Set<string>) {
  showBar();
  void showReadout();
  if (session.failure && state.v !== "studies") {
    shown = null;
    main.replaceChildren(h("section", { class: "view" }, h("h1", {}, "Nothing to show"), h("p", { class: "failure", role: "alert" }, session.failure)));
    return;
  }
  const next = view(state.v);
  if (shown !== state.v) {
    shown = state.v;
    main.replaceChildren(next.element);
  }
  next.update(changed);
  next.move?.();
  if (changed.has("v") && OF_WEIGHTS.includes(state.v)) rest();
}

// Following a run that is trained.

function watch() {
  ended();
  ended = () => {};
  const run = session.run;
  if (!run?.progress?.live) return;
  let probes = run.progress.probes;
  ended = follow(
    run.id,
    (progress) => {
      run.progress = progress;
      void showReadout();
      if (progress.probes !== probes) {
        probes = progress.probes;
        void grow(run);
      }
    },
    () => {
      session.failure = `${run.folder} is gone.`;
      show(new Set());
    },
  );
}

/** The run has saved another step. */
async function grow(before: Run) {
  const run = await get<Run>("/api/run", here()).catch(() => null);
  if (!run || session.run !== before) return;
  const wasLast = nearestStep() === before.steps.length - 1;
  Object.assign(before, run, { progress: run.progress });
  session.metrics.clear();
  showBar();
  if (shown) view(shown).refresh?.();
  if (wasLast && !playing) goToPlace(run.steps.length - 1, true);
}

// Keys.

document.addEventListener("keydown", (event) => {
  const inField = (event.target as HTMLElement).matches("input, select, textarea");
  if (inField || keys.open || event.ctrlKey || event.metaKey || event.altKey) return;
  const number = Number(event.key);
  if (number >= 1 && number <= NAMES.length) change({ v: NAMES[number - 1][0] });
  else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    stop();
    goToPlace(nearestStep() + (event.key === "ArrowRight" ? 1 : -1), true);
  } else if (event.key === "p") toggle();
  else if (event.key === "Escape") change(state.sel === "" ? { find: "" } : { sel: "" });
  else if (event.key === "/" && !search.element.hidden) {
    event.preventDefault();
    search.focus();
  } else if (event.key === "?") keys.showModal();
});

async function start() {
  readAddress();
  try {
    session.list = await get<RunList>("/api/runs");
  } catch (error) {
    main.replaceChildren(h("p", { class: "failure", role: "alert" }, (error as Error).message));
    return;
  }
  if (session.list.runs.length === 0 && session.list.laboratory) state.v = "studies";
  if (!location.hash && session.list.beside) state.beside = session.list.beside;
  const isOpen = state.step >= 0;
  await open();
  const plays = session.run && !isOpen && !reducedMotion() && session.run.has_steps && session.run.steps.length > 1 && state.v === "space";
  if (plays) session.at = 0;
  // One sentence to follow: the first.
  if (session.run && !isOpen && !location.hash.includes("sel=")) change({ sel: "0:0" });
  show(new Set(["run"]));
  watch();
  if (plays) void view("space").ready?.then(() => session.at === 0 && !playing && toggle());
  let opening = false;
  onChange(async (changed) => {
    // Opening a run chooses what the address leaves open, which is no reason to open it again.
    if (opening) return;
    if (changed.has("run") || changed.has("pair")) {
      stop();
      opening = true;
      await open();
      opening = false;
      watch();
    } else if (changed.has("step") && session.run && session.run.steps[nearestStep()] !== state.step) {
      const place = session.run.steps.indexOf(state.step);
      if (place >= 0) goToPlace(place, false);
    }
    show(changed);
  });
}

void start();
