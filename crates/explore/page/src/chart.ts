// Small line charts: all series grey but the chosen one, lines named directly, a cursor that is the scrubber.

import { h, svg } from "./dom";

export interface Series {
  name: string;
  points: [number, number][];
  /** The number of a colour of the sheet, or grey. */
  colour: number | null;
}

export interface ChartOptions {
  title: string;
  note?: string;
  series: Series[];
  levels?: { name: string; value: number }[];
  /** Logarithmic from a small number on; else linear. */
  logX: boolean;
  logY?: boolean;
  /** The greatest value, where it is known beforehand. */
  top?: number;
  xName: string;
  xTicks: [number, string][];
  format: (value: number) => string;
  cursor: number | null;
  pick?: (x: number) => void;
  height?: number;
}

const LINEAR_UNTIL = 50;
/** The highest line of text. */
const HIGHEST = 12;

/** A chart whose cursor can be moved without drawing the rest again. */
export interface Chart {
  element: HTMLElement;
  setCursor(cursor: number): void;
}

export function chart(options: ChartOptions): Chart {
  const box = h("figure", { class: "chart" }, h("figcaption", {}, h("strong", {}, options.title), options.note ? h("span", {}, options.note) : null));
  const holder = h("div", { class: "plot" });
  box.append(holder);
  let drawCursor: (cursor: number) => void = () => {};
  const draw = () => {
    const drawn = plot(options, Math.max(240, holder.clientWidth || 480));
    drawCursor = drawn.drawCursor;
    holder.replaceChildren(drawn.root);
  };
  new ResizeObserver(draw).observe(holder);
  return {
    element: box,
    setCursor(cursor) {
      options.cursor = cursor;
      drawCursor(cursor);
    },
  };
}

function plot(options: ChartOptions, width: number): { root: SVGSVGElement; drawCursor: (cursor: number) => void } {
  const height = options.height ?? 190;
  const [left, right, top, bottom] = [44, 104, 18, 34];
  const xs = options.series.flatMap((one) => one.points.map((point) => point[0]));
  const ys = options.series.flatMap((one) => one.points.map((point) => point[1])).concat((options.levels ?? []).map((level) => level.value));
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const place = (x: number) => (options.logX ? Math.log1p(x / LINEAR_UNTIL) : x);
  const span = place(last) - place(first) || 1;
  const x = (value: number) => left + ((place(value) - place(first)) / span) * (width - left - right);
  const most = options.top ?? Math.max(...ys, 1e-9);
  const least = options.logY ? Math.max(Math.min(...ys), 1e-9) : 0;
  const level = (value: number) =>
    options.logY ? Math.log(Math.max(value, least) / least) / (Math.log(most / least) || 1) : value / most;
  const y = (value: number) => height - bottom - level(value) * (height - top - bottom);
  const root = svg("svg", { class: "lines", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": options.title });
  const ticks = options.logY ? logTicks(least, most) : [0, 0.5, 1].map((share) => share * most);
  for (const tick of ticks) {
    root.append(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }));
    root.append(svg("text", { class: "small end", x: left - 6, y: y(tick) + 4 }, options.format(tick)));
  }
  let free = -Infinity;
  for (const [value, name] of options.xTicks) {
    const room = 3.6 * name.length + 8;
    if (x(value) - room < free) continue;
    free = x(value) + room;
    root.append(svg("text", { class: "small middle", x: x(value), y: height - bottom + 16 }, name));
  }
  root.append(svg("text", { class: "small middle", x: (left + width - right) / 2, y: height - 3 }, options.xName));
  const names: [number, string, string][] = [];
  for (const { name, value } of options.levels ?? []) {
    root.append(svg("line", { class: "level", x1: left, x2: width - right, y1: y(value), y2: y(value) }));
    names.push([y(value), name, "small"]);
  }
  const ordered = [...options.series].sort((a, b) => Number(a.colour !== null) - Number(b.colour !== null));
  for (const one of ordered) {
    const path = one.points.map(([px, py], number) => `${number ? "L" : "M"}${x(px).toFixed(1)} ${y(py).toFixed(1)}`).join("");
    const kind = one.colour === null ? "muted" : `line c${one.colour}`;
    root.append(svg("path", { class: kind, d: path }));
    if (one.colour !== null && one.points.length > 0) {
      const end = one.points[one.points.length - 1];
      names.unshift([y(end[1]), one.name, `word c${one.colour} strong`]);
    }
  }
  const cursorMarks = svg("g", {});
  const drawCursor = (cursor: number) => {
    const at = x(Math.min(Math.max(cursor, first), last));
    cursorMarks.replaceChildren(svg("line", { class: "cursor", x1: at, x2: at, y1: top, y2: height - bottom }));
    const chosen = ordered.filter((one) => one.colour !== null && one.points.length > 0);
    const values = chosen.map((one) => ({ colour: one.colour, value: interpolate(one.points, cursor, place) }));
    const atEnd = at > width - right - 48;
    // From below to above, and where there is no room at the top, down again.
    let free = height - bottom + 12;
    const lines = values.sort((a, b) => a.value - b.value).map(({ value }) => (free = Math.min(y(value) - 7, free - 13)));
    free = HIGHEST;
    for (let number = lines.length - 1; number >= 0; number--) free = 13 + (lines[number] = Math.max(lines[number], free));
    values.forEach(({ colour, value }, number) => {
      cursorMarks.append(
        svg("circle", { class: `marker c${colour}`, cx: at, cy: y(value), r: 4 }),
        svg("text", { class: `small halo strong${atEnd ? " end" : ""}`, x: atEnd ? at - 8 : at + 8, y: lines[number] }, options.format(value)),
      );
    });
  };
  if (options.cursor !== null) drawCursor(options.cursor);
  root.append(cursorMarks);
  // Names keep their distance from one another, and stay above the axis.
  names.sort((a, b) => b[0] - a[0]);
  let above = height - bottom + 16;
  for (const [at, name, kind] of names) {
    const line = Math.min(at + 4, above - 13);
    above = line;
    root.append(svg("text", { class: kind, x: width - right + 8, y: line }, name));
  }
  if (options.pick) {
    const pick = options.pick;
    const nearest = (event: PointerEvent) => {
      const frame = root.getBoundingClientRect();
      const at = ((event.clientX - frame.left) / frame.width) * width;
      pick(xs.reduce((best, value) => (Math.abs(x(value) - at) < Math.abs(x(best) - at) ? value : best), xs[0]));
    };
    root.classList.add("pickable");
    root.addEventListener("pointerdown", (event) => {
      root.setPointerCapture(event.pointerId);
      nearest(event);
    });
    root.addEventListener("pointermove", (event) => event.buttons && nearest(event));
  }
  return { root, drawCursor };
}

/** The value between two points, on the axis as it is drawn. */
function interpolate(points: [number, number][], at: number, place: (x: number) => number): number {
  const next = points.findIndex((point) => point[0] >= at);
  if (next < 0) return points[points.length - 1][1];
  if (next === 0 || points[next][0] === at) return points[next][1];
  const [[x0, y0], [x1, y1]] = [points[next - 1], points[next]];
  return y0 + ((place(at) - place(x0)) / (place(x1) - place(x0))) * (y1 - y0);
}

function logTicks(least: number, most: number): number[] {
  const ticks = [];
  for (let power = Math.ceil(Math.log10(least)); 10 ** power <= most; power++) ticks.push(10 ** power);
  return ticks.length > 1 ? ticks : [least, most];
}
