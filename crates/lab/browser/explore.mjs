// `isogloss explore` in a real browser: node explore.mjs BINARY DIR [--shots DIR] [--figures DIR]
//
// Every view of a laboratory with a run, at 1400, 840 and 390 pixels, light and dark: nothing overflows, no error on the console, nothing is asked of
// another machine, axe-core finds nothing. Then what the page is for: the address brings a state back, scrubbing moves points, the slider of the shift
// makes words change language, all of it by keyboard alone; glosses, search, areas, colours, two spaces on one scrubber; a run that is being trained; without WebGL, and as an exported file. Prints times: first paint, frames of 10,000
// and 100,000 points with WebGL emulated and without it, with the processor's time, and translations.

import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
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
const figuresAt = args.indexOf("--figures");
const figures = figuresAt < 0 ? null : args.splice(figuresAt, 2)[1];
const [binary, folder] = args;
if (!folder) {
  console.error("usage: node explore.mjs BINARY DIR [--shots DIR] [--figures DIR]");
  process.exit(2);
}

const VIEWS = ["space", "emergence", "neighbours", "shift", "layers", "studies"];
// What must be there before a view counts as drawn.
const DRAWN = {
  space: ".clouds[data-points]",
  emergence: ".charts svg.lines path",
  neighbours: ".nearest li",
  shift: ".tokens > li",
  layers: ".cellbox",
  studies: ".view h1",
};
const failures = [];
const check = (right, what) => {
  if (!right) failures.push(what);
};
const quantile = (numbers, share) => [...numbers].sort((a, b) => a - b)[Math.min(numbers.length - 1, Math.floor(share * numbers.length))];

// A server, and the address that it prints.
async function serve(...places) {
  const server = spawn(binary, ["explore", ...places], { stdio: ["ignore", "ignore", "pipe"] });
  const address = await new Promise((found, failed) => {
    createInterface({ input: server.stderr }).on("line", (line) => line.trim().startsWith("http://") && found(line.trim()));
    server.on("exit", () => failed(new Error("the server ended")));
  });
  return { server, address };
}
const { server, address } = await serve(folder);
const origin = new URL(address).origin;

