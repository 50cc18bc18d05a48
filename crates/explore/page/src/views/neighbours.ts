// Neighbours: a sentence's nearest in every language, at every layer, and where retrieval goes wrong.

import { type Neighbours, type RetrievalErrors, get, isBaked, post } from "../api";
import { h, layerName, percent, refill, select, thousands } from "../dom";
import { fetchShown, here, kind, noun, session, shownItems } from "../session";
import { change, state } from "../state";
import { CommandLine, type View, failureBox, glossed, listed, settled } from "./common";

const NEIGHBOURS = 10;

export function neighboursView(): View {
  const heading = h("h1", {}, "Does it find its translation?");
  const field = h("input", { type: "text", "aria-label": "A sentence", maxlength: 600, spellcheck: "false", input: () => ask(), disabled: isBaked });
  const [before, after] = [h("span", { class: "contents" }), h("span", { class: "contents" })];
  const form = h("form", { class: "controls", submit: (event: SubmitEvent) => event.preventDefault() }, before, field, after);
  const answer = h("div", { class: "answer", "aria-live": "polite" });
  const mistakes = h("div", { class: "mistakes" });
  const command = new CommandLine();
  const element = h("section", { class: "view" }, heading, form, answer, command.element, mistakes);
  let asked = "";
  let askedErrors = "";

  const params = () => ({ ...here(), step: state.step, mode: state.mode === "raw" ? "raw" : "centered" });
  const ask = settled(() => change({ q: field.value.trim() }), 300);

  const showForm = () => {
    const run = session.run!;
    if (document.activeElement !== field) field.value = state.q;
    field.setAttribute("aria-label", `A ${noun()}`);
    refill(
      before,
      select("Language", run.languages.map((one): [string, string] => [one.code, one.name]), state.ql, (ql) => change({ ql, q: shownItems()!.texts[run.languages.findIndex((one) => one.code === ql)][0] })),
    );
    refill(
      after,
      select<string>("Vectors", [["raw", "raw vectors"], ["centered", "mean-centred"]], state.mode === "raw" ? "raw" : "centered", (mode) => change({ mode: mode as typeof state.mode })),
    );
  };

  const showAnswer = (found: Neighbours) => {
    const run = session.run!;
    const all = shownItems()!;
    const query = found.queries[0];
    const own = run.languages.findIndex((one) => one.code === state.ql);
    const at = found.weights.step;
    const weights = at === null ? "the run's own weights" : `the weights of step ${thousands(at)}${at === state.step ? "" : ", the nearest that were saved"}`;
    const parts: HTMLElement[] = [glossed(all, own, query.query)];
    const gold = found.gold.findIndex((text, language) => language !== own && text !== null);
    if (gold >= 0) {
      const list = h("ol", { class: "ranks", "aria-label": "The place of the translation at each layer" });
      query.layers.forEach((_, number) => {
        const place = found.ranks[number][gold];
        const name = place === null ? "beyond 1,000" : thousands(place);
        const choose = () => change({ layer: number });
        list.append(h("li", {}, h("button", { type: "button", class: place === 1 ? "right" : "", "aria-pressed": String(number === state.layer), click: choose }, h("span", {}, layerName(number)), h("b", {}, name))));
      });
      const firsts = found.ranks.filter((places) => places[gold] === 1).length;
      heading.textContent = firsts === 0 ? `This ${noun()} finds its translation at no layer` : `This ${noun()} finds its translation at ${firsts} of ${query.layers.length} layers`;
      parts.push(h("p", { class: "soft" }, `The place of the translation among ${thousands(found.candidates[gold].candidates)} ${noun()}s, layer by layer:`), list);
    }
    if (gold < 0) heading.textContent = `What is nearest to this ${noun()}?`;
    const columns = h("div", { class: "columns" });
    const layer = query.layers[state.layer];
    const order = [...layer.languages.keys()].sort((a, b) => Number(a === own) - Number(b === own));
    for (const number of order) {
      const { neighbors } = layer.languages[number];
      const list = h("ol", { class: "nearest" });
      for (const { text, cosine } of neighbors) {
        const right = number !== own && found.gold[number] === text;
        const bar = h("span", { class: `bar c${number}` });
        bar.style.setProperty("--share", String(Math.max(0, cosine)));
        const choose = () => change({ ql: run.languages[number].code, q: text });
        list.append(
          h("li", { class: right ? "right" : "" },
            listed(all, number, text, choose),
            h("span", { class: "number" }, right ? "✓ " : "", cosine.toFixed(3)), bar),
        );
      }
      columns.append(h("div", {}, h("h2", { class: `word c${number}` }, `Nearest in ${run.languages[number].name}, ${layerName(state.layer)}`), list));
    }
    parts.push(columns, h("p", { class: "caption" }, `By cosine of mean vectors, with ${weights}.${gold >= 0 ? " ✓ marks the translation." : ""}`));
    answer.replaceChildren(...parts);
  };

  const load = async () => {
    const run = session.run;
    if (!run) return;
    const all = await fetchShown();
    if (!state.q) {
      const language = Math.max(0, run.languages.findIndex((one) => one.code === state.ql));
      const pinned = state.sel ? state.sel.split(":").map(Number) : [language, 0];
      change({ ql: run.languages[pinned[0]]?.code ?? run.languages[0].code, q: all.texts[pinned[0]]?.[pinned[1]] ?? all.texts[0][0] });
      return;
    }
    showForm();
    const query = { ...params(), ...kind(), lang: state.ql, text: state.q, k: NEIGHBOURS };
    command.show({ ...query, view: "neighbours" });
    const wanted = JSON.stringify(query);
    if (wanted !== asked) {
      asked = wanted;
      latest = null;
      post<Neighbours>("/api/neighbours", query).then(
        (found) => {
          if (wanted !== asked) return;
          latest = found;
          showAnswer(found);
        },
        (error) => wanted === asked && answer.replaceChildren(failureBox(error)),
      );
    } else if (latest) showAnswer(latest);
    if (run.paired && run.languages.length === 2 && state.kind === "sentences") showErrors();
    else {
      askedErrors = "";
      mistakes.replaceChildren();
    }
  };
  let latest: Neighbours | null = null;

  const showErrors = () => {
    const run = session.run!;
    const all = shownItems()!;
    const wanted = JSON.stringify({ ...params(), layer: state.layer, find: state.find });
    if (wanted === askedErrors) return;
    askedErrors = wanted;
    get<RetrievalErrors>("/api/errors", { ...params(), layer: state.layer }).then(
      (found) => {
        if (wanted !== askedErrors) return;
        const rows = found.errors.map((error) => {
          const own = error.direction === "forward" ? 0 : 1;
          const choose = () => change({ ql: run.languages[own].code, q: error.query });
          return h("tr", {},
            h("td", {}, listed(all, own, error.query, choose)),
            h("td", {}, listed(all, 1 - own, error.neighbors[0]?.text ?? "")),
            h("td", {}, ...error.gold.map((gold) => listed(all, 1 - own, gold))),
            h("td", { class: "number" }, (error.neighbors[0]?.score ?? 0).toFixed(3)));
        });
        const shown = rows.length < found.wrong ? `, the first ${rows.length} below` : "";
        mistakes.replaceChildren(
          h("h2", {}, `Errors of retrieval at ${layerName(state.layer)}: ${thousands(found.wrong)} of ${thousands(2 * found.sentences)}${shown}`),
          h("p", { class: "caption" }, `P@1 ${percent(found.mean)} (${run.languages[0].name} to ${run.languages[1].name} ${percent(found.forward)}, back ${percent(found.backward)}).`),
          rows.length === 0 ? h("p", {}, "Every sentence finds its translation.")
            : h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Errors of retrieval" },
                h("table", {}, h("thead", {}, h("tr", {}, ...["sentence", "nearest", "its translation", "cosine"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...rows))),
        );
      },
      (error) => wanted === askedErrors && mistakes.replaceChildren(failureBox(error)),
    );
  };

  return { element, update: () => void load() };
}
