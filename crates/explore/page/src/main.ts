// The page: the bar above, the scrubber, and one view below.

import { type Run, type RunList, follow, get, isBaked } from "./api";
import { h, percent, reducedMotion, refill, segmented, select, stepName, thousands } from "./dom";
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
/** Steps that are played in a second. */
const PACE = 1.6;

const top = document.getElementById("top")!;
const main = document.getElementById("view")!;
const bar = h("div", { class: "bar" });
const tabs = h("nav", { class: "tabs", "aria-label": "Views" });
const message = h("p", { class: "message", role: "status" });
const play = h("button", { type: "button", class: "play", "aria-label": "Play training", click: () => toggle() }, "▶");
const scrubber = h("input", { type: "range", class: "scrubber", "aria-label": "Training step", step: "any", min: 0, input: () => goToPlace(Number(scrubber.value), false), change: () => goToPlace(Math.round(Number(scrubber.value)), false) });
const readout = h("div", { class: "readout", "aria-live": "polite" });
const time = h("div", { class: "time" }, play, scrubber, readout);
top.append(bar, tabs, time, message);

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
  resting = setTimeout(() => change({ step: run.steps[nearestStep()] }), 120) as unknown as number;
}
let resting = 0;

function stop() {
  cancelAnimationFrame(playing);
  cancelAnimationFrame(gliding);
  playing = 0;
  play.textContent = "▶";
  play.setAttribute("aria-label", "Play training");
}

function toggle() {
  if (playing) return stop();
  const run = session.run;
  if (!run) return;
  if (session.at >= run.steps.length - 1) session.at = 0;
  play.textContent = "❚❚";
  play.setAttribute("aria-label", "Pause");
  let before = performance.now();
  let position = session.at;
  const frame = (now: number) => {
    position += ((now - before) / 1000) * PACE;
    before = now;
    const last = run.steps.length - 1;
    session.at = Math.min(reducedMotion() ? Math.floor(position) : position, last);
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
    parts.push(measure("P@1", percent(numbers.raw[at][layer]), "How often the nearest sentence of the other language is the translation"));
    parts.push(measure("centred", percent(numbers.centered[at][layer]), "The same with each language's mean subtracted"));
  }
  if (numbers?.language_share[at]) parts.push(measure("language", percent(numbers.language_share[at][layer]), "The share of the variance of all vectors that lies between the languages' means"));
  const progress = run.progress;
  if (progress?.live) parts.push(h("span", { class: "live" }, `training: step ${thousands(progress.step)} of ${thousands(progress.goal)}`));
  readout.replaceChildren(...parts);
}

const measure = (name: string, value: string, title: string) => h("span", { class: "measure", title }, `${name} `, h("b", {}, value));

// The bar.

function showBar() {
  const run = session.run;
  const { runs } = session.list;
  const parts: (Node | string)[] = [h("span", { class: "brand" }, "Isogloss")];
  if (runs.length > 1) parts.push(select("Run", runs.map((one): [string, string] => [one.id, one.name]), state.run, (id) => change({ run: id, pair: "", kind: "sentences", sel: "", q: "", text: "", other: "", ostep: -1 })));
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
  if (inField || event.ctrlKey || event.metaKey || event.altKey) return;
  const number = Number(event.key);
  if (number >= 1 && number <= NAMES.length) change({ v: NAMES[number - 1][0] });
  else if (event.key === "ArrowRight" || event.key === "ArrowLeft") {
    stop();
    goToPlace(nearestStep() + (event.key === "ArrowRight" ? 1 : -1), true);
  } else if (event.key === "p") toggle();
  else if (event.key === "Escape") change({ sel: "" });
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
  await open();
  show(new Set(["run"]));
  watch();
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
