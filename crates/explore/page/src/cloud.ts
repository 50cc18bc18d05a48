// Points of several languages at every step of training. All steps lie in one buffer of the GPU, and the vertex shader interpolates
// between two of them, so that scrubbing copies nothing. Lines and rings are drawn on a second canvas above. Without WebGL 2, or where
// a browser without a GPU emulates it, the processor draws points, lines and rings on one canvas.

import type { PointArray } from "./api";
import { colour, h } from "./dom";
import { Raster } from "./raster";

// What is the same for a whole point is computed once for it, not for each of its pixels.
const VERTEX = `#version 300 es
in vec2 a; in vec2 b; in float language;
uniform float t, size, opacity; uniform vec2 scale, zoom, pan, aspect; uniform vec3 colours[12];
flat out vec4 ink; flat out float round;
void main() {
  vec2 p = mix(a * scale.x, b * scale.y, t) * zoom.x + pan;
  gl_Position = vec4(p * aspect, 0.0, 1.0);
  gl_PointSize = size;
  ink = vec4(colours[int(language)], 1.0) * opacity;
  round = 1.0 - mod(language, 2.0);
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

/** The view reaches so many times the root mean square distance from the centre. */
const REACH = 2;

export interface CloudMarks {
  /** Pairs of points that lines join. */
  joined: [number, number][];
  /** Pairs that are emphasised, and rings. */
  strong: [number, number][];
  rings: number[];
  labels: [number, string][];
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
  private languageBuffer: WebGLBuffer | null = null;
  private data: PointArray | null = null;
  private languages: Float32Array = new Float32Array();
  private scales: number[] = [];
  private at = 0;
  private zoom = 1;
  private pan: [number, number] = [0, 0];
  private chosen: CloudMarks = { joined: [], strong: [], rings: [], labels: [] };
  private lasso: [number, number][] = [];
  private palette: [number, number, number][] = [];
  private ground: [number, number, number] = [1, 1, 1];
  /** Colours and font of the page, which are looked up when they may have changed, not at every frame. */
  private look = { ink: "", ground: "", font: "" };

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
    ["a", "b", "language"].forEach((name, place) => gl.bindAttribLocation(program, place, name));
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return;
    this.program = program;
    for (const name of ["t", "size", "scale", "zoom", "pan", "aspect", "colours", "opacity"]) {
      this.uniforms[name] = gl.getUniformLocation(program, name);
    }
    this.buffer = gl.createBuffer();
    this.languageBuffer = gl.createBuffer();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.points.addEventListener("webglcontextlost", (event) => event.preventDefault());
    this.points.addEventListener("webglcontextrestored", () => {
      this.prepare(gl);
      if (this.data) this.setData(this.data, this.languages);
    });
  }

  /** New points; the language of each by its number. */
  setData(data: PointArray, languages: Float32Array) {
    this.data = data;
    this.languages = languages;
    this.scales = data.steps.map((_, step) => {
      const from = step * data.count * 2;
      let squares = 0;
      for (let i = from; i < from + data.count * 2; i++) squares += data.values[i] ** 2;
      return 1 / (REACH * Math.sqrt(squares / Math.max(1, data.count)) || 1);
    });
    this.note = this.obstacle;
    const gl = this.gl;
    if (gl && this.isAccelerated) {
      gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
      gl.bufferData(gl.ARRAY_BUFFER, data.values, gl.STATIC_DRAW);
      gl.bindBuffer(gl.ARRAY_BUFFER, this.languageBuffer);
      gl.bufferData(gl.ARRAY_BUFFER, languages, gl.STATIC_DRAW);
    }
    this.at = Math.min(this.at, data.steps.length - 1);
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
    this.palette = Array.from({ length: 12 }, (_, place) => rgb(colour(`--c${place}`) || "#888888"));
    this.ground = rgb(colour("--ground"));
    this.look = { ink: colour("--ink"), ground: colour("--ground"), font: getComputedStyle(document.body).fontFamily };
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

  private aspect(): [number, number] {
    const { width, height } = this.points;
    return width > height ? [height / width, 1] : [1, width / height];
  }

  private pointSize(): number {
    const count = this.data?.count ?? 0;
    const base = count <= 1000 ? 9 : count <= 10_000 ? 4.5 : 2.5;
    return base * this.ratio() * Math.min(1.6, Math.sqrt(this.zoom));
  }

  draw() {
    if (!this.data || this.points.width < 2) return;
    if (this.isAccelerated) this.drawAccelerated(this.gl!);
    else if (this.plain) this.drawPlain(this.plain);
    this.drawMarks();
  }

  private drawAccelerated(gl: WebGL2RenderingContext) {
    const { count } = this.data!;
    const [a, b, t] = this.between();
    gl.viewport(0, 0, this.points.width, this.points.height);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
    gl.useProgram(this.program);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.buffer);
    [a, b].forEach((step, place) => {
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, 2, gl.FLOAT, false, 8, step * count * 8);
    });
    gl.bindBuffer(gl.ARRAY_BUFFER, this.languageBuffer);
    gl.enableVertexAttribArray(2);
    gl.vertexAttribPointer(2, 1, gl.FLOAT, false, 4, 0);
    gl.uniform1f(this.uniforms.t, t);
    gl.uniform1f(this.uniforms.size, this.pointSize());
    gl.uniform1f(this.uniforms.opacity, this.opacity());
    gl.uniform2f(this.uniforms.scale, this.scales[a], this.scales[b]);
    gl.uniform2f(this.uniforms.zoom, this.zoom, this.zoom);
    gl.uniform2f(this.uniforms.pan, ...this.pan);
    gl.uniform2f(this.uniforms.aspect, ...this.aspect());
    gl.uniform3fv(this.uniforms.colours, this.palette.flat());
    gl.drawArrays(gl.POINTS, 0, count);
  }

  private drawPlain(context: CanvasRenderingContext2D) {
    const { palette, ground, languages } = this;
    const [a, b] = this.between().slice(0, 2).map((step) => this.of(step));
    this.raster.draw(context, { a, b, ...this.placing(), languages, size: this.pointSize(), opacity: this.opacity(), palette, ground });
  }

  private opacity(): number {
    return this.data!.count > 20_000 ? 0.5 : 0.72;
  }

  /** The points of a step. */
  private of(step: number): Float32Array {
    const { values, count } = this.data!;
    return values.subarray(step * count * 2, (step + 1) * count * 2);
  }

  /** Where a point is in pixels of the canvas: its place at one step times `from`, and at the next times `to`, and `shift`. */
  private placing(): { from: [number, number]; to: [number, number]; shift: [number, number] } {
    const [a, b, t] = this.between();
    const [sx, sy] = this.aspect();
    const { width, height } = this.points;
    const [x, y] = [(sx * width) / 2, (-sy * height) / 2];
    const [before, after] = [this.scales[a] * (1 - t) * this.zoom, this.scales[b] * t * this.zoom];
    return { from: [x * before, y * before], to: [x * after, y * after], shift: [width / 2 + this.pan[0] * x, height / 2 + this.pan[1] * y] };
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
    const { ink, ground, font } = this.look;
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
      const close = used.some(([ux, uy]) => Math.abs(ux - x) < 200 * ratio && Math.abs(uy - placed) < 20 * ratio);
      const y = placed + (close ? 27 * ratio : 0);
      used.push([x, placed]);
      const wide = context.measureText(text).width;
      const left = Math.max(4, Math.min(x + 11 * ratio, width - wide - 4 * ratio));
      context.strokeStyle = ground;
      context.lineWidth = 4 * ratio;
      context.strokeText(text, left, y - 9 * ratio);
      context.fillStyle = ink;
      context.fillText(text, left, y - 9 * ratio);
    }
    if (this.lasso.length > 1) {
      context.strokeStyle = ink;
      context.lineWidth = 1.5 * ratio;
      context.setLineDash([4 * ratio, 3 * ratio]);
      context.beginPath();
      this.lasso.forEach(([x, y], number) => (number ? context.lineTo(x, y) : context.moveTo(x, y)));
      context.closePath();
      context.stroke();
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
      this.lasso = event.shiftKey ? [start] : [];
      this.element.setPointerCapture(event.pointerId);
    });
    this.element.addEventListener("pointermove", (event) => {
      const here = place(event);
      if (!start) return this.onHover(this.nearest(...here));
      if (Math.hypot(here[0] - start[0], here[1] - start[1]) < 4 && !moved) return;
      moved = true;
      if (this.lasso.length > 0) {
        this.lasso.push(here);
        return this.redrawMarks();
      }
      const [sx, sy] = this.aspect();
      this.pan[0] += ((here[0] - start[0]) * 2) / this.points.width / sx;
      this.pan[1] -= ((here[1] - start[1]) * 2) / this.points.height / sy;
      start = here;
      this.draw();
    });
    this.element.addEventListener("pointerup", (event) => {
      if (this.lasso.length > 2) this.onLasso(this.within(this.lasso));
      else if (!moved) this.onPick(this.nearest(...place(event)));
      this.lasso = [];
      start = null;
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
        const [sx, sy] = this.aspect();
        const at = [((x / this.points.width) * 2 - 1) / sx, (1 - (y / this.points.height) * 2) / sy];
        this.pan = [0, 1].map((axis) => at[axis] - ((at[axis] - this.pan[axis]) * next) / this.zoom) as [number, number];
        this.zoom = next;
        this.draw();
      },
      { passive: false },
    );
  }

  private within(outline: [number, number][]): number[] {
    const inside: number[] = [];
    if (!this.data) return inside;
    this.forEach((point, x, y) => {
      let odd = false;
      outline.forEach(([x1, y1], number) => {
        const [x2, y2] = outline[(number + outline.length - 1) % outline.length];
        if (y1 > y !== y2 > y && x < ((x2 - x1) * (y - y1)) / (y2 - y1) + x1) odd = !odd;
      });
      if (odd) inside.push(point);
    });
    return inside;
  }
}
