// Points drawn into the pixels of a picture by the processor. Where there is no GPU, a browser that emulates one takes many times as long for the
// same points: every point is a small stamp here, computed once for its colour and its place within a pixel, and blended by integers.

/** Places within a pixel, along either axis, that are distinguished. */
const PHASES = 4;

type Rgb = [number, number, number];

/** A point of one colour at one place within a pixel: for each of its pixels where it is, what is left of the ground, and what is added. */
interface Stamp {
  offsets: Int32Array;
  left: Int32Array;
  redBlue: Int32Array;
  green: Int32Array;
}

export interface Dots {
  /** Positions in pixels: a * from + b * to + shift, by axis. */
  a: Float32Array;
  b: Float32Array;
  from: [number, number];
  to: [number, number];
  shift: [number, number];
  /** Twice the number of a colour, and one more for a diamond. */
  styles: Float32Array;
  order: Uint32Array;
  size: number;
  opacity: number;
  palette: Rgb[];
  ground: Rgb;
}

export class Raster {
  private image: ImageData | null = null;
  private pixels = new Uint32Array();
  private pad = 0;
  private stamps: Stamp[] = [];
  private made = "";

  draw(context: CanvasRenderingContext2D, dots: Dots) {
    const { width, height } = context.canvas;
    this.prepare(width, height, dots);
    const { pixels, pad, stamps } = this;
    const wide = width + 2 * pad;
    pixels.fill(abgr(dots.ground));
    const { a, b, from, to, shift, styles, order } = dots;
    for (const point of order) {
      const x = a[2 * point] * from[0] + b[2 * point] * to[0] + shift[0];
      const y = a[2 * point + 1] * from[1] + b[2 * point + 1] * to[1] + shift[1];
      // What is beyond the edge by no more than its size lies in the margin.
      if (!(x > -pad / 2 && y > -pad / 2 && x < width + pad / 2 && y < height + pad / 2)) continue;
      const [column, row] = [Math.floor(x), Math.floor(y)];
      const phase = ((y - row) * PHASES | 0) * PHASES + ((x - column) * PHASES | 0);
      const { offsets, left, redBlue, green } = stamps[styles[point] * PHASES * PHASES + phase];
      const start = (row + pad) * wide + column + pad;
      for (let place = 0; place < offsets.length; place++) {
        const at = start + offsets[place];
        const under = pixels[at];
        const keep = left[place];
        pixels[at] =
          0xff000000 |
          (((Math.imul(under & 0xff00ff, keep) + redBlue[place]) >>> 8) & 0xff00ff) |
          ((Math.imul((under >>> 8) & 0xff, keep) + green[place]) & 0xff00);
      }
    }
    context.putImageData(this.image!, -pad, -pad, pad, pad, width, height);
  }

  /** A picture of this size with a margin, and the stamps, where they are not those of the last time. */
  private prepare(width: number, height: number, { size, opacity, palette, ground }: Dots) {
    const wanted = JSON.stringify([width, height, size, opacity, palette, ground]);
    if (wanted === this.made) return;
    this.made = wanted;
    this.pad = 2 * Math.ceil(size) + 4;
    const wide = width + 2 * this.pad;
    if (this.image?.width !== wide || this.image.height !== height + 2 * this.pad) {
      this.image = new ImageData(wide, height + 2 * this.pad);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }
    this.stamps = [];
    for (let style = 0; style < 2 * palette.length; style++) {
      for (let phase = 0; phase < PHASES * PHASES; phase++) {
        const within = [phase % PHASES, Math.floor(phase / PHASES)].map((part) => (part + 0.5) / PHASES);
        this.stamps.push(stamp(within, style, size, opacity, palette[style >> 1], wide));
      }
    }
  }
}

/** The colour of a pixel in memory. */
const abgr = ([r, g, b]: Rgb) => (0xff000000 | (Math.round(b * 255) << 16) | (Math.round(g * 255) << 8) | Math.round(r * 255)) >>> 0;

/** Even styles are discs, odd ones are diamonds, both with a soft edge, as the fragment shader draws them. */
function stamp([fx, fy]: number[], style: number, size: number, opacity: number, [r, g, b]: Rgb, wide: number): Stamp {
  const [offsets, left, redBlue, green]: number[][] = [[], [], [], []];
  const reach = Math.ceil(size / 2) + 1;
  for (let row = -reach; row <= reach; row++) {
    for (let column = -reach; column <= reach; column++) {
      const [x, y] = [column + 0.5 - fx, row + 0.5 - fy].map((side) => Math.abs(side) / (size / 2));
      const distance = style % 2 === 0 ? Math.hypot(x, y) : (x + y) * 0.95;
      const part = Math.round(256 * opacity * Math.min(1, Math.max(0, (1 - distance) * 3.6)));
      if (part === 0) continue;
      offsets.push(row * wide + column);
      left.push(256 - part);
      redBlue.push(((Math.round(b * 255) << 16) | Math.round(r * 255)) * part);
      green.push(Math.round(g * 255) * part);
    }
  }
  const numbers = (list: number[]) => Int32Array.from(list, (value) => value | 0);
  return { offsets: numbers(offsets), left: numbers(left), redBlue: numbers(redBlue), green: numbers(green) };
}
