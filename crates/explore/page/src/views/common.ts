// What all views have: a heading, and the command that prints the same.

import { type Params, get, isKnown } from "../api";
import { h } from "../dom";

export interface View {
  element: HTMLElement;
  /** Something in the address has changed. */
  update(changed: Set<string>): void;
  /** The place among the steps has moved. */
  move?(): void;
  /** The run has saved more. */
  refresh?(): void;
}

export function failureBox(error: unknown): HTMLElement {
  return h("p", { class: "failure", role: "alert" }, (error as Error).message);
}

/** The command of a view, with a button that copies it. */
export class CommandLine {
  readonly element = h("div", { class: "command" });
  private asked = "";

  show(params: Params) {
    if (!isKnown("/api/command", params)) {
      this.element.replaceChildren();
      this.asked = "";
      return;
    }
    const asked = JSON.stringify(params);
    if (asked === this.asked) return;
    this.asked = asked;
    get<{ command: string | null; reason?: string }>("/api/command", params).then(
      ({ command, reason }) => {
        if (asked === this.asked) this.put(command, reason ?? "");
      },
      () => this.element.replaceChildren(),
    );
  }

  put(command: string | null, reason = "") {
    if (command === null) {
      this.element.replaceChildren(h("span", { class: "soft" }, `No command: ${reason}.`));
      return;
    }
    const button = h("button", { type: "button", click: () => copy(command, button) }, "Copy the command");
    this.element.replaceChildren(h("code", { tabindex: "0" }, command), button);
  }
}

async function copy(text: string, button: HTMLButtonElement) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    const range = document.createRange();
    range.selectNodeContents(button.previousSibling!);
    getSelection()?.removeAllRanges();
    getSelection()?.addRange(range);
    button.textContent = "Selected: press Ctrl-C";
  }
  setTimeout(() => (button.textContent = "Copy the command"), 1800);
}

/** Calls the last of many requests a little later. */
export function settled(work: () => void, wait = 180): () => void {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(work, wait) as unknown as number;
  };
}

/** The words of a sentence with the meaning of each below, where it is known. */
export function glossed(text: string, gloss: string | undefined, colourClass = ""): HTMLElement {
  const words = text.split(" ");
  const meanings = gloss?.split(" ") ?? [];
  if (meanings.length !== words.length) return h("p", { class: `sentence ${colourClass}` }, text);
  const line = h("p", { class: `sentence glossed ${colourClass}` });
  words.forEach((word, number) => {
    line.append(h("span", {}, h("b", {}, word), h("i", {}, meanings[number])), " ");
  });
  return line;
}