const BASE = ["--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
const SOFTWARE = [...BASE, "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"];
const launch = (more) => chromium.launch({ executablePath: browserPath, args: more });

// The page draws without WebGL where it is emulated; `gpu` makes it believe in one, so that this path is tested too.
const pretendGpu = () => {
  const own = WebGL2RenderingContext.prototype.getParameter;
  WebGL2RenderingContext.prototype.getParameter = function (name) {
    const value = own.call(this, name);
    return typeof value === "string" ? value.replaceAll(/swiftshader|llvmpipe/gi, "GPU") : value;
  };
};

async function tabIn(browser, name, { width = 1280, scheme = "light", motion = "reduce", allowed = origin, gpu = false } = {}) {
  const context = await browser.newContext({ viewport: { width, height: width < 500 ? 844 : 900 }, colorScheme: scheme, reducedMotion: motion });
  if (gpu) await context.addInitScript(pretendGpu);
  const tab = await context.newPage();
  // What a request is refused for is shown on the page, and is no fault of it.
  const refused = /status of 400/;
  tab.on("console", (message) => message.type() === "error" && !refused.test(message.text()) && failures.push(`${name}: console: ${message.text()}`));
  tab.on("pageerror", (error) => failures.push(`${name}: ${error}`));
  tab.on("request", (request) => {
    const url = request.url();
    check(url.startsWith(allowed) || url.startsWith("data:"), `${name}: asks for ${url.slice(0, 80)}`);
  });
  return tab;
}

const drawn = (tab, view) => tab.waitForSelector(DRAWN[view], { state: "attached", timeout: 60_000 });

const go = async (tab, state) => {
  await tab.evaluate((state) => (location.hash = state), state);
  const view = new URLSearchParams(state).get("v");
  await drawn(tab, view);
  await tab.waitForFunction(() => !document.querySelector(".waiting"));
  await tab.waitForTimeout(250);
};

const overflow = () => {
  const wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  const beyond = [...document.querySelectorAll("main *, header *")].filter((node) => {
    if (node.closest(".scroll, .tabs, code, select") || (node.closest("svg") !== null && node.tagName !== "svg")) return false;
    const box = node.getBoundingClientRect();
    return node.checkVisibility() && box.width > 0 && box.right > document.documentElement.clientWidth + 1;
  });
  return { wide, beyond: beyond.slice(0, 3).map((node) => node.outerHTML.slice(0, 90)) };
};

// Sentences that stand without what they mean.
const unglossed = () => {
  const items = [...document.querySelectorAll(".inspector .item, .nearest .item, .mistakes td .item, .found .item")].filter((item) => !item.querySelector(".gloss"));
  const lines = [...document.querySelectorAll(".sentence")].filter((line) => !line.matches(".glossed") || [...line.querySelectorAll("i")].some((meaning) => meaning.textContent === ""));
  const tokens = [...document.querySelectorAll(".tokens > li.target, .tokens > li.source")].filter((token) => token.querySelector(".gloss").textContent.trim() === "");
  return [...items, ...lines, ...tokens].map((node) => node.textContent);
};

// The book's pictures of the demo, which has no verdicts, and no tests.
async function draw(browser) {
  const tab = await tabIn(browser, "figures", { width: 1180 });
  await tab.setViewportSize({ width: 1180, height: 860 });
  await tab.goto(address);
  const states = { space: "v=space&step=250&beside=untrained&sel=0:4", emergence: "v=emergence&step=6000", neighbours: "v=neighbours&step=700", shift: "v=shift&step=6000&a=0.7", layers: "v=layers&step=6000" };
  for (const [view, state] of Object.entries(states)) {
    await go(tab, state);
    await tab.waitForTimeout(1500);
    // A demo of this folder names its files as they are typed.
    const typed = ([full, short]) => document.querySelectorAll(".command code").forEach((code) => (code.textContent = code.textContent.replaceAll(full, short)));
    await tab.evaluate(typed, [realpathSync(folder), folder]);
    await tab.screenshot({ path: join(figures, `explore-${view}.png`) });
  }
}

async function look(browser, width, scheme) {
  const tab = await tabIn(browser, `at ${width}, ${scheme}`, { width, scheme });
  await tab.goto(address);
  await tab.evaluate(axe);
  for (const view of VIEWS) {
    const name = `${view} at ${width}, ${scheme}`;
    const more = view === "shift" ? "&a=0.7" : view === "space" ? "&sel=0:3" : "";
    await go(tab, `v=${view}${more}`);
    const { wide, beyond } = await tab.evaluate(overflow);
    check(wide <= 0, `${name}: ${wide} pixels wider than the window`);
    check(beyond.length === 0, `${name}: beyond the edge: ${beyond.join(" ")}`);
    check((await tab.locator("h1").count()) === 1 && (await tab.locator("h1").innerText()).length > 8, `${name}: no headline`);
    for (const text of await tab.locator(".failure").allTextContents()) failures.push(`${name}: ${text}`);
    const bare = await tab.evaluate(unglossed);
    check(bare.length === 0, `${name}: without a gloss: ${bare.slice(0, 3).join(" | ")}`);
    if (view !== "studies") check((await tab.locator(".command code").first().innerText()).startsWith("isogloss "), `${name}: no command`);
    if (view === "studies") {
      const cut = await tab.evaluate(() => [...document.querySelectorAll(".drawn .scroll")].filter((box) => box.scrollWidth > box.clientWidth + 1).length);
      check(cut === 0, `${name}: ${cut} figures are cut off`);
    }
    // Long lists take axe half a minute, and have nothing of their own to find.
    const { violations } = await tab.evaluate(() => window.axe.run({ include: [["html"]], exclude: [["option"]] }, { runOnly: ["wcag2a", "wcag2aa", "best-practice"], resultTypes: ["violations"] }));
    for (const { id, help, nodes } of violations) {
      failures.push(`${name}: axe ${id}: ${help} (${nodes.length}): ${nodes[0].html.slice(0, 120)} ${nodes[0].failureSummary?.replaceAll("\n", " ").slice(0, 160)}`);
    }
    if (shots) await tab.screenshot({ path: join(shots, `${view}-${width}-${scheme}.png`) });
  }
  await tab.context().close();
}

const pixels = async (tab) => (await tab.locator(".pane:first-child .cloud").screenshot()).toString("base64");

async function use(browser, gpu) {
  const tab = await tabIn(browser, gpu ? "use" : "use without a GPU", { motion: "no-preference", gpu });
  await tab.goto(address);
  await playsOnce(tab);
  await go(tab, "v=space");
  if (!gpu) await fills(tab);
  check((await tab.locator(".caption").first().innerText()).includes("no GPU") === !gpu, `it is not said how points are drawn, gpu ${gpu}`);
  // Scrubbing moves the points; so does another layer.
  const last = await pixels(tab);
  await tab.locator(".scrubber").fill("0");
  await tab.waitForTimeout(400);
  const first = await pixels(tab);
  check(first !== last, "scrubbing moves no point");
  await tab.locator(".scrubber").fill("0.5");
  await tab.waitForTimeout(100);
  const between = await pixels(tab);
  check(between !== first && between !== last, "there is nothing between two steps");
  await tab.keyboard.press("Escape");
  await tab.getByRole("button", { name: "Play training" }).click();
  await tab.waitForTimeout(900);
  const played = Number(await tab.locator(".scrubber").inputValue());
  check(played > 0.3, `playing goes nowhere: ${played}`);
  await tab.getByRole("button", { name: "Pause" }).click();
  // Words in place of sentences: other points, which move too.
  await go(tab, "v=space&kind=words");
  await tab.waitForFunction(() => document.querySelector(".caption").textContent.includes(" words at "));
  const words = await pixels(tab);
  check(words !== last && words !== first, "words are where sentences are");
  await tab.locator(".scrubber").fill("0");
  await tab.waitForTimeout(400);
  check((await pixels(tab)) !== words, "scrubbing moves no word");
  await search(tab, "a");
  await tab.locator(".found button").nth(2).click();
  await tab.waitForSelector(".inspector .nearest li");
  await go(tab, "v=neighbours&kind=words");
  check((await tab.locator("h1").innerText()).toLowerCase().includes("word"), "neighbours are not of a word");
  // The address brings everything back.
  const state = "v=space&layer=2&step=400&mode=centered&sel=1%3A17";
  await go(tab, state);
  await tab.waitForTimeout(400);
  const shown = () => tab.evaluate(() => [location.hash, document.querySelector(".readout").textContent, document.querySelector("h1").textContent, document.querySelector(".inspector").textContent, document.querySelector(".segmented [aria-pressed=true]").textContent]);
  const before = await shown();
  check(before[0].includes("step=400") && before[1].includes("step 400"), `the state is not in the address: ${before[0]} ${before[1]}`);
  await tab.reload();
  await drawn(tab, "space");
  await tab.waitForTimeout(900);
  const after = await shown();
  check(JSON.stringify(before) === JSON.stringify(after), `a reload changes ${JSON.stringify(before)} to ${JSON.stringify(after)}`);
  // The slider makes words change language.
  await go(tab, "v=shift");
  const kinds = (kind) => tab.locator(`.tokens > li.${kind}`).count();
  await tab.locator("#alpha").fill("0");
  await tab.waitForTimeout(200);
  const [own, foreign] = [await kinds("source"), await kinds("target")];
  await tab.locator("#alpha").fill("10");
  await tab.waitForTimeout(200);
  const [ownShifted, foreignShifted] = [await kinds("source"), await kinds("target")];
  check(own > foreign && foreignShifted > ownShifted, `the shift converts nothing: ${own}, ${foreign} → ${ownShifted}, ${foreignShifted}`);
  // A typed sentence, and one that the model cannot read.
  await tab.getByRole("textbox", { name: "A sentence" }).fill("x ".repeat(200));
  await tab.waitForSelector(".translation .failure");
  await tab.context().close();
}

const readout = (tab) => tab.locator(".readout strong").innerText();

// It opens at the beginning, and stops at the end.
async function playsOnce(tab) {
  await drawn(tab, "space");
  const at = async () => Number(await tab.locator(".scrubber").inputValue());
  check((await at()) < 2, `it does not open at the first step: ${await at()}`);
  const ranked = () => tab.evaluate(() => document.querySelector(".inspector .rank")?.textContent);
  const first = await tab.waitForSelector(".inspector .rank").then(ranked);
  const ended = () => document.querySelector(".scrubber").value === document.querySelector(".scrubber").max;
  await tab.waitForFunction(ended, null, { timeout: 20_000 }).catch(() => failures.push("it does not play to the end"));
  await tab.waitForTimeout(900);
  check((await tab.getByRole("button", { name: "Play training" }).count()) === 1, "it plays more than once");
  check((await ranked()) !== first, `the sentence that one follows stays where it is: ${first}`);
  check((await tab.evaluate(() => location.hash)).includes("step="), "where it stopped is not in the address");
}

// The cloud reaches from edge to edge along one axis at least. (A canvas of WebGL cannot be read.)
async function fills(tab) {
  const reach = await tab.locator(".pane:first-child .points").evaluate((canvas) => {
    const { width, height } = canvas;
    const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
    const [columns, rows] = [new Set(), new Set()];
    for (let at = 0; at < data.length; at += 4) {
      if (data[at] + data[at + 1] + data[at + 2] > 600) continue;
      columns.add((at / 4) % width);
      rows.add(Math.floor(at / 4 / width));
    }
    const span = (places) => Math.max(...places) - Math.min(...places);
    return Math.max(span(columns) / width, span(rows) / height);
  });
  check(reach > 0.8, `the cloud takes ${reach.toFixed(2)} of its frame`);
}

async function search(tab, text) {
  await tab.locator("h1").first().evaluate(() => document.activeElement?.blur());
  await tab.keyboard.press("/");
  await tab.keyboard.type(text);
  await tab.waitForSelector(".found:not([hidden]) li");
}

const runOf = (tab, path) => tab.evaluate(async (path) => (await fetch(`/api/${path}?run=${new URLSearchParams(location.hash.slice(1)).get("run")}`)).json(), path);

// What a search finds, by a word of a gloss, is lit in every view.
async function find(browser) {
  const tab = await tabIn(browser, "search");
  await tab.goto(address);
  await go(tab, "v=space&step=1000");
  const items = await runOf(tab, "items");
  const glossOf = (side, text) => text.split(" ").map((word) => items.lexicon[side][word]).join(" ");
  const word = glossOf(0, items.texts[0][0]).split(" ").sort((a, b) => b.length - a.length)[0].toLowerCase();
  const wanted = [0, 1].flatMap((side) => items.texts[side].filter((text) => `${text}\n${glossOf(side, text)}`.toLowerCase().includes(word)));
  const before = await pixels(tab);
  await search(tab, word);
  const [said] = (await tab.locator(".found p").innerText()).split(" ");
  check(Number(said) === wanted.length, `search: ${said} found, not ${wanted.length}`);
  check((await tab.locator(".found .item").count()) === Math.min(50, wanted.length), "search: not all that is found is listed");
  await tab.keyboard.press("ArrowDown");
  await tab.keyboard.press("Enter");
  await tab.waitForSelector(".inspector .sentence.lit");
  check((await pixels(tab)) !== before, "search: nothing is lit in the space");
  check((await tab.locator(".found:not([hidden])").count()) === 0, "search: the list stays open");
  for (const [key, view, lit] of [["3", "neighbours", ".answer .lit"], ["4", "shift", ".translation .lit"]]) {
    await tab.keyboard.press(key);
    await drawn(tab, view);
    await tab.waitForSelector(lit, { timeout: 5000 }).catch(() => failures.push(`search: nothing is lit in ${view}`));
    check((await tab.locator(".sentence").first().innerText()).toLowerCase().includes(word), `search: ${view} shows another sentence`);
  }
  // Models have the weights of some steps: the scrubber rests there.
  await tab.waitForTimeout(900);
  const { snapshots } = await runOf(tab, "run");
  const rests = Number((await readout(tab)).replaceAll(/\D/g, ""));
  check(snapshots.includes(rests), `the scrubber rests at ${rests}, of which there are no weights`);
  await tab.keyboard.press("1");
  await drawn(tab, "space");
  await tab.keyboard.press("Escape");
  await tab.keyboard.press("Escape");
  check(!(await tab.evaluate(() => location.hash)).includes("find="), "search: Escape does not end it");
  await tab.keyboard.press("?");
  check((await tab.locator("dialog[open] dt").count()) >= 6, "?: no list of keys");
  await tab.context().close();
}

// An area lists both languages, and how many find their translation; it is a straight drag.
async function area(browser) {
  const tab = await tabIn(browser, "area");
  await tab.goto(address);
  await go(tab, "v=space&step=6000");
  const frame = await tab.locator(".cloud").first().boundingBox();
  const drag = async (from, to) => {
    await tab.mouse.move(frame.x + from * frame.width, frame.y + from * frame.height);
    await tab.mouse.down();
    await tab.mouse.move(frame.x + to * frame.width, frame.y + to * frame.height, { steps: 2 });
    await tab.mouse.up();
    await tab.mouse.move(5, 5);
    await tab.waitForTimeout(400);
  };
  const free = await pixels(tab);
  await tab.keyboard.down("Shift");
  await drag(0.01, 0.99);
  await tab.keyboard.up("Shift");
  await tab.waitForSelector(".verdict-line", { timeout: 5000 }).catch(() => failures.push("area: it is not said how many find their translation"));
  const counts = (await tab.locator(".inspector section h2").allInnerTexts()).map((text) => Number(text.replace(/.*: /, "")));
  check(counts.length === 2 && counts.every((count) => count > 150), `area: of the languages it has ${counts}`);
  const [found, of] = (await tab.locator(".verdict-line b").innerText()).split(" of ").map(Number);
  check(found > of / 2 && of > 300, `area: ${found} of ${of} find their translation`);
  check((await tab.locator(".verdict-line").innerText()).includes("chance"), "area: without its chance");
  check((await tab.evaluate(unglossed)).length === 0, "area: without a gloss");
  await tab.getByRole("button", { name: "Select an area" }).click();
  await drag(0.4, 0.6);
  check((await pixels(tab)) !== free, "area: what is caught is not lit");
  const fewer = Number((await tab.locator(".inspector h2").first().innerText()).split(" ")[0]);
  check(fewer > 0 && fewer < of, `area: a smaller one has ${fewer}`);
  await tab.getByRole("button", { name: "Select an area" }).click();
  await tab.context().close();
}

// Colours and what they mean; the untrained space beside it, whose points stay and whose sentences are the same; how the shift opens.
async function spaces(browser) {
  const tab = await tabIn(browser, "two spaces");
  await tab.goto(address);
  await go(tab, "v=space&step=6000");
  check((await tab.locator(".readout").innerText()).includes("(chance 0.1 %)"), "P@1 stands without its chance");
  let last = await pixels(tab);
  for (const [colour, bins] of [["found", 2], ["rank", 5], ["hubness", 5], ["length", 3]]) {
    await tab.getByLabel("Colour", { exact: true }).selectOption(colour);
    await tab.waitForFunction((bins) => document.querySelectorAll(".legend .bin").length >= bins, bins, { timeout: 5000 }).catch(() => failures.push(`colour: ${colour} has no legend`));
    await tab.waitForTimeout(200);
    const now = await pixels(tab);
    check(now !== last, `colour: ${colour} changes nothing`);
    last = now;
  }
  await tab.getByLabel("Beside", { exact: true }).selectOption("untrained");
  await tab.waitForSelector(".clouds.two");
  await tab.waitForTimeout(400);
  const second = async () => (await tab.locator(".pane:nth-child(2) .cloud").screenshot()).toString("base64");
  const [stays, moves] = [await second(), await pixels(tab)];
  await tab.locator(".scrubber").fill("4");
  await tab.waitForTimeout(400);
  check((await second()) === stays && (await pixels(tab)) !== moves, "beside: the untrained space moves, or the trained one does not");
  check((await tab.locator(".pane:nth-child(2) figcaption").innerText()).startsWith("untrained"), "beside: it is not said what it is");
  await tab.evaluate(() => (location.hash += "&sel=0:9"));
  await tab.waitForTimeout(400);
  check((await second()) !== stays, "beside: a sentence is not marked in both spaces");
  await go(tab, "v=shift");
  check((await tab.locator("output").innerText()) === "0.6", "the shift does not open with its weight");
  check((await tab.locator(".tokens .right, .tokens .wrong").count()) > 0, "the shift: words are not judged");
  await tab.context().close();
}

// Two runs on one scrubber, served and as a file.
async function twoRuns(browser) {
  const states = (run) => (existsSync(join(run, "probes")) ? readdirSync(join(run, "probes"), { recursive: true }).length : 0);
  const runs = readdirSync(join(folder, "steps")).map((step) => join(folder, "steps", step, "run")).sort((a, b) => states(b) - states(a)).slice(0, 2);
  const pair = await serve(...runs);
  const page = join(mkdtempSync(join(tmpdir(), "explore-")), "two.html");
  const made = spawnSync(binary, ["explore", ...runs, "--export", page], { encoding: "utf8" });
  check(made.status === 0, `export of two: ${made.stderr}`);
  for (const [name, at, allowed] of [["two runs", pair.address, new URL(pair.address).origin], ["two runs in a file", pathToFileURL(page).href, "file:"]]) {
    const tab = await tabIn(browser, name, { allowed });
    await tab.goto(at);
    await tab.waitForSelector(".clouds.two", { timeout: 20_000 }).catch(() => failures.push(`${name}: they do not stand beside each other`));
    const titles = await tab.locator(".pane figcaption").allInnerTexts();
    check(titles.length === 2 && titles.every((title) => title.includes("P@1")) && titles[0] !== titles[1], `${name}: ${titles}`);
    await tab.evaluate(() => (location.hash += "&sel=1:4&colour=found"));
    await tab.waitForSelector(".legend .bin", { timeout: 5000 }).catch(() => failures.push(`${name}: no ranks`));
    check((await tab.evaluate(unglossed)).length === 0, `${name}: without a gloss`);
    await tab.context().close();
  }
  pair.server.kill();
}

async function byKeyboard(browser) {
  const tab = await tabIn(browser, "keyboard");
  await tab.goto(address);
  await drawn(tab, "space");
  await tab.waitForTimeout(300);
  const focused = () =>
    tab.evaluate(() => (document.activeElement === document.body ? "" : (document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "")));
  const reach = async (name) => {
    for (let presses = 0; presses < 60; presses++) {
      if ((await focused()).includes(name)) return true;
      await tab.keyboard.press("Tab");
    }
    failures.push(`keyboard: ${name} cannot be reached`);
    return false;
  };
  await reach("Training step");
  const before = await pixels(tab);
  await tab.keyboard.press("Home");
  await tab.waitForTimeout(400);
  check((await pixels(tab)) !== before, "keyboard: the scrubber does not move");
  await reach("Search sentences");
  await tab.keyboard.type("a");
  await tab.waitForSelector(".found li");
  for (const key of ["Tab", "Tab", "Enter"]) await tab.keyboard.press(key);
  await tab.waitForTimeout(400);
  check(/sel=(?!0%3A0)/.test(await tab.evaluate(() => location.hash)), "keyboard: no sentence can be chosen");
  for (const [number, view] of VIEWS.entries()) {
    await tab.locator("h1").first().evaluate(() => document.activeElement?.blur());
    await tab.keyboard.press(String(number + 1));
    await drawn(tab, view);
  }
  await tab.keyboard.press("5");
  await drawn(tab, "layers");
  await reach("layer 1 with");
  await tab.keyboard.press("Enter");
  await drawn(tab, "space");
  check((await tab.evaluate(() => location.hash)).includes("layer=1"), "keyboard: a cell does not open the space");
  await tab.context().close();
}

// Points that nobody trained, as many as asked for, in place of the run's.
// A machine that does other things at the same time slows all frames, so that the limit is on what more points add.
async function frames(browser, count, limit, gpu = false) {
  const how = gpu ? "WebGL emulated" : "no WebGL";
  const tab = await tabIn(browser, `${count} points, ${how}`, { motion: "no-preference", gpu });
  const processes = await browser.newBrowserCDPSession();
  const spent = async () => (await processes.send("SystemInfo.getProcessInfo")).processInfo.reduce((sum, { cpuTime }) => sum + 1000 * cpuTime, 0);
  const steps = [0, 50, 100, 200, 400, 1000];
  const values = new Float32Array(steps.length * count * 2);
  let seed = 1;
  for (let i = 0; i < values.length; i++) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    values[i] = seed / 1073741824 - 1;
  }
  const body = Buffer.from(values.buffer);
  const headers = { "X-Shape": `${steps.length},${count},2`, "X-Steps": steps.join(","), "X-Shares": steps.map(() => "0.5,0.5").join(",") };
  await tab.route("**/api/points?*", (route) => route.fulfill({ body, headers, contentType: "application/octet-stream" }));
  await tab.route("**/api/run?*", async (route) => {
    const answer = await (await route.fetch()).json();
    await route.fulfill({ json: { ...answer, steps, points: count } });
  });
  await tab.route("**/api/items?*", async (route) => {
    const answer = await (await route.fetch()).json();
    const texts = [0, 1].map((side) => Array.from({ length: count / 2 }, (_, row) => `${side} ${row}`));
    await route.fulfill({ json: { ...answer, texts, lengths: [], lexicon: [] } });
  });
  await tab.route("**/api/metrics?*", async (route) => {
    const answer = await (await route.fetch()).json();
    const cut = (rows) => rows.slice(0, steps.length);
    await route.fulfill({ json: { ...answer, steps, raw: cut(answer.raw), centered: cut(answer.centered), language_share: cut(answer.language_share) } });
  });
  await tab.goto(address);
  await drawn(tab, "space");
  await tab.waitForTimeout(800);
  const before = await spent();
  const times = await tab.evaluate(async () => {
    const slider = document.querySelector(".scrubber");
    const last = Number(slider.max);
    const times = [];
    let before = await new Promise(requestAnimationFrame);
    for (let frame = 0; frame < 90; frame++) {
      slider.value = String((frame / 90) * last);
      slider.dispatchEvent(new Event("input"));
      const now = await new Promise(requestAnimationFrame);
      times.push(now - before);
      before = now;
    }
    return times.slice(5);
  });
  const median = quantile(times, 0.5);
  // Words without meanings stand alone.
  await tab.evaluate(() => (location.hash += "&sel=0:3"));
  await tab.waitForSelector(".inspector .sentence");
  check((await tab.locator(".inspector .glossed, .inspector .gloss").count()) === 0, "a gloss that nobody has given");
  const used = ((await spent()) - before) / 90;
  console.log(`scrubbing ${count} points, ${how}: median ${median.toFixed(1)} ms a frame, p95 ${quantile(times, 0.95).toFixed(1)} ms; ${used.toFixed(1)} ms of processor time`);
  check(median <= limit, `${count} points, ${how}: ${median.toFixed(1)} ms a frame, more than ${limit.toFixed(0)}`);
  await tab.context().close();
  return median;
}

