// Calls an emulator over HTTP, and reads its answers.

import { z } from "zod";
import { type Emulator, type EmulatorOptions, startEmulator } from "../support/emulator.ts";

export const SECRET = "a-secret-of-the-console";
const PROJECT = "p1";
export const CONSOLE_KEY = { secret: SECRET, projectId: PROJECT, scopes: ["member"] };

/** A Wednesday at noon. */
export const NOON = new Date("2026-03-18T12:00:00Z");

/** Starts an emulator whose clock stands at `NOON`. */
export function start(options: Partial<EmulatorOptions> = {}): Promise<Emulator> {
  return startEmulator({ consoleKeys: [CONSOLE_KEY], now: () => NOON, ...options });
}

type RequestOptions = {
  readonly method?: string;
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
};

/** A `path` that does not start with a slash is relative to the project's path. */
export function ask(emulator: Emulator, path: string, options: RequestOptions = {}): Promise<Response> {
  const target = path.startsWith("/") ? path : `/v1/projects/${PROJECT}/${path}`;
  const { method = "GET", secret = SECRET, headers, body, signal } = options;
  return fetch(emulator.url + target, {
    method,
    headers: { authorization: `Token ${secret}`, "content-type": "application/json", ...headers },
    ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    ...(signal && { signal }),
  });
}

const Day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/);
const GroupValue = z.union([z.string(), z.array(z.string()), z.null()]);

const [NUMBER, WHOLE] = [z.number(), z.int()];
const Row = z.strictObject({
  ...{ hours: NUMBER, total_hours: NUMBER, agent_hours: NUMBER },
  ...{ tokens_in: WHOLE, tokens_out: WHOLE, tts_characters: WHOLE, requests: WHOLE },
  start: Day.optional(),
  end: Day.optional(),
  grouping: z.record(z.string(), GroupValue),
});
export type Row = z.infer<typeof Row>;

const Breakdown = z.strictObject({
  start: Day.optional(),
  end: Day.optional(),
  resolution: z.strictObject({ units: z.literal("day"), amount: z.literal(1) }).optional(),
  results: z.array(Row),
});
type Breakdown = z.infer<typeof Breakdown>;

export async function breakdown(emulator: Emulator, query = ""): Promise<Breakdown> {
  const response = await ask(emulator, `usage/breakdown?${query}`);
  if (response.status !== 200) throw new Error(`breakdown ${query}: ${response.status} ${await response.text()}`);
  return Breakdown.parse(await response.json());
}

/** For each row, its value of the dimension (undefined for the dimension "") and its number of requests. */
export async function requestsBy(emulator: Emulator, dimension: string, query: string): Promise<[unknown, number][]> {
  const { results } = await breakdown(emulator, query);
  return results.map(({ grouping, requests }) => [grouping[dimension], requests]);
}
