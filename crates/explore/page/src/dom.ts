// Elements, and numbers as people read them. Text only ever becomes text: nothing is parsed as markup.

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | undefined | ((event: never) => void)>;

function fill<T extends Element>(element: T, attributes: Attributes, children: Child[]): T {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

export function h<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]) {
  return fill(document.createElement(name), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

/** Puts other children into an element; what has the focus there keeps it, by its place. */
export function refill(holder: Element, ...children: Child[]) {
  const focusable = () => [...holder.querySelectorAll<HTMLElement>("a, button, select, input, [tabindex]")];
  const place = focusable().indexOf(document.activeElement as HTMLElement);
  holder.replaceChildren(...children.filter((child): child is Node | string => !!child));
  if (place >= 0) focusable()[place]?.focus();
}

/** A share as per cent: whole numbers, and one digit below ten and where a whole number would say all. */
export function percent(share: number): string {
  const value = 100 * share;
  if (value < 0.05) return "0 %";
  return value < 9.95 || (value >= 99.5 && value < 99.95) ? `${value.toFixed(1)} %` : `${value.toFixed(0)} %`;
}

/** A small share, such as that of chance, which is never nothing. */
export const share = (value: number) => (value >= 0.0005 ? percent(value) : `${(100 * value).toPrecision(1)} %`);

export const thousands = (value: number) => value.toLocaleString("en-GB");

export const layerName = (layer: number) => (layer === 0 ? "embeddings" : `layer ${layer}`);

/** The moment of training that a step is. */
export const stepName = (step: number, fromRandom: boolean) =>
  step === 0 && fromRandom ? "untrained" : `step ${thousands(step)}`;

/** Buttons of which one is pressed. */
export function segmented<T extends string | number>(
  label: string,
  options: [T, string, string?][],
  current: T,
  choose: (value: T) => void,
): HTMLElement {
  const group = h("div", { class: "segmented", role: "group", "aria-label": label });
  for (const [value, name, title] of options) {
    const pressed = String(value === current);
    group.append(h("button", { type: "button", "aria-pressed": pressed, title, click: () => choose(value) }, name));
  }
  return group;
}

export function select<T extends string | number>(
  label: string,
  options: [T, string][],
  current: T,
  choose: (value: T) => void,
): HTMLElement {
  const field = h("select", {
    "aria-label": label,
    change: () => choose(options[field.selectedIndex][0]),
  }) as HTMLSelectElement;
  for (const [value, name] of options) field.append(h("option", { value, selected: value === current }, name));
  return field;
}

/** The colour of a variable of the style sheet. */
export const colour = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export const reducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;
