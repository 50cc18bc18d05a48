// Requests to the server, or to the answers inside an exported page.
//
// A request has a path and parameters. In an export each answer is filed under a key that server and page make alike: the
// path and the parameters in the order of their names.

export type Params = Record<string, string | number | undefined>;

interface BakedAnswer {
  status: number;
  headers: Record<string, string>;
  json?: unknown;
  kind?: string;
  base64?: string;
}

const bakedElement = document.getElementById("baked");
const baked: Record<string, BakedAnswer> | null = bakedElement ? JSON.parse(bakedElement.textContent ?? "{}") : null;

/** Whether this page is an export, which knows no more than what is inside. */
export const isBaked = baked !== null;

/** What went wrong, in words that can be shown. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

const given = (params: Params) =>
  Object.entries(params).filter((pair): pair is [string, string | number] => pair[1] !== undefined && pair[1] !== "");

function keyOf(path: string, params: Params): string {
  const pairs = given(params).map(([name, value]) => `${name}=${value}`);
  return `${path}?${pairs.sort().join("&")}`;
}

/** Whether an answer can be had at all. */
export function isKnown(path: string, params: Params): boolean {
  return baked === null || keyOf(path, params) in baked;
}

function fromBaked(path: string, params: Params): BakedAnswer {
  const answer = baked?.[keyOf(path, params)];
  if (!answer) throw new ApiError("This is not in the exported page; open the run with isogloss explore.", 404);
  if (answer.status !== 200) {
    throw new ApiError((answer.json as { error?: string })?.error ?? "There is no answer.", answer.status);
  }
  return answer;
}

async function checked(response: Response): Promise<Response> {
  if (response.ok) return response;
  const text = await response.text();
  let message = text;
  try {
    message = JSON.parse(text).error ?? text;
  } catch {
    // Plain text is a message as well.
  }
  throw new ApiError(message, response.status);
}

const unreachable = () =>
  new ApiError("The server does not answer: isogloss explore was ended. Start it again, and open the address that it prints.", 0);

async function reach(address: string, options?: RequestInit): Promise<Response> {
  const response = await fetch(address, options).catch(() => {
    throw unreachable();
  });
  return checked(response);
}

const addressOf = (path: string, params: Params) => {
  const query = new URLSearchParams(given(params).map(([name, value]) => [name, String(value)]));
  return query.size > 0 ? `${path}?${query}` : path;
};

export async function get<T>(path: string, params: Params = {}): Promise<T> {
  if (baked) return fromBaked(path, params).json as T;
  return (await reach(addressOf(path, params))).json() as Promise<T>;
}

export async function post<T>(path: string, params: Params): Promise<T> {
  if (baked) return fromBaked(path, params).json as T;
  const body = JSON.stringify(Object.fromEntries(given(params)));
  const headers = { "Content-Type": "application/json" };
  return (await reach(path, { method: "POST", body, headers })).json() as Promise<T>;
}

export interface PointArray {
  steps: number[];
  count: number;
  /** steps x points x 2. */
  values: Float32Array;
  /** Of each step, the share of variance along either axis. */
  shares: number[];
}

/** Two numbers of every point at every step: its place, or of `/api/ranks` the rank of its translation and its hubness. */
export async function getPoints(params: Params, path = "/api/points"): Promise<PointArray> {
  let buffer: ArrayBuffer;
  let header: (name: string) => string;
  if (baked) {
    const answer = fromBaked(path, params);
    const text = atob(answer.base64 ?? "");
    buffer = Uint8Array.from(text, (letter) => letter.charCodeAt(0)).buffer;
    header = (name) => answer.headers[name] ?? "";
  } else {
    const response = await reach(addressOf(path, params));
    buffer = await response.arrayBuffer();
    header = (name) => response.headers.get(name) ?? "";
  }
  const numbers = (name: string) => header(name).split(",").map(Number);
  return { steps: numbers("X-Steps"), count: numbers("X-Shape")[1], values: new Float32Array(buffer), shares: numbers("X-Shares") };
}

