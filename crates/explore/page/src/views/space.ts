// The space: sentences of all languages at a layer, which move as training goes on; beside it, on the same scrubber, the same model untrained or
// another run.

import { type Items, type Metrics, type Neighbours, type PointArray, type Run, get, getPoints, isBaked, post } from "../api";
import { type Chart, chart } from "../chart";
import { Cloud, type CloudMarks, FADED } from "../cloud";
import { h, layerName, percent, refill, segmented, select, share, stepName, thousands } from "../dom";
import { choose, fetchShown, glossOf, here, kind, metrics, nearestStep, noun, pointAt, pointOf, ranks, session, soughtPoints } from "../session";
import { change, state } from "../state";
import { CommandLine, type View, failureBox, glossed, listed } from "./common";

/** Translation pairs that lines join. */
const JOINED = 16;
/** Sentences of a language that are listed of an area. */
const LISTED = 40;
const LENGTHS = 5;
/** Up to so many points, ranks are asked for where a sentence is chosen; of more, where colours or an area show them. */
const UNASKED = 4000;

/** A cloud, what its points are of, and what was measured of them. */
class Pane {
  readonly cloud: Cloud;
  readonly title = h("figcaption", {});
  readonly element: HTMLElement;
  run: Run | null = null;
  all: Items | null = null;
  data: PointArray | null = null;
  numbers: Metrics | null = null;
  ranks: PointArray | null = null;
  /** Whether it stays at its first step. */
  still = false;
  /** The name of its run, beside another. */
  name = "";

  constructor(label: string) {
    this.cloud = new Cloud(label);
    this.element = h("figure", { class: "pane" }, this.title, this.cloud.element);
  }

  /** The place of the scrubber among the steps that there are points of. */
  get at(): number {
    return !this.data || this.still ? 0 : placeAmong(this.data.steps);
  }

  get step(): number {
    return this.data?.steps[Math.round(this.at)] ?? 0;
  }

  get layer(): number {
    return Math.min(state.layer, (this.run?.layers ?? 1) - 1);
  }

  /** The rank of a point's translation and its hubness, where they are known. */
  measured(point: number): [number, number] | null {
    const at = this.ranks?.steps.indexOf(this.step) ?? -1;
    if (!this.ranks || at < 0 || this.ranks.count !== this.data?.count) return null;
    const place = 2 * (at * this.ranks.count + point);
    return [this.ranks.values[place], this.ranks.values[place + 1]];
  }

  move() {
    this.cloud.show(this.at);
    if (!this.run || !this.all) return;
    const name = this.run.has_steps ? stepName(this.step, this.run.from_random) : "";
    const number = this.numbers?.steps.indexOf(this.step) ?? -1;
    const found = this.numbers?.raw[number]?.[this.layer];
    const language = this.numbers?.language_share[number]?.[this.layer];
    const parts = [this.name, name, found === undefined ? "" : `P@1 ${percent(found)}`, language === undefined ? "" : `language ${percent(language)}`];
    this.title.textContent = parts.filter((part) => part !== "").join(" · ");
  }

  /** Looks after its own points, of which some may be the ones that are meant. */
  paint(lit: number[]) {
    const { all, data } = this;
    if (!all || !data) return;
    const { colours, of } = colouring(this);
    const meant = lit.length > 0 ? new Set(lit) : null;
    const styles = new Float32Array(data.count);
    let point = 0;
    all.texts.forEach((texts, language) =>
      texts.forEach((_, row) => {
        const number = meant && !meant.has(point) ? FADED : of(language, row, point);
        styles[point++] = 2 * number + (language % 2);
      }),
    );
    this.cloud.setStyles(styles, colours);
  }
}

interface Colouring {
  /** Variables of the style sheet, and what each means. */
  colours: string[];
  names: string[];
  of(language: number, row: number, point: number): number;
}