async function times(browser) {
  const tab = await tabIn(browser, "times");
  await tab.goto(address);
  await drawn(tab, "space");
  // The elements can be in the document before the first frame is painted; the entry comes with that frame.
  const painted = () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime;
  const paint = await (await tab.waitForFunction(painted, null, { timeout: 10_000 })).jsonValue();
  console.log(`first contentful paint: ${paint.toFixed(0)} ms`);
  check(paint < 1000, `first paint after ${paint.toFixed(0)} ms`);
  await go(tab, "v=shift");
  const asked = await tab.evaluate(async () => {
    const params = new URLSearchParams(location.hash.slice(1));
    const run = params.get("run");
    const items = await (await fetch(`/api/items?run=${run}`)).json();
    const alphas = Array.from({ length: 16 }, (_, tenth) => tenth / 10);
    const times = [];
    for (const text of items.texts[0].slice(0, 60)) {
      const body = JSON.stringify({ run, from: items.languages[0].code, to: items.languages[1].code, layer: Number(params.get("sl")), alphas, text });
      const start = performance.now();
      const response = await fetch("/api/translate", { method: "POST", body });
      await response.json();
      times.push(performance.now() - start);
    }
    return times;
  });
  console.log(`translate at 16 weights: median ${quantile(asked, 0.5).toFixed(1)} ms, p95 ${quantile(asked, 0.95).toFixed(1)} ms`);
  await tab.context().close();
}