/** The address of a figure; in an export, the figure itself, in light colours. */
export function figureAddress(file: string, params: Params = {}): string {
  if (!baked) return addressOf(`/api/figure/${encodeURIComponent(file)}`, params);
  const { kind, base64 } = fromBaked(`/api/figure/${file}`, {});
  return `data:${kind};base64,${base64}`;
}

/** Follows a run; gives what ends it. */
export function follow(run: string, progress: (data: Progress) => void, gone: () => void): () => void {
  if (baked) return () => {};
  const source = new EventSource(addressOf("/api/live", { run }));
  source.addEventListener("progress", (event) => progress(JSON.parse((event as MessageEvent).data)));
  source.addEventListener("gone", () => {
    source.close();
    gone();
  });
  return () => source.close();
}

// What the server answers.

export interface Progress {
  live: boolean;
  step: number;
  goal: number;
  probes: string;
  gone: boolean;
}

export interface RunList {
  runs: { id: string; name: string }[];
  laboratory: string | null;
  /** The run of a second place, which is shown beside the first. */
  beside: string | null;
  version: string;
}

export interface Language {
  code: string;
  name: string;
}

export interface Run {
  id: string;
  name: string;
  folder: string;
  pairs: string[];
  pair: string;
  languages: Language[];
  points: number;
  paired: boolean;
  has_steps: boolean;
  /** Whether the sentences are given ones, and not those of which a run saved states. */
  given: boolean;
  steps: number[];
  snapshots: number[];
  layers: number;
  best_layer: number;
  shift_layer: number;
  from_random: boolean;
  candidates: number;
  progress: Progress | null;
  notes: string[];
}

export interface Items {
  languages: Language[];
  paired: boolean;
  texts: string[][];
  lengths: number[][];
  /** What each word means, by language, of invented worlds. */
  lexicon: Record<string, string>[];
}

export interface Metrics {
  title: string | null;
  steps: number[];
  raw: number[][];
  centered: number[][];
  language_share: number[][];
  candidates: number;
  chance: number | null;
  from_random: boolean;
  perplexity: { step: number; values: Record<string, number> }[];
  loss: { step: number; values: Record<string, number> }[];
}

export interface Weights {
  model: string;
  step: number | null;
}

export interface Neighbours {
  weights: Weights;
  queries: {
    query: string;
    language: string;
    layers: { layer: number; languages: { language: string; neighbors: { text: string; cosine: number }[] }[] }[];
  }[];
  candidates: { language: string; candidates: number }[];
  gold: (string | null)[];
  /** Layers x languages: the place of the translation, where it is among the first thousand. */
  ranks: (number | null)[][];
}

export interface RetrievalErrors {
  weights: Weights;
  forward: number;
  backward: number;
  mean: number;
  sentences: number;
  wrong: number;
  errors: { direction: string; query: string; gold: string[]; neighbors: { text: string; score: number }[] }[];
}

export interface Subword {
  text: string;
  source: boolean;
  target: boolean;
}

export interface Translation {
  weights: Weights;
  from: string;
  to: string;
  layer: number;
  sentence: string;
  unknown: string[];
  outputs: { alpha: number; subwords: Subword[]; text: string; conversion_rate: number | null }[];
  probabilities: (Subword & { probability: number })[][][];
  means: string | null;
}

export interface Similarity {
  weights: Weights;
  other: Weights;
  result: {
    cka: number[][];
    debiased: (number | null)[][];
    within_length?: number[][];
    used: number;
    few_rows: boolean;
  };
}

export interface Finding {
  section: string;
  finding: string;
  of: string;
  place: string;
  paper: string;
  setting: string;
  quantity: string;
  criterion: string;
  verdict: string;
  strength: string;
  q: number | null;
}

export interface Findings {
  findings: Finding[];
  figures: { id: string; title: string }[];
  /** Figures that an export does not hold. */
  left_out: number;
  missing: string[];
  commands: string[];
}
