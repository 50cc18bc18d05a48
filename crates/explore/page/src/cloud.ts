// Points of several languages at every step of training. All steps lie in one buffer of the GPU, and the vertex shader interpolates
// between two of them, so that scrubbing copies nothing. Lines and rings are drawn on a second canvas above. Without WebGL 2, or where
// a browser without a GPU emulates it, the processor draws points, lines and rings on one canvas.

import type { PointArray } from "./api";
import { colour, h } from "./dom";
import { Raster } from "./raster";

// What is the same for a whole point is computed once for it, not for each of its pixels.
const VERTEX = `#version 300 es
in vec2 a; in vec2 b; in float style;
uniform float size, opacity; uniform vec2 from, to, shift, pixel; uniform vec3 colours[13];
flat out vec4 ink; flat out float round;
void main() {
  vec2 p = a * from + b * to + shift;
  gl_Position = vec4((p * pixel - 1.0) * vec2(1.0, -1.0), 0.0, 1.0);
  gl_PointSize = size;
  ink = vec4(colours[int(style) / 2], 1.0) * opacity;
  round = 1.0 - mod(style, 2.0);
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec4 ink; flat in float round; out vec4 paint;
void main() {
  vec2 p = abs(2.0 * gl_PointCoord - 1.0);
  float d = mix((p.x + p.y) * 0.95, length(p), round);
  paint = ink * clamp((1.0 - d) * 3.6, 0.0, 1.0);
}`;

/** Why points are drawn without WebGL, if they are. */
function obstacle(): string {
  const gl = h("canvas", {}).getContext("webgl2");
  if (!gl) return "This browser has no WebGL 2, so that points are drawn without it.";
  const info = gl.getExtension("WEBGL_debug_renderer_info");
  const name = String(gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER));
  gl.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software|basic render/i.test(name) ? "This browser has no GPU, so that points are drawn without WebGL." : "";
}

/** The last colour: of points that are not meant while others are. */
export const FADED = 12;
/** Pixels between the cloud and its frame. */
const MARGIN = 34;
/** Points by which the reach of a cloud is judged. */
const JUDGED = 4000;
/** Up to so many points are drawn large and opaque. */
const FEW = 1000;

/** The middle of a cloud along both axes, and how far it reaches from there; a few points that are far off do not count. */
function reach(points: Float32Array): [number, number, number, number] {
  const stride = 2 * Math.max(1, Math.floor(points.length / 2 / JUDGED));
  const [[x, wide], [y, high]] = [0, 1].map((axis) => {
    const sorted = new Float32Array(Math.ceil(points.length / stride)).map((_, place) => points[place * stride + axis]).sort();
    const at = (share: number) => sorted[Math.round(share * (sorted.length - 1))] ?? 0;
    const spare = 0.3 * (at(0.99) - at(0.01));
    const [least, most] = [Math.max(at(0), at(0.01) - spare), Math.min(at(1), at(0.99) + spare)];
    return [(least + most) / 2, (most - least) / 2 || 1e-9];
  });
  return [x, y, wide, high];
}

/** All points in an order that does not go from language to language, so that none covers the others. */
function mixed(count: number): Uint32Array {
  let stride = Math.max(1, Math.floor(count * 0.618));
  const divides = (a: number, b: number): number => (b === 0 ? a : divides(b, a % b));
  while (divides(stride, count) > 1) stride++;
  return new Uint32Array(count).map((_, place) => (place * stride) % count);
}

export interface CloudMarks {
  /** Pairs of points that lines join. */
  joined: [number, number][];
  /** Pairs that are emphasised, and rings. */
  strong: [number, number][];
  rings: number[];
  /** Lines of text beside points. */
  labels: [number, string[]][];
}