/** What colours mean, and that of a point. */
function colouring(pane: Pane): Colouring {
  const all = pane.all!;
  const ramp = ["--r0", "--r1", "--r2", "--r3", "--r4"];
  const upTo = (bounds: number[], value: number) => bounds.findIndex((bound) => value <= bound);
  const known = pane.ranks !== null;
  if (state.colour === "found" && known) {
    return { colours: ["--good", "--missed"], names: ["finds its translation", "does not"], of: (_language, _row, point) => (pane.measured(point)?.[0] === 1 ? 0 : 1) };
  }
  if (state.colour === "rank" && known) {
    const bounds = [1, 3, 10, 100, Number.POSITIVE_INFINITY];
    return { colours: [...ramp].reverse(), names: ["rank 1", "2–3", "4–10", "11–100", "beyond"], of: (_language, _row, point) => upTo(bounds, pane.measured(point)?.[0] ?? 1) };
  }
  if (state.colour === "hubness" && known) {
    const bounds = [0, 1, 4, 9, Number.POSITIVE_INFINITY];
    return { colours: ramp, names: ["nearest of none", "1", "2–4", "5–9", "10 or more"], of: (_language, _row, point) => upTo(bounds, pane.measured(point)?.[1] ?? 0) };
  }
  if (state.colour === "length") {
    const length = (language: number, row: number) => all.lengths[language]?.[row] ?? all.texts[language][row].split(" ").length;
    const sorted = all.texts.flatMap((texts, language) => texts.map((_, row) => length(language, row))).sort((a, b) => a - b);
    const bounds = [...new Set(ramp.map((_, part) => sorted[Math.ceil(((part + 1) * sorted.length) / LENGTHS) - 1]))];
    const from = (part: number) => (part === 0 ? sorted[0] : bounds[part - 1] + 1);
    const names = bounds.map((bound, part) => (from(part) === bound ? `${bound}` : `${from(part)}–${bound}`));
    names[0] += all.lengths.length > 0 ? " tokens" : " words";
    return { colours: ramp, names, of: (language, row) => upTo(bounds, length(language, row)) };
  }
  return { colours: Array.from({ length: FADED }, (_, number) => `--c${number}`), names: [], of: (language) => language % FADED };
}

