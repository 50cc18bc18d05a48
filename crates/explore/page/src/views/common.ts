// What all views have: a heading, and the command that prints the same.

import { type Items, type Params, get, isKnown } from "../api";
import { h } from "../dom";
import { glossOf, isSought } from "../session";

export interface View {
  element: HTMLElement;
  /** When there is something to play. */
  ready?: Promise<void>;
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
export function glossed(all: Items, language: number, text: string): HTMLElement {
  const words = text.split(" ");
  const meanings = glossOf(all, language, text)?.split(" ");
  const lit = isSought(all, language, text) ? " lit" : "";
  if (!meanings) return h("p", { class: `sentence c${language}${lit}` }, text);
  const line = h("p", { class: `sentence glossed c${language}${lit}` });
  words.forEach((word, number) => {
    line.append(h("span", {}, h("b", {}, word), h("i", {}, meanings[number])), " ");
  });
  return line;
}

/** A sentence in a list, with its gloss below; a button where it can be chosen. */
export function listed(all: Items, language: number, text: string, choose?: () => void): HTMLElement {
  const gloss = glossOf(all, language, text);
  const kind = `item word c${language}${isSought(all, language, text) ? " lit" : ""}`;
  const parts = [text, gloss ? h("i", { class: "gloss" }, gloss) : null];
  return choose ? h("button", { type: "button", class: `link ${kind}`, click: choose }, ...parts) : h("span", { class: kind }, ...parts);
}