export class Cloud {
  readonly element: HTMLElement;
  readonly points = h("canvas", { class: "points", "aria-hidden": "true" });
  readonly marks = h("canvas", { class: "marks", "aria-hidden": "true" });
  /** Why not all of it can be shown. */
  note = "";
  onHover: (point: number | null) => void = () => {};
  onPick: (point: number | null) => void = () => {};
  onLasso: (points: number[]) => void = () => {};
  private readonly gl: WebGL2RenderingContext | null = null;
  /** What draws without WebGL, and why it does. */
  private readonly raster = new Raster();
  private readonly plain: CanvasRenderingContext2D | null = null;
  private readonly obstacle = obstacle();
  private program: WebGLProgram | null = null;
  private uniforms: Record<string, WebGLUniformLocation | null> = {};
  private buffer: WebGLBuffer | null = null;
  private styleBuffer: WebGLBuffer | null = null;
  private orderBuffer: WebGLBuffer | null = null;
  private data: PointArray | null = null;
  private styles: Float32Array = new Float32Array();
  private order: Uint32Array = new Uint32Array();
  private colours: string[] = [];
  private reaches: [number, number, number, number][] = [];
  private at = 0;
  private zoom = 1;
  private pan: [number, number] = [0, 0];
  private chosen: CloudMarks = { joined: [], strong: [], rings: [], labels: [] };
  /** Whether dragging selects an area, without a key too. */
  selects = false;
  /** Two corners of the area. */
  private area: [number, number, number, number] | null = null;
  private palette: [number, number, number][] = [];
  private ground: [number, number, number] = [1, 1, 1];
  /** Colours and font of the page, which are looked up when they may have changed, not at every frame. */
  private look = { ink: "", soft: "", ground: "", font: "" };

  constructor(label: string) {
    this.element = h("div", { class: "cloud", role: "img", "aria-label": label }, this.points, this.marks);
    if (!this.obstacle) this.gl = this.points.getContext("webgl2", { antialias: false, alpha: true, premultipliedAlpha: true });
    if (this.gl) this.prepare(this.gl);
    else {
      this.plain = this.points.getContext("2d", { alpha: false, willReadFrequently: true });
      this.marks.hidden = true;
    }
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
  }

  get isAccelerated(): boolean {
    return this.gl !== null && this.program !== null;
  }

  /** How many steps there are points of. */
  get steps(): number {
    return this.data?.steps.length ?? 0;
  }

