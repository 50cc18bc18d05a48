// Layers: CKA of every layer with every layer, between the two languages, and between runs or steps.

import { type Run, type Similarity, get, isBaked } from "../api";
import { h, layerName, refill, segmented, select, stepName, svg, thousands } from "../dom";
import { here, session } from "../session";
import { change, state } from "../state";
import { CommandLine, type View, failureBox } from "./common";

export function layersView(): View {
  const heading = h("h1", {}, "How similar are the layers?");
  const controls = h("div", { class: "controls" });
  const map = h("div", { class: "heat" });
  const caption = h("p", { class: "caption" });
  const command = new CommandLine();
  const element = h("section", { class: "view" }, heading, controls, map, caption, command.element);
  let asked = "";
  let found: Similarity | null = null;
  let other: Run | null = null;

  const showControls = () => {
    const run = session.run!;
    const values: [typeof state.value, string, string][] = [
      ["debiased", "debiased", "The unbiased estimator: not high by chance alone"],
      ["cka", "biased", "High by chance where there are few sentences"],
      ["within_length", "within a length", "Biased, with the mean of the sentences of the same length subtracted"],
    ];
    const steps = (other ?? run).steps;
    const against = isBaked ? [] : [
      h("span", { class: "soft" }, "across:"),
      select("The other run", [["", "the same run"], ...session.list.runs.filter((one) => one.id !== run.id).map((one): [string, string] => [one.id, one.name])], state.other, (id) => change({ other: id, ostep: -1 })),
      run.has_steps ? select("Its step", [[-1, state.other ? "in the end" : "the same step"], ...steps.map((step): [number, string] => [step, stepName(step, run.from_random)])], state.ostep, (ostep) => change({ ostep })) : h("span", {}),
    ];
    refill(controls, segmented("Value", values, state.value, (value) => change({ value })), ...against);
  };

  const show = () => {
    if (!found || !session.run) return;
    const run = session.run;
    const { result } = found;
    const table = state.value === "within_length" ? (result.within_length ?? []) : result[state.value];
    if (table.length === 0) return map.replaceChildren(h("p", { class: "failure" }, "Lengths hardly repeat in these sentences, so that there is no value within a length."));
    const [a, b] = [run.languages[0], run.languages[1] ?? run.languages[0]];
    const [rows, columns] = [table.length, table[0].length];
    const cell = Math.max(34, Math.min(72, Math.floor((Math.min(map.clientWidth || 700, 900) - 90) / columns)));
    const [left, top] = [86, 44];
    const root = svg("svg", { class: "heatmap", width: left + columns * cell + 6, height: top + rows * cell + 8, viewBox: `0 0 ${left + columns * cell + 6} ${top + rows * cell + 8}`, role: "group", "aria-label": "CKA of every layer with every layer" });
    root.append(svg("text", { class: "word c1 strong", x: left, y: 14 }, `${b.name}, ${nameOf(found.other)} →`));
    for (let column = 0; column < columns; column++) root.append(svg("text", { class: "small middle", x: left + (column + 0.5) * cell, y: top - 8 }, column === 0 ? "emb." : String(column)));
    table.forEach((line, row) => {
      root.append(svg("text", { class: "small end", x: left - 8, y: top + (row + 0.5) * cell + 4 }, row === 0 ? "emb." : `layer ${row}`));
      line.forEach((value, column) => {
        const share = value === null ? 0 : Math.max(0, Math.min(1, value));
        const open = () => change({ v: "space", layer: row });
        const name = `${layerName(row)} with ${layerName(column)}: ${value === null ? "none" : value.toFixed(3)}`;
        const group = svg("g", { class: "cellbox", role: "button", tabindex: "0", "aria-label": name, click: open, keydown: (event: KeyboardEvent) => (event.key === "Enter" || event.key === " ") && (event.preventDefault(), open()) },
          svg("title", {}, name));
        const box = svg("rect", { x: left + column * cell + 1, y: top + row * cell + 1, width: cell - 2, height: cell - 2, rx: 4 });
        box.style.setProperty("--share", `${Math.round(100 * share)}%`);
        group.append(box, svg("text", { class: share > 0.55 ? "middle cellnumber on" : "middle cellnumber", x: left + (column + 0.5) * cell, y: top + (row + 0.5) * cell + 4 }, value === null ? "–" : value.toFixed(2).replace(/^0/, "")));
        root.append(group);
      });
    });
    map.replaceChildren(h("p", { class: "word c0 strong" }, `${a.name}, ${nameOf(found.weights)} ↓`), h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "The table of layers" }, root));
    const diagonal = table.map((line, layer) => line[layer]).map((value, layer) => [value, layer] as const).filter(([value]) => value !== null && value !== undefined);
    const [best, layer] = diagonal.reduce((best, one) => (one[0]! > best[0]! ? one : best), diagonal[0] ?? [0, 0]);
    heading.textContent = `The languages are most alike at ${layer === 0 ? "the embeddings" : layerName(layer)}: CKA ${(best ?? 0).toFixed(2)}`;
    caption.textContent = `Linear CKA of ${thousands(result.used)} sentences with their translations: 1 for representations that are equal up to rotation and scale, near 0 for unrelated ones. Sentence length alone makes an untrained encoder's layers alike: compare with step 0, or look within a length. A cell opens the space of its row's layer.${result.few_rows ? " There are few sentences for so many dimensions, so that the biased value is high by chance: trust the debiased one." : ""}`;
  };

  const nameOf = (weights: { model: string; step: number | null }) => (weights.step === null ? "in the end" : `step ${thousands(weights.step)}`);

  const load = async () => {
    const run = session.run;
    if (!run) return;
    if (state.other && other?.id !== state.other) other = await get<Run>("/api/run", { run: state.other }).catch(() => null);
    if (!state.other) other = null;
    showControls();
    const last = (other ?? run).steps.at(-1);
    const query = { ...here(), step: state.step, other: state.other || undefined, other_step: state.ostep >= 0 ? state.ostep : state.other ? last : undefined };
    command.show({ ...query, view: "layers" });
    const wanted = JSON.stringify(query);
    if (wanted === asked) return show();
    asked = wanted;
    try {
      const answer = await get<Similarity>("/api/cka", query);
      if (wanted !== asked) return;
      found = answer;
      show();
    } catch (error) {
      if (wanted === asked) map.replaceChildren(failureBox(error));
    }
  };

  return { element, update: () => void load() };
}
