// The report in a real browser: node report.mjs PAGE.html… [--shots DIR]
//
// Every page at 1280 and 390 pixels, light and dark, and printed: nothing overflows, no table is clipped without a cue, no error on
// the console, nothing is fetched, contrast and structure pass axe-core, every figure has its number, its address and its three
// files, the files are what they say and can be saved, and without script the page still reads.

import { createRequire } from "node:module";
import { mkdirSync, readFileSync, existsSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const browserPath = process.env.CHROMIUM ?? "/usr/bin/chromium";
if (!existsSync(browserPath)) {
  console.error(`SKIPPED: no browser at ${browserPath} (apt-get install chromium, or set CHROMIUM)`);
  process.exit(0);
}
const args = process.argv.slice(2);
const shotsAt = args.indexOf("--shots");
const shots = shotsAt < 0 ? null : args.splice(shotsAt, 2)[1];
if (shots) mkdirSync(shots, { recursive: true });
if (args.length === 0) {
  console.error("usage: node report.mjs PAGE.html… [--shots DIR]");
  process.exit(2);
}

const failures = [];
const check = (right, what) => {
  if (!right) failures.push(what);
};

// What is wider than the window, and what is cut off without a way to see it.
const overflow = () => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const clipped = [];
  for (const box of document.querySelectorAll(".scroll")) {
    if (box.scrollWidth <= box.clientWidth + 1 || !box.checkVisibility()) continue;
    const scrolls = ["auto", "scroll"].includes(getComputedStyle(box).overflowX);
    const cue = box.parentElement.querySelector(".cue, caption") ?? box.closest("details");
    if (!scrolls || !cue || !cue.checkVisibility()) clipped.push(box.getAttribute("aria-label") ?? box.className);
  }
  const beyond = [...document.querySelectorAll("main *, header *")].filter((node) => {
    if (node.closest(".scroll") || node.closest("svg") !== null && node.tagName !== "svg") return false;
    const box = node.getBoundingClientRect();
    return node.checkVisibility() && box.width > 0 && box.right > document.documentElement.clientWidth + 1;
  });
  return { wide, clipped, beyond: beyond.slice(0, 3).map((node) => node.outerHTML.slice(0, 90)) };
};

// Text of drawings that leaves its panel.
const cutText = () =>
  [...document.querySelectorAll(".panels > svg")].flatMap((svg) => {
    const frame = svg.getBoundingClientRect();
    return [...svg.querySelectorAll("text")]
      .filter((text) => {
        const box = text.getBoundingClientRect();
        return box.left < frame.left - 1.5 || box.right > frame.right + 1.5 || box.bottom > frame.bottom + 1.5;
      })
      .map((text) => `${svg.querySelector("title").id}: ${text.textContent}`);
  });

const files = () =>
  [...document.querySelectorAll("figure:not(.tabular)")].map((figure) => ({
    id: figure.id,
    number: figure.querySelector("figcaption .number")?.textContent ?? "",
    link: figure.querySelector("figcaption .number")?.getAttribute("href") ?? "",
    title: figure.querySelector("h2, h3, h4")?.textContent ?? "",
  }));