async function withoutWebgl() {
  const browser = await launch([...BASE, "--disable-gpu", "--disable-3d-apis"]);
  const tab = await tabIn(browser, "without WebGL");
  await tab.goto(address);
  await drawn(tab, "space");
  await tab.waitForTimeout(500);
  check((await tab.locator(".caption").first().innerText()).includes("WebGL"), "without WebGL: it does not say so");
  const before = await pixels(tab);
  await tab.locator(".scrubber").fill("0");
  await tab.waitForTimeout(400);
  check((await pixels(tab)) !== before, "without WebGL: scrubbing moves no point");
  await tab.context().close();
  const few = await frames(browser, 400, Number.POSITIVE_INFINITY);
  await frames(browser, 10_000, few + 17);
  await frames(browser, 100_000, few + 34);
  await browser.close();
}

async function exported(browser) {
  const page = join(mkdtempSync(join(tmpdir(), "explore-")), "page.html");
  const made = spawnSync(binary, ["explore", folder, "--export", page], { encoding: "utf8" });
  check(made.status === 0, `export: ${made.stderr}`);
  console.log(`export: ${(readFileSync(page).length / 1e6).toFixed(1)} MB`);
  const tab = await tabIn(browser, "export", { allowed: "file:" });
  await tab.goto(pathToFileURL(page).href);
  for (const view of VIEWS) {
    await go(tab, `v=${view}`);
    for (const text of await tab.locator(".failure").allTextContents()) failures.push(`export: ${view}: ${text}`);
  }
  // Figures of the studies are inside.
  const figure = tab.locator("figure.drawn img").first();
  if ((await figure.count()) === 0) await tab.locator("button.verdict").first().click();
  await figure.scrollIntoViewIfNeeded();
  await tab.waitForTimeout(300);
  check((await figure.evaluate((image) => image.naturalWidth)) > 0, "export: no figure in the studies");
  await go(tab, "v=space&kind=words");
  check((await tab.locator(".caption").first().innerText()).includes("words"), "export: no words");
  await go(tab, "v=space&beside=untrained&colour=found&sel=0:3");
  await tab.waitForSelector(".clouds.two", { timeout: 5000 }).catch(() => failures.push("export: no untrained space"));
  await tab.waitForSelector(".legend .bin", { timeout: 5000 }).catch(() => failures.push("export: no ranks"));
  check((await tab.evaluate(unglossed)).length === 0, "export: without a gloss");
  await search(tab, "a");
  await tab.context().close();
}

