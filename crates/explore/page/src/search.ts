// One box that looks for sentences by what they say and by what they mean. What it finds is lit in every view.

import { h, refill, thousands } from "./dom";
import { choose, noun, pointOf, session, shownItems, soughtPoints } from "./session";
import { change, state } from "./state";
import { listed, settled } from "./views/common";

/** Findings that are listed. */
const LISTED = 50;

export function searchBox() {
  const field = h("input", { type: "search", "aria-label": "Search sentences and glosses", "aria-controls": "found", placeholder: "Search  /", spellcheck: "false", autocomplete: "off", maxlength: 200, input: () => look() });
  const found = h("div", { class: "found", id: "found", hidden: true });
  const element = h("div", { class: "search", role: "search" }, field, found);
  const look = settled(() => change({ find: field.value.trim() }), 120);

  const list = () => {
    const all = shownItems();
    found.hidden = !all || state.find === "" || !element.contains(document.activeElement);
    if (!all || found.hidden) return;
    const points = soughtPoints(all);
    const total = all.texts.reduce((sum, texts) => sum + texts.length, 0);
    const rows = points.slice(0, LISTED).map((point) => {
      const { language, row } = pointOf(all, point);
      const text = all.texts[language][row];
      const pick = () => {
        choose(all, language, row);
        document.getElementById("view")?.focus({ preventScroll: true });
      };
      return h("li", {}, listed(all, language, text, pick));
    });
    const more = points.length > LISTED ? `; the first ${LISTED}` : "";
    refill(found, h("p", { class: "soft", role: "status" }, `${thousands(points.length)} of ${thousands(total)} ${noun()}s${more}`), h("ul", { class: "plain" }, ...rows));
  };

  element.addEventListener("focusin", (event) => element.contains(event.relatedTarget as Node | null) || list());
  element.addEventListener("focusout", (event) => !element.contains(event.relatedTarget as Node | null) && (found.hidden = true));
  element.addEventListener("keydown", (event) => {
    const places: HTMLElement[] = [field, ...found.querySelectorAll("button")];
    const place = places.indexOf(document.activeElement as HTMLElement);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") places[place + (event.key === "ArrowDown" ? 1 : -1)]?.focus();
    else if (event.key === "Enter" && place === 0 && !found.hidden) places[1]?.click();
    else if (event.key === "Escape") {
      field.value = "";
      change({ find: "" });
      field.blur();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });

  return {
    element,
    focus: () => field.focus(),
    update() {
      element.hidden = !session.run || state.v === "studies";
      if (document.activeElement !== field) field.value = state.find;
      list();
    },
  };
}
