// Shift: the difference of two languages' mean vectors is added to a sentence, a little more with the slider, and its words change language.

import { type Translation, isBaked, post } from "../api";
import { chart } from "../chart";
import { h, layerName, percent, reducedMotion, refill, segmented, select, thousands } from "../dom";
import { glossOf, here, isSought, items, session } from "../session";
import { change, initial, state } from "../state";
import { CommandLine, type View, failureBox, glossed, settled } from "./common";

/** All weights of the slider are asked for at once, so that it never waits. */
const ALPHAS = Array.from({ length: 16 }, (_, tenth) => tenth / 10);

export function shiftView(): View {
  const heading = h("h1", {}, "Can one vector translate?");
  const field = h("input", { type: "text", "aria-label": "A sentence", maxlength: 600, spellcheck: "false", input: () => ask(), disabled: isBaked });
  const [before, after] = [h("span", { class: "contents" }), h("span", { class: "contents" })];
  const form = h("form", { class: "controls", submit: (event: SubmitEvent) => event.preventDefault() }, before, field, after);
  const slider = h("input", { type: "range", id: "alpha", min: 0, max: ALPHAS.length - 1, step: 1, input: () => change({ a: ALPHAS[Number(slider.value)] }) });
  const weight = h("output", { for: "alpha" });
  const output = h("div", { class: "translation", "aria-live": "polite" });
  const curve = h("div", { class: "strip" });
  const caption = h("p", { class: "caption" });
  const command = new CommandLine();
  const sliderRow = h("div", { class: "sliderrow" }, h("label", { for: "alpha" }, "Weight α of the shift"), slider, weight);
  const element = h("section", { class: "view" }, heading, form, sliderRow, output, curve, caption, command.element);
  let asked = "";
  let found: Translation | null = null;

  /** The weight while it moves up to the first one that is shown. */
  let swept: number | null = null;
  let hasSwept = reducedMotion() || state.a !== initial.a;
  const sweep = () => {
    if (hasSwept) return show();
    hasSwept = true;
    const start = performance.now();
    const frame = (time: number) => {
      const share = (time - start) / 1000;
      const before = swept;
      swept = share < 1 && state.a === initial.a ? Math.floor(10 * state.a * share) / 10 : null;
      if (swept !== before) show();
      if (swept !== null) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  };

  const ask = settled(() => change({ text: field.value.trim() }), 300);
  const languageOf = (code: string) => session.run!.languages.findIndex((one) => one.code === code);

  const showForm = () => {
    const run = session.run!;
    const all = session.items!;
    if (document.activeElement !== field) field.value = state.text;
    const layers = Array.from({ length: run.layers }, (_, layer): [number, string, string] => [layer, layer === 0 ? "E" : String(layer), `Shift after ${layer === 0 ? "the embeddings" : layerName(layer)}`]);
    const swap = () => {
      const row = all.texts[Math.max(0, languageOf(state.from))].indexOf(state.text);
      const other = languageOf(state.to);
      change({ from: state.to, to: state.from, text: all.texts[other]?.[Math.max(0, row)] ?? "" });
    };
    const directions: [string, string][] = run.languages.flatMap((a) => run.languages.filter((b) => a !== b).map((b): [string, string] => [`${a.code} ${b.code}`, `${a.name} → ${b.name}`]));
    refill(
      before,
      run.languages.length === 2
        ? h("button", { type: "button", class: "quiet", title: "The other direction", click: swap }, `${run.languages[languageOf(state.from)]?.name} → ${run.languages[languageOf(state.to)]?.name} ⇄`)
        : select("Direction", directions, `${state.from} ${state.to}`, (both) => {
            const [from, to] = both.split(" ");
            change({ from, to, text: all.texts[languageOf(from)][0] });
          }),
    );
    refill(
      after,
      h("span", { class: "labelled" }, "after layer ", segmented("The layer that is shifted", layers, state.sl, (sl) => change({ sl }))),
    );
  };

  const show = () => {
    if (!found || !session.items) return;
    const run = session.run!;
    const all = session.items;
    const number = Math.max(0, ALPHAS.findIndex((alpha) => Math.abs(alpha - (swept ?? state.a)) < 0.05));
    slider.value = String(number);
    slider.setAttribute("aria-valuetext", `α = ${ALPHAS[number]}`);
    weight.textContent = ALPHAS[number].toFixed(1);
    const [from, to] = [languageOf(found.from), languageOf(found.to)];
    const row = all.texts[from]?.indexOf(found.sentence) ?? -1;
    const now = found.outputs[number];
    const tokens = h("ol", { class: "tokens" });
    const reference = row >= 0 && all.paired ? all.texts[to][row] : null;
    const [words, wanted] = [new Set(reference?.split(" ")), glossOf(all, from, found.sentence)?.split(" ") ?? []];
    // Word for word, where every word of the sentence is one position; else it is enough to be a word of the translation.
    const verdicts = now.subwords.map((subword, place) => {
      const text = subword.text.replace(/-$/, "");
      const meaning = glossOf(all, subword.source && !subword.target ? from : to, text);
      const aligned = meaning !== undefined && wanted.length > place && Math.abs(wanted.length - now.subwords.length) <= 1;
      return { meaning, right: subword.target && (aligned ? meaning === wanted[place] : words.has(text)) };
    });
    now.subwords.forEach((subword, place) => {
      const kind = subword.target && !subword.source ? `c${to} target` : subword.source && !subword.target ? `c${from} source` : "neither";
      const list = h("ul", {});
      for (const { text, probability } of found!.probabilities[number][place]) {
        const bar = h("span", { class: "bar" });
        bar.style.setProperty("--share", String(probability));
        list.append(h("li", {}, h("span", {}, text), h("span", { class: "number" }, percent(probability)), bar));
      }
      const { meaning, right } = verdicts[place];
      const judged = subword.target && (meaning ?? reference) ? h("span", { class: right ? "right" : "wrong" }, right ? " ✓" : " ✗") : "";
      const lit = isSought(all, subword.source ? from : to, subword.text) ? " lit" : "";
      tokens.append(h("li", { class: kind + lit }, h("b", {}, subword.text), judged, h("i", { class: "gloss" }, meaning ?? "\u00a0"), list));
    });
    output.replaceChildren(
      h("h2", { class: `word c${from}` }, `Input, ${run.languages[from]?.name}`),
      glossed(all, from, found.sentence),
      h("h2", {}, "What the model predicts at each position, and its three likeliest"),
      tokens,
      ...(reference ? [h("h2", { class: `word c${to}` }, `Its translation, ${run.languages[to]?.name}`), glossed(all, to, reference)] : []),
    );
    const rates = found.outputs.filter((one) => one.conversion_rate !== null).map((one) => [one.alpha, one.conversion_rate!] as [number, number]);
    curve.replaceChildren(
      rates.length > 1
        ? chart({
            title: "Token conversion rate", note: ` tokens that only ${run.languages[to]?.name} uses, of those that not both use`,
            series: [{ name: "converted", points: rates, colour: to }], logX: false, top: 1, xName: "weight α",
            xTicks: [0, 0.5, 1, 1.5].map((x) => [x, String(x)]), format: percent, cursor: ALPHAS[number],
            pick: (a) => change({ a: Math.round(a * 10) / 10 }), height: 150,
          }).element
        : "",
    );
    const at = found.weights.step;
    const weights = at === null ? "the run's own weights" : `the weights of step ${thousands(at)}${at === state.step ? "" : ", the nearest that were saved"}`;
    const means = found.means ? "" : " Mean vectors were computed from the parallel sentences of the run.";
    const share = now.conversion_rate === null ? "" : ` At α = ${ALPHAS[number].toFixed(1)}, ${percent(now.conversion_rate)} of the tokens are of ${run.languages[to]?.name}.`;
    caption.textContent = `The difference of the two languages' mean vectors, times α, is added to every hidden state after ${found.layer === 0 ? "the embeddings" : layerName(found.layer)} (${weights}); nothing is masked.${share}${means}`;
    const [unknown, many] = [found.unknown, found.sentence.split(/\s+/).length];
    if (unknown.length > 0 && unknown.length < many) caption.textContent += ` Not in ${run.languages[from]?.name}: ${unknown.join(", ")}.`;
    const language = run.languages[from]?.name;
    if (unknown.length === many) {
      heading.textContent = many === 1 ? `This word is not in ${language}` : `None of these ${many} words is in ${language}`;
      return;
    }
    const said = `${percent(now.conversion_rate ?? 0)} of the tokens have changed language`;
    const right = verdicts.filter((verdict) => verdict.right).length;
    const matches = reference && number > 0 ? `, ${right} of ${now.subwords.length} say what they should` : "";
    heading.textContent = number === 0 ? "Can one vector translate? Move the slider" : said + matches;
  };

  const load = async () => {
    const run = session.run;
    if (!run) return;
    const all = await items();
    if (!state.text) {
      change({ text: all.texts[Math.max(0, languageOf(state.from))][0] });
      return;
    }
    showForm();
    const query = { ...here(), step: state.step, from: state.from, to: state.to, layer: state.sl, kind: "mean", text: state.text, alphas: ALPHAS.join(",") };
    command.show({ ...query, view: "shift" });
    const wanted = JSON.stringify(query);
    if (wanted === asked) return show();
    asked = wanted;
    try {
      const answer = await post<Translation>("/api/translate", query);
      if (wanted !== asked) return;
      found = answer;
      sweep();
    } catch (error) {
      if (wanted !== asked) return;
      found = null;
      output.replaceChildren(failureBox(error));
      curve.replaceChildren();
      caption.textContent = "";
    }
  };

  return { element, update: () => void load() };
}
