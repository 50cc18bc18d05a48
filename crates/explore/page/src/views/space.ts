// The space: sentences of all languages at a layer, which move as training goes on.

import { type Items, type Metrics, type Neighbours, type PointArray, getPoints, isBaked, post } from "../api";
import { type Chart, chart } from "../chart";
import { Cloud, type CloudMarks } from "../cloud";
import { h, layerName, percent, refill, segmented, select, stepName, thousands } from "../dom";
import { fetchShown, here, kind, metrics, nearestStep, noun, pointAt, pointOf, session, shownItems } from "../session";
import { change, state } from "../state";
import { CommandLine, type View, failureBox, glossed } from "./common";

/** Translation pairs that lines join. */
const JOINED = 16;
/** Sentences that a lasso lists. */
const LISTED = 60;
/** Sentences of each language that can be chosen from a list. */
const NAMED = 400;

export function spaceView(goTo: (step: number) => void): View {
  const cloud = new Cloud("Sentences or words of all languages on a plane; the list beside it names them");
  const heading = h("h1", {});
  const caption = h("p", { class: "caption" });
  const controls = h("div", { class: "controls" });
  const pickerPlace = h("div", {});
  const inspected = h("div", {});
  const inspector = h("aside", { class: "inspector", "aria-label": "The chosen sentence" }, pickerPlace, inspected);
  const curves = h("div", { class: "strip" });
  const command = new CommandLine();
  const legend = h("ul", { class: "legend" });
  const stage = h("div", { class: "stage" }, legend, cloud.element);
  const element = h("section", { class: "view space" }, heading, controls, h("div", { class: "split" }, stage, inspector), caption, curves, command.element);
  let loaded = "";
  let steps: number[] = [];
  let shown: typeof state.kind = "sentences";
  let numbers: Metrics | null = null;
  let training: Chart | null = null;
  let picker: HTMLSelectElement | null = null;
  let hovered: number | null = null;
  let lassoed: number[] = [];
  let neighbours: { of: string; found: Neighbours } | null = null;

  const chosen = (): number | null => {
    const all = shownItems();
    const [language, row] = state.sel.split(":").map(Number);
    const known = state.sel !== "" && all && all.texts[language]?.[row] !== undefined;
    return known ? pointAt(all, language, row) : null;
  };

  const marks = (): CloudMarks => {
    const all = shownItems();
    const none: CloudMarks = { joined: [], strong: [], rings: [], labels: [] };
    if (!all) return none;
    const pairs = all.texts[0].length;
    const partner = (point: number): [number, number][] => {
      const { language, row } = pointOf(all, point);
      if (!all.paired) {
        return all.texts.flatMap((_, other) => {
          const twin = other === language ? -1 : twinOf(all, language, row, other);
          return twin < 0 ? [] : [[point, pointAt(all, other, twin)] as [number, number]];
        });
      }
      return all.texts.flatMap((_, other) => (other === language ? [] : [[point, pointAt(all, other, row)] as [number, number]]));
    };
    if (all.paired || all.glosses) {
      const count = Math.min(JOINED, pairs);
      for (let number = 0; number < count; number++) {
        const row = Math.floor((number * pairs) / count);
        none.joined.push(...partner(pointAt(all, 0, row)));
      }
    }
    const label = (point: number): [number, string] => {
      const { language, row } = pointOf(all, point);
      return [point, all.texts[language][row]];
    };
    for (const point of new Set([chosen(), hovered].filter((point): point is number => point !== null))) {
      const joined = partner(point);
      none.strong.push(...joined);
      none.rings.push(point, ...joined.map((pair) => pair[1]));
      none.labels.push(label(point), ...joined.map((pair) => label(pair[1])));
    }
    return none;
  };

  const showInspector = () => {
    const all = shownItems();
    if (!all || !session.run || !picker) return;
    const point = hovered ?? chosen();
    const parts: (HTMLElement | null)[] = [];
    if (lassoed.length > 0 && point === null) {
      parts.push(h("h2", {}, `${thousands(lassoed.length)} ${noun()}s`));
      const list = h("ul", { class: "plain" });
      for (const one of lassoed.slice(0, LISTED)) {
        const { language, row } = pointOf(all, one);
        const choose = () => change({ sel: `${language}:${row}` });
        list.append(h("li", {}, h("button", { type: "button", class: `link word c${language}`, click: choose }, all.texts[language][row])));
      }
      if (lassoed.length > LISTED) list.append(h("li", { class: "soft" }, `and ${lassoed.length - LISTED} more`));
      parts.push(list);
    } else if (point !== null) {
      const { language, row } = pointOf(all, point);
      all.texts.forEach((texts, other) => {
        const own = other === language;
        const place = own || all.paired ? row : twinOf(all, language, row, other);
        if (place < 0) return;
        const name = own ? all.languages[other].name : `${all.languages[other].name}, its translation`;
        parts.push(h("h2", { class: `word c${other}` }, name));
        parts.push(glossed(texts[place], all.glosses?.[other]?.[place], `c${other}`));
      });
      parts.push(nearestList(language, row));
    } else {
      parts.push(h("p", { class: "soft" }, `Point at a ${noun()} to see it and its translation; click to keep it. Drag to move, turn the wheel to zoom, hold Shift and drag to list an area.`));
    }
    const place = point === null ? null : pointOf(all, point);
    picker!.value = place ? `${place.language}:${place.row}` : "";
    refill(inspected, ...parts);
  };

  /** The first sentences of each language in a list, by which one can be chosen without a pointer. */
  const makePicker = () => {
    const all = shownItems()!;
    const options: [string, string][] = [["", `Choose a ${noun()}…`]];
    all.texts.forEach((texts, language) =>
      texts.slice(0, NAMED).forEach((text, row) => options.push([`${language}:${row}`, `${all.languages[language].name}: ${text}`])),
    );
    picker = select(`Choose a ${noun()}`, options, state.sel, (sel) => {
      lassoed = [];
      change({ sel });
    }) as HTMLSelectElement;
    refill(pickerPlace, picker);
  };

  const nearestList = (language: number, row: number): HTMLElement | null => {
    const all = shownItems()!;
    const of = `${state.kind} ${language}:${row} ${state.mode} ${state.step}`;
    if (neighbours?.of === of) {
      const layer = neighbours.found.queries[0].layers[state.layer];
      const box = h("div", {});
      for (const { language: code, neighbors } of layer.languages) {
        const number = all.languages.findIndex((one) => one.code === code);
        if (number === language && all.languages.length > 1) continue;
        box.append(h("h2", {}, `Nearest in ${all.languages[number].name}`));
        const list = h("ol", { class: "nearest" });
        for (const { text, cosine } of neighbors.slice(0, 5)) {
          const right = neighbours.found.gold[number] === text;
          list.append(h("li", { class: right ? "right" : "" }, h("span", {}, text), h("span", { class: "number" }, right ? "✓ " : "", cosine.toFixed(3))));
        }
        box.append(list);
      }
      return box;
    }
    if (state.sel !== `${language}:${row}`) return null;
    const text = all.texts[language][row];
    const params = { ...here(), ...kind(), step: state.step, mode: state.mode === "raw" ? "raw" : "centered", lang: all.languages[language].code, text, k: 10 };
    post<Neighbours>("/api/neighbours", params).then(
      (found) => {
        neighbours = { of, found };
        showInspector();
      },
      () => {},
    );
    return null;
  };

  const showCaption = () => {
    const run = session.run;
    if (!run || !numbers) return;
    const at = nearestStep();
    const all = shownItems();
    const isWords = state.kind === "words";
    const lengths = !run.given && !isWords ? "PCA with what sentence length explains removed" : "PCA";
    const plane = state.proj === "pca" ? (run.steps.length > 1 ? `${lengths}, each step turned to fit the one before` : lengths) : "Across: the difference of the two languages' means, which is chosen by the labels (supervised); up: the first direction within languages";
    const count = all?.texts.reduce((sum, texts) => sum + texts.length, 0) ?? 0;
    const joined = run.paired && !isWords ? ` Lines join ${Math.min(JOINED, run.points / run.languages.length)} translation pairs.` : isWords && all?.glosses ? " Lines join some words of the same meaning. P@1 above is of sentences." : "";
    const saved = isWords ? ` Words are read with the weights of ${cloud.steps} saved steps; between them points are interpolated.` : "";
    const clouds = run.has_steps && at === 0 && run.from_random ? " Clouds overlap before training too: look at the lines and at P@1." : "";
    const text = `${thousands(isWords ? count : run.points)} ${noun()}s at ${state.layer === 0 ? "the embeddings" : layerName(state.layer)}, ${run.has_steps ? stepName(run.steps[at], run.from_random) : run.name}. ${plane}.${joined}${saved}${clouds} ${cloud.note}`;
    if (caption.textContent !== text) caption.textContent = text;
  };

  const showCurves = () => {
    const run = session.run;
    training = null;
    if (!run?.has_steps || run.steps.length < 2 || !numbers) return curves.replaceChildren();
    const of = (rows: number[][]) => numbers!.steps.map((step, number) => [step, rows[number][state.layer]] as [number, number]);
    training = chart({
      title: `Training, ${layerName(state.layer)}`,
      note: " P@1 of retrieval, and the language's share of variance",
      series: [
        { name: "raw P@1", points: of(numbers.raw), colour: 2 },
        { name: "centred P@1", points: of(numbers.centered), colour: 3 },
        { name: "language", points: of(numbers.language_share), colour: 4 },
      ],
      logX: true,
      top: 1,
      xName: "training step",
      xTicks: run.steps.map((step) => [step, thousands(step)]),
      format: percent,
      cursor: at(run.steps),
      pick: goTo,
      height: 170,
    });
    curves.replaceChildren(training.element);
  };

  const load = async () => {
    const run = session.run;
    if (!run) return;
    const params = { ...here(), ...kind(), layer: state.layer, mode: state.mode, proj: state.proj };
    const wanted = `${JSON.stringify(params)} ${run.steps.length}`;
    if (wanted === loaded) return;
    loaded = wanted;
    let data: PointArray;
    let measured: Metrics;
    try {
      [data, measured] = await Promise.all([getPoints(params), metrics(), fetchShown()]);
    } catch (error) {
      if (wanted === loaded) heading.replaceChildren(failureBox(error));
      return;
    }
    if (wanted !== loaded) return;
    numbers = measured;
    steps = data.steps;
    shown = state.kind;
    const all = shownItems()!;
    const languages = new Float32Array(data.count);
    let point = 0;
    all.texts.forEach((texts, language) => texts.forEach(() => (languages[point++] = language)));
    cloud.setData(data, languages);
    cloud.show(placeAmong(data.steps));
    heading.textContent = measured.title ?? `${run.name}, ${layerName(state.layer)}`;
    legend.replaceChildren(...all.languages.map((language, number) => h("li", {}, h("span", { class: `dot c${number} k${number % 2}` }), language.name)));
    makePicker();
    redraw();
  };

  const redraw = () => {
    cloud.setMarks(marks());
    showInspector();
    showCaption();
    showCurves();
  };

  const showControls = () => {
    const run = session.run;
    if (!run) return;
    const modes: [typeof state.mode, string, string][] = [
      ["raw", "raw", "The vectors themselves"],
      ["centered", "mean-centred", "Each language's mean is subtracted"],
    ];
    if (run.paired && state.kind === "sentences") modes.push(["aligned", "aligned", "And mapped onto the first language by Procrustes, learned from these very pairs"]);
    refill(
      controls,
      segmented("Vectors", modes, state.mode, (mode) => change({ mode, proj: "pca" })),
      run.languages.length === 2
        ? segmented<typeof state.proj>("Plane", [["pca", "principal plane"], ["difference", "between the languages"]], state.proj, (proj) => change({ proj, mode: "raw" }))
        : "",
      h("button", { type: "button", class: "quiet", click: () => cloud.resetView() }, "Reset the view"),
    );
    command.show({ ...here(), ...kind(), view: "space", layer: state.layer, mode: state.mode, proj: state.proj, step: isBaked ? run.steps[run.steps.length - 1] : state.step });
  };

  cloud.onHover = (point) => {
    if (point === hovered) return;
    hovered = point;
    cloud.setMarks(marks());
    showInspector();
  };
  cloud.onPick = (point) => {
    const all = shownItems();
    lassoed = [];
    if (point === null || !all) return change({ sel: "" });
    const { language, row } = pointOf(all, point);
    change({ sel: `${language}:${row}` });
  };
  cloud.onLasso = (points) => {
    lassoed = points;
    hovered = null;
    change({ sel: "" });
    showInspector();
  };

  return {
    element,
    update(changed) {
      showControls();
      if (changed.has("sel") && shown === state.kind) redraw();
      void load();
    },
    move() {
      cloud.show(placeAmong(steps));
      showCaption();
      if (session.run?.has_steps) training?.setCursor(at(session.run.steps));
    },
    refresh() {
      loaded = "";
      void load();
    },
  };
}

/** The row of the word of another language that has the same meaning; -1 where it is not known. */
function twinOf(all: Items, language: number, row: number, other: number): number {
  const gloss = all.glosses?.[language]?.[row];
  return gloss ? all.glosses![other].indexOf(gloss) : -1;
}

/** The place of the scrubber among other steps than the run's: those of weights are fewer. */
function placeAmong(steps: number[]): number {
  const run = session.run;
  if (!run?.has_steps || steps.length === run.steps.length) return session.at;
  const step = at(run.steps);
  const next = steps.findIndex((one) => one >= step);
  if (next <= 0) return next < 0 ? Math.max(0, steps.length - 1) : 0;
  const [before, here, after] = [steps[next - 1], step, steps[next]].map((one) => Math.log1p(one / 50));
  return next - 1 + (here - before) / (after - before);
}

/** The step at the place, with fractions between two of them. */
function at(steps: number[]): number {
  const from = Math.floor(session.at);
  const to = Math.min(from + 1, steps.length - 1);
  const [a, b] = [steps[from], steps[to]].map((step) => Math.log1p(step / 50));
  return 50 * Math.expm1(a + (b - a) * (session.at - from));
}
