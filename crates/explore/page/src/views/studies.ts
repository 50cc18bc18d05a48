// Studies: which findings of the papers hold in which setting, with figures and numbers behind each verdict.

import { type Finding, type Findings, figureAddress, get } from "../api";
import { h, refill } from "../dom";
import { session } from "../session";
import { change, state } from "../state";
import { CommandLine, type View, failureBox } from "./common";

const SIGNS: Record<string, string> = {
  holds: "✓", fails: "✗", inconclusive: "~", "not measured": "=", "no test": "∅", "two seeds": "2", "one seed": "1", "not tested": "·",
};
/** Figures of a laboratory in which no finding was tested. */
const FIGURES = 12;
const ORDER = ["fails", "holds", "inconclusive", "not measured", "no test", "two seeds", "one seed", "not tested"];

export function studiesView(): View {
  const heading = h("h1", {}, "Which findings hold?");
  const matrix = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Findings and verdicts" });
  const details = h("div", { class: "details", "aria-live": "polite" });
  const commands = [new CommandLine(), new CommandLine()];
  const split = h("div", { class: "split wide" }, matrix, details);
  const element = h("section", { class: "view studies" }, heading, split, ...commands.map((command) => command.element));
  let all: Findings | null = null;

  const load = async () => {
    if (!session.list.laboratory) {
      matrix.replaceChildren(h("p", {}, "Verdicts come from a laboratory with studies in it, and what was opened is none. Run studies with “isogloss study run”, or open the folder of a laboratory."));
      return;
    }
    if (!all) matrix.replaceChildren(h("p", { class: "waiting" }, "Judging…"));
    try {
      all ??= await get<Findings>("/api/findings");
    } catch (error) {
      matrix.replaceChildren(failureBox(error));
      return;
    }
    show(all);
  };

  const show = ({ findings, commands: lines, missing, left_out: leftOut }: Findings) => {
    const settings = [...new Set(findings.map((finding) => finding.setting))];
    const rows = [...new Map(findings.map((finding) => [keyOf(finding), finding])).values()];
    const count = (verdict: string) => findings.filter((finding) => finding.verdict === verdict).length;
    heading.textContent = findings.length === 0 ? "The figures of this laboratory" : `${count("holds")} findings hold, ${count("fails")} fail, ${count("inconclusive")} are inconclusive`;
    let section = "";
    const body = h("tbody", {});
    for (const row of rows) {
      if (row.section !== section) {
        section = row.section;
        body.append(h("tr", { class: "section" }, h("th", { scope: "rowgroup", colspan: settings.length + 1 }, section.replaceAll("-", " "))));
      }
      const line = h("tr", {}, h("th", { scope: "row" }, row.finding));
      for (const setting of settings) {
        const own = findings.filter((finding) => keyOf(finding) === keyOf(row) && finding.setting === setting);
        const cell = h("td", {});
        if (own.length > 0) {
          const kinds = ORDER.filter((verdict) => own.some((finding) => finding.verdict === verdict));
          const key = `${keyOf(row)}|${setting}`;
          const names = kinds.map((verdict) => `${own.filter((finding) => finding.verdict === verdict).length} ${verdict}`).join(", ");
          const button = h("button", { type: "button", class: "verdict", "aria-pressed": String(state.f === key), "aria-label": `${row.finding}, ${setting}: ${names}`, click: () => change({ f: state.f === key ? "" : key }) });
          for (const verdict of kinds) {
            const many = own.filter((finding) => finding.verdict === verdict).length;
            button.append(h("span", { class: `v-${verdict.replaceAll(" ", "-")}` }, SIGNS[verdict] ?? "?", own.length > 1 ? h("small", {}, String(many)) : ""));
          }
          cell.append(button);
        }
        line.append(cell);
      }
      body.append(line);
    }
    const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "finding"), ...settings.map((setting) => h("th", { scope: "col" }, setting))));
    const key = h("p", { class: "caption" }, "✓ holds, ✗ fails, ~ inconclusive, = an untrained encoder does as well, ∅ no test: seeds without spread, or languages or encoders that are too few, 1 or 2: too few seeds, · no results. Two-sided tests over seeds, or of permuted languages or encoders, at a false discovery rate of 5 % over all lines of a setting.", missing.length > 0 ? ` Not run: ${missing.join(", ")}.` : "", leftOut > 0 ? ` ${leftOut} figures would make this file too large and are not inside; isogloss report has them.` : "");
    if (findings.length > 0) refill(matrix, h("table", { class: "matrix" }, head, body), key);
    else matrix.replaceChildren(h("p", { class: "caption" }, "No study with a finding of the papers has results here yet, so that there are no verdicts: “isogloss study list” names the studies."));
    split.classList.toggle("stacked", findings.length === 0);
    showDetails(findings);
    lines.forEach((line, number) => commands[number]?.put(line));
  };

  const showDetails = (findings: Finding[]) => {
    if (findings.length === 0) return refill(details, ...(all?.figures ?? []).slice(0, FIGURES).map(drawn));
    const own = findings.filter((finding) => `${keyOf(finding)}|${finding.setting}` === state.f);
    if (own.length === 0) return details.replaceChildren(h("p", { class: "soft" }, "Choose a verdict to see the numbers and figures behind it."));
    const first = own[0];
    const lines = own.map((finding) =>
      h("tr", {}, h("td", {}, finding.of || "–"), h("td", { class: `v-${finding.verdict.replaceAll(" ", "-")}` }, `${SIGNS[finding.verdict]} ${finding.verdict}`), h("td", {}, finding.strength), h("td", {}, finding.q === null ? "–" : finding.q.toPrecision(2)), h("td", {}, finding.paper)));
    const slug = first.setting.split(",")[0].trim();
    const figures = (all?.figures ?? []).filter((figure) => figure.id.startsWith(first.section) && figure.id.includes(slug));
    details.replaceChildren(
      h("h2", {}, `${first.finding} (${first.setting})`),
      h("p", { class: "caption" }, `${first.quantity}; criterion: ${first.criterion}. Stated in ${first.place}.`),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Lines of this finding" },
        h("table", {}, h("thead", {}, h("tr", {}, ...["of", "verdict", "measured", "q", "paper"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, ...lines))),
      ...figures.map(drawn),
    );
  };

  const drawn = (figure: { id: string; title: string }) => {
    const scheme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    return h("figure", { class: "drawn" },
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": figure.title }, h("img", { src: figureAddress(`${figure.id}.svg`, { colors: scheme, width: Math.max(320, details.clientWidth) }), alt: figure.title, loading: "lazy" })),
      h("figcaption", {}, h("a", { href: figureAddress(`${figure.id}.svg`), download: `${figure.id}.svg` }, "SVG"), " ", h("a", { href: figureAddress(`${figure.id}.csv`), download: `${figure.id}.csv` }, "CSV"), ` ${figure.title}`));
  };

  return {
    element,
    update: (changed) => {
      if (changed.size === 1 && changed.has("step")) return;
      void load();
    },
  };
}

const keyOf = (finding: Finding) => `${finding.section}|${finding.finding}`;