export function spaceView(goTo: (step: number) => void): View {
  const panes = [new Pane("Sentences or words of all languages on a plane; the search box finds and names them"), new Pane("The same sentences in another space, beside it")];
  const [pane, beside] = panes;
  const heading = h("h1", {});
  const caption = h("p", { class: "caption" });
  const controls = h("div", { class: "controls" });
  const inspector = h("aside", { class: "inspector", tabindex: "0", "aria-label": "The chosen sentence" });
  const curves = h("div", { class: "strip" });
  const command = new CommandLine();
  const legend = h("ul", { class: "legend" });
  const clouds = h("div", { class: "clouds" }, pane.element);
  const element = h("section", { class: "view space" }, heading, controls, h("div", { class: "split" }, h("div", { class: "stage" }, legend, clouds), inspector), caption, curves, command.element);
  let loaded = "";
  let shown: typeof state.kind = "sentences";
  let training: Chart | null = null;
  let hovered: number | null = null;
  let area: number[] = [];
  let painted = "";
  let neighbours: { of: string; found: Neighbours } | null = null;
  let drawn: () => void = () => {};
  const ready = new Promise<void>((resolve) => (drawn = resolve));

  // A point is known by its number in the first cloud; the second may have the same sentences in another order.
  const inBeside = (point: number): number => (beside.all === pane.all ? point : translated(pane.all!, beside.all!, point));
  const fromBeside = (point: number): number => (beside.all === pane.all ? point : translated(beside.all!, pane.all!, point));
  const panesShown = () => panes.filter((one) => one.data && one.element.isConnected);

  const chosen = (): number | null => {
    const [language, row] = state.sel.split(":").map(Number);
    const known = state.sel !== "" && pane.all?.texts[language]?.[row] !== undefined;
    return known ? pointAt(pane.all!, language, row) : null;
  };

  /** The points of the first cloud that are meant: those of an area, else those that the search finds. */
  const lit = (): number[] => (area.length > 0 || !pane.all ? area : soughtPoints(pane.all));

  const marks = (): CloudMarks => {
    const all = pane.all!;
    const marks: CloudMarks = { joined: [], strong: [], rings: [], labels: [] };
    const partner = (point: number): [number, number][] => {
      const { language, row } = pointOf(all, point);
      return all.texts.flatMap((_, other) => {
        const twin = other === language ? -1 : all.paired ? row : twinOf(all, language, row, other);
        return twin < 0 ? [] : [[point, pointAt(all, other, twin)] as [number, number]];
      });
    };
    const meant = lit();
    const from = meant.length > 0 ? meant : all.texts[0].map((_, row) => row);
    const count = Math.min(JOINED, from.length);
    if (all.paired || all.lexicon.length > 0) {
      for (let number = 0; number < count; number++) marks.joined.push(...partner(from[Math.floor((number * from.length) / count)]));
    }
    const label = (point: number): [number, string[]] => {
      const { language, row } = pointOf(all, point);
      const text = all.texts[language][row];
      return [point, [text, glossOf(all, language, text) ?? ""].filter((line) => line !== "")];
    };
    for (const point of new Set([chosen(), hovered].filter((point): point is number => point !== null))) {
      const joined = partner(point);
      marks.strong.push(...joined);
      marks.rings.push(point, ...joined.map((pair) => pair[1]));
      marks.labels.push(label(point), ...joined.map((pair) => label(pair[1])));
    }
    return marks;
  };

  const showMarks = () => {
    if (!pane.all || !pane.data) return;
    const own = marks();
    pane.cloud.setMarks(own);
    if (!beside.all || !beside.data) return;
    const both = (pairs: [number, number][]) => pairs.map(([a, b]): [number, number] => [inBeside(a), inBeside(b)]).filter(([a, b]) => a >= 0 && b >= 0);
    beside.cloud.setMarks({
      joined: both(own.joined),
      strong: both(own.strong),
      rings: own.rings.map(inBeside).filter((point) => point >= 0),
      labels: own.labels.map(([point, text]): [number, string[]] => [inBeside(point), text]).filter(([point]) => point >= 0),
    });
  };

  const paint = () => {
    if (!pane.all || !pane.data) return;
    const meant = lit();
    pane.paint(meant);
    if (beside.all && beside.data) beside.paint(meant.map(inBeside).filter((point) => point >= 0));
    showLegend();
  };

  const showLegend = () => {
    const all = pane.all!;
    const { names, colours } = colouring(pane);
    const isLanguage = names.length === 0;
    const swatch = (name: string, colour: string, shape: string) => {
      const dot = h("span", { class: `dot ${shape}` });
      dot.style.setProperty("--c", `var(${colour})`);
      return h("li", {}, dot, name);
    };
    refill(
      legend,
      ...all.languages.map((language, number) => swatch(language.name, isLanguage ? `--c${number}` : "--soft", `k${number % 2}`)),
      ...names.map((name, number) => swatch(name, colours[number], "bin")),
    );
  };

  const foundOf = (one: Pane, points: number[]) => {
    const known = points.map((point) => one.measured(point)).filter((measured) => measured !== null);
    return known.length === 0 ? null : { found: known.filter(([rank]) => rank === 1).length, of: known.length };
  };

  /** Both languages of an area or of what was found, and how many of them find their translation. */
  const listOf = (points: number[], name: string): (HTMLElement | null)[] => {
    const all = pane.all!;
    const own = foundOf(pane, points);
    const others = beside.data && beside.element.isConnected ? foundOf(beside, points.map(inBeside).filter((point) => point >= 0)) : null;
    const said = own && h("p", { class: "verdict-line" }, h("b", {}, `${thousands(own.found)} of ${thousands(own.of)}`), ` find their translation among the ${thousands(all.texts[0].length)} shown (chance ${share(1 / all.texts[0].length)})${others ? `; beside, ${thousands(others.found)}` : ""}.`);
    const lists = all.texts.map((_, number) => {
      const rows = points.map((point) => ({ point, ...pointOf(all, point) })).filter(({ language }) => language === number);
      if (rows.length === 0) return null;
      const list = h("ul", { class: "plain" });
      for (const { point, row } of rows.slice(0, LISTED)) {
        const rank = pane.measured(point)?.[0];
        const mark = rank === undefined ? "" : h("span", { class: rank === 1 ? "right" : "wrong" }, rank === 1 ? "✓" : "✗");
        list.append(h("li", {}, mark, listed(all, number, all.texts[number][row], () => choose(all, number, row))));
      }
      if (rows.length > LISTED) list.append(h("li", { class: "soft" }, `and ${thousands(rows.length - LISTED)} more`));
      return h("section", {}, h("h2", { class: `word c${number}` }, `${all.languages[number].name}: ${thousands(rows.length)}`), list);
    });
    return [h("h2", {}, `${thousands(points.length)} ${noun()}${points.length === 1 ? "" : "s"} ${name}`), said, ...lists];
  };

  const showInspector = () => {
    const all = pane.all;
    if (!all || shown !== state.kind || pane.run !== session.run) return;
    const point = hovered ?? chosen();
    if (point === null) {
      const points = lit();
      if (points.length > 0) return refill(inspector, ...listOf(points, area.length > 0 ? "in the area" : `with “${state.find}”`));
      return refill(inspector, state.find !== "" ? h("p", {}, `No ${noun()} has “${state.find}”.`) : null, hint());
    }
    const { language, row } = pointOf(all, point);
    const parts: (HTMLElement | null)[] = all.texts.flatMap((texts, other) => {
      const own = other === language;
      const place = own || all.paired ? row : twinOf(all, language, row, other);
      if (place < 0) return [];
      const name = own ? all.languages[other].name : `${all.languages[other].name}, its translation`;
      return [h("h2", { class: `word c${other}` }, name), glossed(all, other, texts[place])];
    });
    const measured = pane.measured(point);
    if (measured) {
      const [rank, hub] = measured;
      const place = rank === 1 ? "It finds its translation" : `Its translation is ${rank > 100 ? "beyond the hundredth" : `number ${rank}`} of ${thousands(all.texts[0].length)}`;
      parts.push(h("p", { class: "rank soft" }, `${place}; it is the nearest of ${hub === 1 ? "one sentence" : `${thousands(hub)} sentences`}.`));
    }
    refill(inspector, ...parts, nearestList(language, row), hint());
  };

  const hint = () => h("p", { class: "hint" }, `Point at a ${noun()} to see it and its translation; click to keep it. Drag to move, turn the wheel to zoom; hold Shift and drag, or press “Select an area”, to list one.`);

  const nearestList = (language: number, row: number): HTMLElement | null => {
    const all = pane.all!;
    // Models answer where the scrubber rests.
    if (session.run!.has_steps && session.run!.steps[nearestStep()] !== state.step) return null;
    const of = `${state.kind} ${language}:${row} ${state.mode} ${state.step}`;
    if (neighbours?.of === of) {
      const layer = neighbours.found.queries[0].layers[state.layer];
      const box = h("div", {});
      for (const { language: code, neighbors } of layer.languages) {
        const number = all.languages.findIndex((one) => one.code === code);
        if (number === language && all.languages.length > 1) continue;
        const saved = neighbours.found.weights.step;
        const weights = saved === null || saved === state.step ? "" : `, weights of step ${thousands(saved)}`;
        box.append(h("h2", {}, `Nearest in ${all.languages[number].name}${weights}`));
        const list = h("ol", { class: "nearest" });
        for (const { text, cosine } of neighbors.slice(0, 5)) {
          const right = neighbours.found.gold[number] === text;
          list.append(h("li", { class: right ? "right" : "" }, listed(all, number, text), h("span", { class: "number" }, right ? "✓ " : "", cosine.toFixed(3))));
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
    if (!run || !pane.numbers) return;
    const at = nearestStep();
    const all = pane.all;
    const isWords = state.kind === "words";
    const lengths = !run.given && !isWords ? "PCA with what sentence length explains removed" : "PCA";
    const plane = state.proj === "pca" ? (run.steps.length > 1 ? `${lengths}, each step turned to fit the one before` : lengths) : "Across: the difference of the two languages' means, which is chosen by the labels (supervised); up: the first direction within languages";
    const count = all?.texts.reduce((sum, texts) => sum + texts.length, 0) ?? 0;
    const joined = lit().length > 0 ? " Lines join translations of what is lit." : run.paired && !isWords ? ` Lines join ${Math.min(JOINED, run.points / run.languages.length)} translation pairs.` : isWords && all?.lexicon.some((words) => Object.keys(words).length > 0) ? " Lines join some words of the same meaning. P@1 above is of sentences." : "";
    const saved = isWords ? ` Words are read with the weights of ${pane.cloud.steps} saved steps; between them points are interpolated.` : "";
    const clouds = run.has_steps && at === 0 && run.from_random ? " Clouds overlap before training too: look at the lines and at P@1." : "";
    const of = state.colour === "language" || state.colour === "length" ? "" : ` Colours are by retrieval among the sentences shown${state.mode === "raw" ? "" : ", of mean-centred vectors"}.`;
    const text = `${thousands(isWords ? count : run.points)} ${noun()}s at ${state.layer === 0 ? "the embeddings" : layerName(state.layer)}, ${run.has_steps ? stepName(run.steps[at], run.from_random) : run.name}. ${plane}.${joined}${of}${saved}${clouds} ${pane.cloud.note}`;
    if (caption.textContent !== text) caption.textContent = text;
  };

  const showCurves = () => {
    const run = session.run;
    const numbers = pane.numbers;
    training = null;
    if (!run?.has_steps || run.steps.length < 2 || !numbers) return curves.replaceChildren();
    const of = (rows: number[][]) => numbers.steps.map((step, number) => [step, rows[number][state.layer]] as [number, number]);
    training = chart({
      title: `Training, ${layerName(state.layer)}`,
      note: " P@1 of retrieval, and the language's share of variance",
      series: [
        { name: "raw P@1", points: of(numbers.raw), colour: 2 },
        { name: "centred P@1", points: of(numbers.centered), colour: 3 },
        { name: "language", points: of(numbers.language_share), colour: 4 },
      ],
      levels: numbers.chance === null ? [] : [{ name: "chance", value: numbers.chance }],
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
    const wanted = `${JSON.stringify(params)} ${state.beside} ${run.steps.length}`;
    if (wanted === loaded) return;
    loaded = wanted;
    const still = state.beside === "untrained";
    const isOther = state.beside !== "" && !still && state.kind === "sentences";
    try {
      const other = isOther ? fetchOther(state.beside) : null;
      const [data, numbers, all] = await Promise.all([getPoints(params), metrics(), fetchShown()]);
      const found = await other;
      if (wanted !== loaded) return;
      Object.assign(pane, { run, data, numbers, all, ranks: null });
      Object.assign(beside, still ? { run, data, numbers, all, ranks: null } : (found ?? { data: null, all: null }), { still });
    } catch (error) {
      if (wanted === loaded) heading.replaceChildren(failureBox(error));
      return;
    }
    shown = state.kind;
    heading.textContent = pane.numbers!.title ?? `${run.name}, ${layerName(state.layer)}`;
    refill(clouds, ...panes.filter((one) => one.data).map((one) => one.element));
    clouds.classList.toggle("two", beside.data !== null);
    element.querySelector(".split")!.classList.toggle("three", beside.data !== null);
    clouds.dataset.points = String(pane.data!.count);
    for (const one of panes) one.name = still ? "" : (one.run?.name ?? "");
    for (const one of panesShown()) one.cloud.setData(one.data!, new Float32Array(one.data!.count), []);
    area = [];
    painted = "";
    redraw();
    drawn();
  };

  /** Points and numbers of another run at the same layer. */
  const fetchOther = async (id: string): Promise<Partial<Pane>> => {
    const run = await get<Run>("/api/run", { run: id });
    const layer = Math.min(state.layer, run.layers - 1);
    const of = { run: run.id, pair: run.pair };
    const at = { ...of, layer };
    const [data, numbers, all] = await Promise.all([getPoints({ ...at, mode: state.mode, proj: state.proj }), get<Metrics>("/api/metrics", at), get<Items>("/api/items", of)]);
    return { run, data, numbers, all, ranks: null };
  };

  /** Ranks, where something shows them. */
  const fetchRanks = () => {
    const isCheap = (pane.data?.count ?? 0) <= UNASKED && (chosen() !== null || lit().length > 0);
    const isShown = ["found", "rank", "hubness"].includes(state.colour) || area.length > 0 || isCheap;
    if (!isShown || state.kind === "words") return;
    for (const one of panesShown()) {
      const { run, ranks: before } = one;
      if (!run?.paired || run.languages.length !== 2) continue;
      ranks(run, one.layer).then(
        (found) => {
          if (one.run !== run || found === before || found === one.ranks) return;
          one.ranks = found;
          paint();
          showInspector();
        },
        () => {},
      );
    }
  };

  const redraw = () => {
    for (const one of panesShown()) one.move();
    painted = `${pane.step} ${beside.step}`;
    paint();
    showMarks();
    showInspector();
    showCaption();
    showCurves();
    fetchRanks();
  };

  const showControls = () => {
    const run = session.run;
    if (!run) return;
    const modes: [typeof state.mode, string, string][] = [
      ["raw", "raw", "The vectors themselves"],
      ["centered", "mean-centred", "Each language's mean is subtracted"],
    ];
    if (run.paired && state.kind === "sentences") modes.push(["aligned", "aligned", "And mapped onto the first language by Procrustes, learned from these very pairs"]);
    const isRanked = run.paired && run.languages.length === 2 && state.kind === "sentences";
    const colours: [typeof state.colour, string][] = [["language", "language"], ["length", "length"]];
    if (isRanked) colours.splice(1, 0, ["found", "found or not"], ["rank", "rank"], ["hubness", "hubness"]);
    const others: [string, string][] = [["", "nothing"]];
    if (run.has_steps && run.from_random && run.steps.length > 1) others.push(["untrained", "untrained"]);
    if (state.kind === "sentences") others.push(...session.list.runs.filter((one) => one.id !== run.id).map((one): [string, string] => [one.id, one.name]));
    const selecting = h("button", { type: "button", class: "quiet", "aria-pressed": String(pane.cloud.selects), click: () => {
      for (const one of panes) one.cloud.selects = !one.cloud.selects;
      showControls();
    } }, "Select an area");
    refill(
      controls,
      segmented("Vectors", modes, state.mode, (mode) => change({ mode, proj: "pca" })),
      run.languages.length === 2
        ? segmented<typeof state.proj>("Plane", [["pca", "principal plane"], ["difference", "between the languages"]], state.proj, (proj) => change({ proj, mode: "raw" }))
        : "",
      h("span", { class: "labelled" }, "colour ", select("Colour", colours, state.colour, (colour) => change({ colour }))),
      others.length > 1 ? h("span", { class: "labelled" }, "beside ", select("Beside", others, state.beside, (beside) => change({ beside }))) : "",
      selecting,
      h("button", { type: "button", class: "quiet", click: () => panes.forEach((one) => one.cloud.resetView()) }, "Reset the view"),
    );
    command.show({ ...here(), ...kind(), view: "space", layer: state.layer, mode: state.mode, proj: state.proj, step: isBaked ? run.steps[run.steps.length - 1] : state.step });
  };

  panes.forEach((one, number) => {
    const own = (point: number) => (number === 0 ? point : fromBeside(point));
    one.cloud.onHover = (point) => {
      const next = point === null ? null : own(point);
      if (next === hovered || next === -1) return;
      hovered = next;
      showMarks();
      showInspector();
    };
    one.cloud.onPick = (point) => {
      const next = point === null ? -1 : own(point);
      area = [];
      if (next < 0 || !pane.all) {
        change({ sel: "" });
        return redraw();
      }
      const { language, row } = pointOf(pane.all, next);
      choose(pane.all, language, row);
    };
    one.cloud.onLasso = (points) => {
      area = points.map(own).filter((point) => point >= 0);
      hovered = null;
      change({ sel: "" });
      redraw();
    };
  });

  return {
    element,
    ready,
    update(changed) {
      showControls();
      if (changed.has("find")) area = [];
      if (["sel", "find", "colour"].some((name) => changed.has(name)) && shown === state.kind) redraw();
      if (changed.has("step")) showInspector();
      void load();
    },
    move() {
      for (const one of panesShown()) one.move();
      showCaption();
      if (session.run?.has_steps) training?.setCursor(at(session.run.steps));
      // What is measured of a point is of a step.
      if (pane.ranks && painted !== `${pane.step} ${beside.step}`) {
        painted = `${pane.step} ${beside.step}`;
        paint();
        if (hovered === null) showInspector();
      }
    },
    refresh() {
      loaded = "";
      void load();
    },
  };
}

/** The point of the same sentence among others; -1 where it is not there. */
function translated(from: Items, to: Items, point: number): number {
  const { language, row } = pointOf(from, point);
  const there = to.languages.findIndex((one) => one.code === from.languages[language].code);
  const text = from.texts[language][row];
  const place = to.texts[there]?.[row] === text ? row : (to.texts[there]?.indexOf(text) ?? -1);
  return place < 0 ? -1 : pointAt(to, there, place);
}

/** The row of the word of another language that has the same meaning; -1 where it is not known. */
function twinOf(all: Items, language: number, row: number, other: number): number {
  const gloss = glossOf(all, language, all.texts[language][row]);
  return gloss ? all.texts[other].findIndex((text) => glossOf(all, other, text) === gloss) : -1;
}

/** The place of the scrubber among other steps than the run's: those of weights are fewer, those of another run others. */
function placeAmong(steps: number[]): number {
  const run = session.run;
  if (!run?.has_steps || steps.length < 2) return run?.has_steps ? 0 : session.at;
  if (String(steps) === String(run.steps)) return session.at;
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