// A run that is trained while one looks: the bar counts its steps, and steps that it saves come to the scrubber by themselves.
async function live(browser) {
  const place = mkdtempSync(join(tmpdir(), "explore-"));
  const [world, run] = ["world", "run"].map((name) => join(place, name));
  const made = spawnSync(binary, ["world", "generate", "--out", world], { encoding: "utf8" });
  check(made.status === 0, `a live run: ${made.stderr}`);
  const training = spawn(binary, ["pretrain", "--world", world, "--preset", "no-anchors", "--steps", "100000", "--out", run], { stdio: "ignore" });
  let followed = null;
  try {
    // It can be opened once it has saved the states of its first steps.
    for (let wait = 0; followed === null && wait < 60; wait++) {
      await new Promise((done) => setTimeout(done, 1000));
      const saved = existsSync(join(run, "probes")) && existsSync(join(run, "metrics.jsonl"));
      if (saved) followed = await serve(run);
    }
    if (!followed) return failures.push("a live run: nothing is saved in a minute");
    const tab = await tabIn(browser, "a live run", { allowed: new URL(followed.address).origin });
    await tab.goto(followed.address);
    await drawn(tab, "space");
    await tab.waitForSelector(".live", { timeout: 30_000 });
    const shown = () => tab.evaluate(() => [document.querySelector(".live")?.textContent, Number(document.querySelector(".scrubber").max)]);
    const before = await shown();
    const grown = ([text, last]) => document.querySelector(".live")?.textContent !== text && Number(document.querySelector(".scrubber").max) > last;
    const came = await tab.waitForFunction(grown, before, { timeout: 60_000 }).then(() => true, () => false);
    check(came, `a live run: neither steps nor points come: ${before}, then ${await shown()}`);
    await tab.context().close();
  } finally {
    training.kill();
    followed?.server.kill();
  }
}

try {
  const browser = await launch(SOFTWARE);
  if (figures) {
    await draw(browser);
    await browser.close();
    server.kill();
    process.exit(failures.length === 0 ? 0 : 1);
  }
  await times(browser);
  for (const width of [1400, 840, 390]) {
    for (const scheme of ["light", "dark"]) await look(browser, width, scheme);
  }
  await use(browser, true);
  await use(browser, false);
  await find(browser);
  await area(browser);
  await spaces(browser);
  await twoRuns(browser);
  await byKeyboard(browser);
  const few = await frames(browser, 400, Number.POSITIVE_INFINITY, true);
  await frames(browser, 10_000, 2 * few + 17, true);
  await frames(browser, 100_000, 2 * few + 150, true);
  await live(browser);
  await exported(browser);
  await browser.close();
  await withoutWebgl();
} catch (error) {
  failures.push(String(error));
} finally {
  server.kill();
}
for (const failure of failures) console.error(failure);
console.log(failures.length === 0 ? "the explorer: no failures" : `${failures.length} failures`);
process.exit(failures.length === 0 ? 0 : 1);
