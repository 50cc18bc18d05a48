// How a shared space emerges: what was measured at every layer, over the steps of training.

import { isBaked } from "../api";
import { type Chart, type Series, chart } from "../chart";
import { h, layerName, percent, thousands } from "../dom";
import { here, metrics, session } from "../session";
import { change, state } from "../state";
import { CommandLine, type View, failureBox } from "./common";

export function emergenceView(goTo: (step: number) => void): View {
  const heading = h("h1", {});
  const caption = h("p", { class: "caption" });
  const grid = h("div", { class: "charts" });
  const command = new CommandLine();
  const element = h("section", { class: "view" }, heading, grid, caption, command.element);

  let drawn: Chart[] = [];

  const draw = async () => {
    const run = session.run;
    if (!run) return;
    const numbers = await metrics().catch((error) => {
      heading.replaceChildren(failureBox(error));
      return null;
    });
    if (!numbers) return;
    heading.textContent = numbers.title ?? `${run.name}: what each layer has of a shared space`;
    const steps = numbers.steps;
    const timed = run.has_steps && steps.length > 1;
    const cursor = timed ? steps[Math.round(session.at)] : state.layer;
    const common = timed
      ? { logX: true, xName: "training step", xTicks: steps.map((step) => [step, thousands(step)] as [number, string]), pick: goTo }
      : {
          logX: false,
          xName: "layer (0: embeddings)",
          xTicks: Array.from({ length: run.layers }, (_, layer) => [layer, String(layer)] as [number, string]),
          pick: (layer: number) => change({ layer }),
        };
    const lines = (rows: number[][], colour: number): Series[] => {
      if (!timed) return [{ name: "", points: rows[0].map((value, layer) => [layer, value]), colour }];
      return Array.from({ length: run.layers }, (_, layer) => ({
        name: layerName(layer),
        points: rows.map((row, number) => [steps[number], row[layer]] as [number, number]),
        colour: layer === state.layer ? colour : null,
      }));
    };
    const levels = (rows: number[][], chance: number | null) => [
      ...(numbers.from_random && timed ? [{ name: "untrained", value: rows[0][state.layer] }] : []),
      ...(chance === null ? [] : [{ name: "chance", value: chance }]),
    ];
    const among = ` among ${thousands(numbers.candidates)} sentences`;
    const charts: Chart[] = [];
    if (numbers.raw[0]?.length) {
      charts.push(
        chart({ title: "Retrieval, raw", note: ` P@1${among}`, series: lines(numbers.raw, 2), levels: levels(numbers.raw, numbers.chance), top: 1, format: percent, cursor, ...common }),
        chart({ title: "Retrieval, mean-centred", note: ` P@1${among}`, series: lines(numbers.centered, 3), levels: levels(numbers.centered, numbers.chance), top: 1, format: percent, cursor, ...common }),
      );
    }
    charts.push(chart({ title: "The language's share of variance", note: " between the languages' means", series: lines(numbers.language_share, 4), levels: levels(numbers.language_share, null), top: 1, format: percent, cursor, ...common }));
    if (numbers.perplexity.length > 1) {
      const names = Object.keys(numbers.perplexity[0].values);
      const series = names.map((code) => ({
        name: run.languages.find((language) => language.code === code)?.name ?? code,
        points: numbers.perplexity.map(({ step, values }) => [step, values[code]] as [number, number]),
        colour: Math.max(0, run.languages.findIndex((language) => language.code === code)),
      }));
      charts.push(chart({ title: "Perplexity", note: " of masked tokens of held-out text", series, format: (value) => value.toPrecision(3).replace(/\.0+$/, ""), cursor, ...common, logY: true, pick: undefined }));
    }
    drawn = charts;
    grid.replaceChildren(...charts.map((one) => one.element));
    caption.textContent = timed
      ? `The coloured line is ${layerName(state.layer)}, grey lines are the other layers. P@1: how often the nearest of ${thousands(numbers.candidates)} sentences of the other language is the translation, mean of both directions. Click a chart to go to a step.`
      : "P@1: how often the nearest sentence of the other language is the translation, mean of both directions. Click a chart to choose a layer.";
    command.show({ ...here(), view: "emergence", layer: state.layer, step: isBaked ? run.steps[run.steps.length - 1] : undefined });
  };
  return {
    element,
    update: () => void draw(),
    move: () => {
      const step = session.run?.steps[Math.round(session.at)];
      if (session.run?.has_steps && step !== undefined) drawn.forEach((one) => one.setCursor(step));
    },
    refresh: () => void draw(),
  };
}