  private prepare(gl: WebGL2RenderingContext) {
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]] as const) {
      const shader = gl.createShader(kind)!;
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    ["a", "b", "style"].forEach((name, place) => gl.bindAttribLocation(program, place, name));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return;
    this.program = program;
    for (const name of ["size", "from", "to", "shift", "pixel", "colours", "opacity"]) {
      this.uniforms[name] = gl.getUniformLocation(program, name);
    }
    this.buffer = gl.createBuffer();
    this.styleBuffer = gl.createBuffer();
    this.orderBuffer = gl.createBuffer();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.points.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.points.addEventListener("webglcontextrestored", () => {
      this.prepare(gl);
      if (this.data) this.setData(this.data, this.styles, this.colours);
    });
  }

  /** New points. */
  setData(data: PointArray, styles: Float32Array, colours: string[]) {
    this.data = data;
    this.reaches = data.steps.map((_, step) => reach(this.of(step)));
    this.note = this.obstacle;
    const gl = this.gl;
    if (gl && this.isAccelerated) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data.values, gl.STATIC_DRAW);
    }
    this.at = Math.min(this.at, data.steps.length - 1);
    this.setStyles(styles, colours);
  }

  /** How points look: twice the number of a colour, and one more for a diamond. Faded ones are drawn first. */
  setStyles(styles: Float32Array, colours: string[]) {
    this.styles = styles;
    this.colours = colours;
    const all = mixed(styles.length);
    const faded = (point: number) => styles[point] >= 2 * FADED;
    this.order = all.filter(faded);
    if (this.order.length === 0) this.order = all;
    else {
      const before = this.order;
      this.order = all.slice();
      this.order.set(before);
      this.order.set(all.filter((point) => !faded(point)), before.length);
    }
    const gl = this.gl;
    if (gl && this.isAccelerated) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.styleBuffer);
      gl.bufferData(gl.ARRAY_BUFFER, styles, gl.STATIC_DRAW);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.orderBuffer);
      gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, this.order, gl.STATIC_DRAW);
    }
    this.repaint();
  }

  setMarks(marks: CloudMarks) {
    this.chosen = marks;
    this.redrawMarks();
  }

  /** The place among the steps, with fractions. */
  show(at: number) {
    this.at = at;
    this.draw();
  }

  resetView() {
    this.zoom = 1;
    this.pan = [0, 0];
    this.draw();
  }

  private repaint() {
    const rgb = (text: string): [number, number, number] => {
      const digits = text.replace("#", "");
      const number = Number.parseInt(digits.length === 3 ? digits.replace(/./g, "$&$&") : digits, 16);
      return [(number >> 16) / 255, ((number >> 8) & 255) / 255, (number & 255) / 255];
    };
    this.palette = Array.from({ length: FADED }, (_, place) => rgb(colour(this.colours[place] ?? "--c6") || "#888888"));
    this.palette.push(rgb(colour("--faded")));
    this.ground = rgb(colour("--ground"));
    this.look = { ink: colour("--ink"), soft: colour("--soft"), ground: colour("--ground"), font: getComputedStyle(document.body).fontFamily };
    this.resize();
  }

  private resize() {
    const { clientWidth, clientHeight } = this.element;
    const ratio = this.ratio();
    for (const canvas of [this.points, this.marks]) {
      canvas.width = Math.max(1, Math.round(clientWidth * ratio));
      canvas.height = Math.max(1, Math.round(clientHeight * ratio));
    }
    this.draw();
  }

  /** Pixels of the canvas for one of the page: no more than one where the processor draws them. */
  private ratio(): number {
    return this.plain ? 1 : Math.min(window.devicePixelRatio || 1, 2);
  }

  /** The two steps around the place, and how far between them. */
  private between(): [number, number, number] {
    const last = this.data!.steps.length - 1;
    const from = Math.max(0, Math.min(Math.floor(this.at), last));
    return [from, Math.min(from + 1, last), Math.max(0, this.at - from)];
  }

  private pointSize(): number {
    const size = Math.min(9, Math.max(2.2, 9 * (FEW / this.data!.count) ** 0.4));
    return size * this.ratio() * Math.min(1.6, Math.sqrt(this.zoom));
  }

  private opacity(): number {
    return Math.min(0.72, Math.max(0.14, 0.72 * ((2 * FEW) / this.data!.count) ** 0.4) * Math.sqrt(this.zoom));
  }

  draw() {
    if (!this.data || this.points.width < 2) return;
    if (this.isAccelerated) this.drawAccelerated(this.gl!);
    else if (this.plain) this.drawPlain(this.plain);
    this.drawMarks();
  }

  private drawAccelerated(gl: WebGL2RenderingContext) {
    const { count } = this.data!;
    const [a, b] = this.between();
    gl.viewport(0, 0, this.points.width, this.points.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.program);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    [a, b].forEach((step, place) => {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 2, gl.FLOAT, false, 8, step * count * 8);
    });
    gl.bindBuffer(gl.ARRAY_BUFFER, this.styleBuffer);
    gl.enableVertexAttribArray(2);
    gl.vertexAttribPointer(2, 1, gl.FLOAT, false, 4, 0);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.orderBuffer);
    const { from, to, shift } = this.placing();
    gl.uniform1f(this.uniforms.size, this.pointSize());
    gl.uniform1f(this.uniforms.opacity, this.opacity());
    gl.uniform2f(this.uniforms.from, ...from);
    gl.uniform2f(this.uniforms.to, ...to);
    gl.uniform2f(this.uniforms.shift, ...shift);
    gl.uniform2f(this.uniforms.pixel, 2 / this.points.width, 2 / this.points.height);
    gl.uniform3fv(this.uniforms.colours, this.palette.flat());
    gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 0);
  }

  private drawPlain(context: CanvasRenderingContext2D) {
    const { palette, ground, styles, order } = this;
    const [a, b] = this.between().slice(0, 2).map((step) => this.of(step));
    this.raster.draw(context, { a, b, ...this.placing(), styles, order, size: this.pointSize(), opacity: this.opacity(), palette, ground });
  }

  /** The points of a step. */
  private of(step: number): Float32Array {
    const { values, count } = this.data!;
    return values.subarray(step * count * 2, (step + 1) * count * 2);
  }

  /** Where a point is in pixels of the canvas: its place at one step times `from`, and at the next times `to`, and `shift`. */
  private placing(): { from: [number, number]; to: [number, number]; shift: [number, number] } {
    const [a, b, t] = this.between();
    const { width, height } = this.points;
    const half = [width, height].map((side) => Math.max(side / 4, side / 2 - MARGIN * this.ratio()));
    // Either step fills the frame by itself.
    const scale = (step: number) => Math.min(...half.map((side, axis) => side / this.reaches[step][2 + axis])) * this.zoom;
    const [before, after] = [scale(a) * (1 - t), scale(b) * t];
    const middle = (axis: number) => this.reaches[a][axis] * before + this.reaches[b][axis] * after;
    return { from: [before, -before], to: [after, -after], shift: [width / 2 + this.pan[0] - middle(0), height / 2 + this.pan[1] + middle(1)] };
  }

  /** Calls with every point's place in pixels of the canvas. */
  private forEach(each: (point: number, x: number, y: number) => void) {
    const [a, b] = this.between().slice(0, 2).map((step) => this.of(step));
    const { from, to, shift } = this.placing();
    for (let point = 0; point < this.data!.count; point++) {
      each(point, a[2 * point] * from[0] + b[2 * point] * to[0] + shift[0], a[2 * point + 1] * from[1] + b[2 * point + 1] * to[1] + shift[1]);
    }
  }

  /** Where a point is, in pixels of the canvas. */
  place(point: number): [number, number] {
    const [a, b] = this.between().slice(0, 2).map((step) => this.of(step));
    const { from, to, shift } = this.placing();
    const along = (axis: number) => a[2 * point + axis] * from[axis] + b[2 * point + axis] * to[axis] + shift[axis];
    return [along(0), along(1)];
  }

  /** Lines, rings and names, where points stay as they are. */
  private redrawMarks() {
    if (this.plain) this.draw();
    else this.drawMarks();
  }

  private drawMarks() {
    const context = this.plain ?? this.marks.getContext("2d");
    if (!context || !this.data) return;
    const { width, height } = this.marks;
    const ratio = this.ratio();
    if (!this.plain) context.clearRect(0, 0, width, height);
    const line = (pairs: [number, number][], style: string, wide: number, alpha: number) => {
      context.strokeStyle = style;
      context.lineWidth = wide * ratio;
      context.globalAlpha = alpha;
      context.beginPath();
      for (const [a, b] of pairs) {
        context.moveTo(...this.place(a));
        context.lineTo(...this.place(b));
      }
      context.stroke();
      context.globalAlpha = 1;
    };
    const { ink, soft, ground, font } = this.look;
    line(this.chosen.joined, ink, 1, 0.45);
    line(this.chosen.strong, ink, 2, 0.95);
    for (const point of this.chosen.rings) {
      const [x, y] = this.place(point);
      context.strokeStyle = ink;
      context.lineWidth = 2 * ratio;
      context.beginPath();
      context.arc(x, y, 7 * ratio, 0, 2 * Math.PI);
      context.stroke();
    }
    context.font = `${12 * ratio}px ${font}`;
    context.lineJoin = "round";
    const used: [number, number][] = [];
    for (const [point, text] of this.chosen.labels) {
      const [x, placed] = this.place(point);
      // Of two points that are close, one is named above and the other below.
      const close = used.some(([ux, uy]) => Math.abs(ux - x) < 240 * ratio && Math.abs(uy - placed) < 34 * ratio);
      const y = placed + (close ? (12 + 15 * text.length) * ratio : 0);
      used.push([x, placed]);
      text.forEach((line, number) => {
        const wide = context.measureText(line).width;
        const left = Math.max(4, Math.min(x + 11 * ratio, width - wide - 4 * ratio));
        const level = y + (15 * (number + 1 - text.length) - 9) * ratio;
        context.strokeStyle = ground;
        context.lineWidth = 4 * ratio;
        context.strokeText(line, left, level);
        context.fillStyle = number === 0 ? ink : soft;
        context.fillText(line, left, level);
      });
    }
    if (this.area) {
      const [x, y, right, bottom] = this.area;
      context.strokeStyle = ink;
      context.lineWidth = 1.5 * ratio;
      context.setLineDash([4 * ratio, 3 * ratio]);
      context.strokeRect(x, y, right - x, bottom - y);
      context.setLineDash([]);
    }
  }

  /** The nearest point to a place on the canvas, if one is close. */
  private nearest(x: number, y: number): number | null {
    if (!this.data) return null;
    const reach = 14 * this.ratio();
    let best = reach * reach;
    let found = -1;
    this.forEach((point, px, py) => {
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < best) {
        best = distance;
        found = point;
      }
    });
    return found < 0 ? null : found;
  }

  private listen() {
    const ratio = () => this.points.width / Math.max(1, this.element.clientWidth);
    const place = (event: PointerEvent | WheelEvent): [number, number] => {
      const frame = this.element.getBoundingClientRect();
      return [(event.clientX - frame.left) * ratio(), (event.clientY - frame.top) * ratio()];
    };
    let start: [number, number] | null = null;
    let moved = false;
    this.element.addEventListener("pointerdown", (event) => {
      start = place(event);
      moved = false;
      this.area = event.shiftKey || this.selects ? [...start, ...start] : null;
      this.element.setPointerCapture(event.pointerId);
    });
    this.element.addEventListener("pointermove", (event) => {
      const here = place(event);
      if (!start) return this.onHover(this.nearest(...here));
      if (Math.hypot(here[0] - start[0], here[1] - start[1]) < 4 && !moved) return;
      moved = true;
      if (this.area) {
        this.area = [this.area[0], this.area[1], ...here];
        return this.redrawMarks();
      }
      this.pan[0] += here[0] - start[0];
      this.pan[1] += here[1] - start[1];
      start = here;
      this.draw();
    });
    this.element.addEventListener("pointerup", (event) => {
      const area = moved ? this.area : null;
      this.area = null;
      start = null;
      if (area) this.onLasso(this.within(area));
      else if (!moved) this.onPick(this.nearest(...place(event)));
      this.redrawMarks();
    });
    this.element.addEventListener("pointerleave", () => this.onHover(null));
    this.element.addEventListener("dblclick", () => this.resetView());
    this.element.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const factor = Math.exp(-event.deltaY * 0.0015);
        const next = Math.min(40, Math.max(0.5, this.zoom * factor));
        const [x, y] = place(event);
        const at = [x - this.points.width / 2, y - this.points.height / 2];
        this.pan = [0, 1].map((axis) => at[axis] - ((at[axis] - this.pan[axis]) * next) / this.zoom) as [number, number];
        this.zoom = next;
        this.draw();
      },
      { passive: false },
    );
  }

  private within([x0, y0, x1, y1]: [number, number, number, number]): number[] {
    const inside: number[] = [];
    if (!this.data) return inside;
    this.forEach((point, x, y) => {
      if (x >= Math.min(x0, x1) && x <= Math.max(x0, x1) && y >= Math.min(y0, y1) && y <= Math.max(y0, y1)) inside.push(point);
    });
    return inside;
  }
}