// The files of every figure and table, unpacked as the page does it.
const unpacked = async () => {
  const files = [];
  for (const button of document.querySelectorAll("button[data-file]")) {
    const packed = Uint8Array.from(atob(button.dataset.file), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    const text = new TextDecoder("latin1").decode(await new Response(stream).arrayBuffer());
    const figure = button.closest("figure")?.id ?? "";
    files.push({ figure, kind: button.textContent, name: button.dataset.name, start: text.slice(0, 40), size: text.length });
  }
  return files;
};

async function look(browser, page, width, scheme) {
  const name = `${basename(page)} at ${width}, ${scheme}`;
  const context = await browser.newContext({
    viewport: { width, height: width < 500 ? 844 : 900 },
    colorScheme: scheme,
    reducedMotion: "reduce",
  });
  const tab = await context.newPage();
  tab.on("console", (message) => message.type() === "error" && failures.push(`${name}: console: ${message.text()}`));
  tab.on("pageerror", (error) => failures.push(`${name}: ${error}`));
  tab.on("request", (request) => {
    const url = request.url();
    check(["file:", "blob:"].some((start) => url.startsWith(start)), `${name}: asks for ${url.slice(0, 80)}`);
  });
  await tab.goto(pathToFileURL(resolve(page)).href);
  const { wide, clipped, beyond } = await tab.evaluate(overflow);
  check(wide <= 0, `${name}: ${wide} pixels wider than the window`);
  check(clipped.length === 0, `${name}: clipped without a cue: ${clipped.join(", ")}`);
  check(beyond.length === 0, `${name}: beyond the edge: ${beyond.join(" ")}`);
  const first = await tab.evaluate(() => {
    const [title, figure] = [document.querySelector("h1"), document.querySelector("figure, table")];
    return { title: title?.getBoundingClientRect().bottom ?? 1e9, figure: figure?.getBoundingClientRect().top ?? 0 };
  });
  const height = tab.viewportSize().height;
  check(first.title < height, `${name}: the headline is not on the first screen`);
  check(first.figure < height, `${name}: the first figure begins at ${Math.round(first.figure)} pixels`);
  const cut = await tab.evaluate(cutText);
  check(cut.length === 0, `${name}: text leaves its panel: ${cut.slice(0, 5).join("; ")} (${cut.length})`);
  if (width > 1000) {
    await tab.evaluate(() => document.querySelector("main section:last-of-type")?.scrollIntoView());
    const stays = await tab.evaluate(() => {
      const nav = document.querySelector("nav");
      return !nav || nav.getBoundingClientRect().top > -1;
    });
    check(stays, `${name}: the contents do not stay`);
    await tab.evaluate(() => window.scrollTo(0, 0));
  }
  await tab.evaluate(axe);
  const { violations } = await tab.evaluate(() =>
    window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "best-practice"], resultTypes: ["violations"] }),
  );
  for (const { id, help, nodes } of violations) {
    failures.push(`${name}: axe ${id}: ${help} (${nodes.length}): ${nodes[0].html.slice(0, 120)} ${nodes[0].failureSummary?.replaceAll("\n", " ").slice(0, 160)}`);
  }
  if (shots) await tab.screenshot({ path: join(shots, `${basename(page, ".html")}-${width}-${scheme}.png`), fullPage: false });
  if (width > 1000 && scheme === "light") await files_of(tab, name);
  if (width > 1000 && scheme === "light") {
    await tab.emulateMedia({ media: "print" });
    const pdf = await tab.pdf({ format: "A4", path: shots ? join(shots, `${basename(page, ".html")}.pdf`) : undefined });
    check(pdf.length > 10_000, `${name}: prints nothing`);
    await tab.setViewportSize({ width: 700, height: 900 });
    const printed = await tab.evaluate(overflow);
    check(printed.wide <= 0, `${name}, printed: ${printed.wide} pixels wider than the paper`);
  }
  await context.close();
}

async function files_of(tab, name) {
  const figures = await tab.evaluate(files);
  const all = await tab.evaluate(unpacked);
  figures.forEach((figure, place) => {
    const of = `${name}: ${figure.id}`;
    check(figure.number === `Figure ${place + 1}`, `${of}: number ${figure.number}`);
    check(figure.link === `#${figure.id}` && figure.title.length > 10, `${of}: no address or title`);
    const own = all.filter((file) => file.figure === figure.id);
    const kinds = own.map(({ kind }) => kind).join(" ");
    check(kinds === "SVG PDF CSV", `${of}: files ${kinds}`);
    for (const { kind, name, start } of own) {
      // A table begins with the names of its columns.
      const expected = { SVG: /^<svg/, PDF: /^%PDF-/, CSV: /^(panel|sentence),/ }[kind];
      check(expected.test(start) && name.startsWith(figure.id), `${of}: ${kind} begins ${start.slice(0, 20)}`);
    }
  });
  for (const { name, size } of all) check(size > 20, `${name} is empty`);
  // One of them as a reader saves it: by the keyboard.
  const first = all.findIndex(({ kind }) => kind === "PDF");
  if (first >= 0) {
    const button = tab.locator("button[data-file]").nth(first);
    const [saved] = await Promise.all([tab.waitForEvent("download"), button.press("Enter")]);
    const content = readFileSync(await saved.path(), "latin1");
    check(saved.suggestedFilename() === all[first].name && content.startsWith("%PDF-"), `${name}: ${all[first].name} is not saved`);
    check(content.length === all[first].size, `${name}: ${all[first].name} is saved in part`);
  }
  console.log(`${name}: ${figures.length} figures, ${all.length} files`);
}

// Without script: the same text, and no buttons that do nothing.
async function plain(browser, page) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, javaScriptEnabled: false });
  const tab = await context.newPage();
  await tab.goto(pathToFileURL(resolve(page)).href);
  const name = `${basename(page)} without script`;
  check((await tab.locator("h1").textContent()).length > 10, `${name}: no headline`);
  for (const button of await tab.locator("button[data-file]").all()) {
    if (await button.isVisible()) failures.push(`${name}: a button that does nothing`);
  }
  await context.close();
}

const browser = await chromium.launch({
  executablePath: browserPath,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
for (const page of args) {
  for (const width of [1280, 390]) {
    for (const scheme of ["light", "dark"]) await look(browser, page, width, scheme);
  }
  await plain(browser, page);
}
await browser.close();
for (const failure of failures) console.error(failure);
console.log(failures.length === 0 ? `${args.length} pages, no failures` : `${failures.length} failures`);
process.exit(failures.length === 0 ? 0 : 1);
