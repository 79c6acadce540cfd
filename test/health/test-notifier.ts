// Opens notifiers for one export and one rotation of a test, and a receiver that records what it gets. Each notifier acts as one
// replica on the same database.

import { randomUUID } from "node:crypto";
import { pino } from "pino";
import type { Database } from "../../src/db/connection/database.ts";
import { finishRun, startRun } from "../../src/db/jobs/runs.ts";
import { registerSeries } from "../../src/db/usage/stored-series.ts";
import { Scrubber, Secret } from "../../src/secret.ts";
import { configuredSeries } from "../../src/usage/export-plan.ts";
import { openNotifier } from "../../src/worker/notifier.ts";
import type { Receivers } from "../../src/worker/webhook.ts";
import { farSchedule } from "../cli/small-config.ts";
import { parse } from "../config/sample-config.ts";
import { answer, scriptedServer } from "../support/scripted-server.ts";

/** A secret that the notifiers' scrubbers know, and hide. */
export const SECRET = "open-sesame-41";

export type NotifierFixture = AsyncDisposable & {
  /** The name of the export. */
  readonly name: string;
  /** The id of the export's only series. */
  readonly seriesId: number;
  /** The status that the receiver answers from now on; undefined if it does not answer. */
  status: number | undefined;
  /** The texts that the receiver accepted, without their signatures. */
  readonly texts: readonly string[];
  /** For each accepted text, the end that names the sender. */
  readonly signatures: readonly string[];
  /** Method and path of each request that the receiver got, accepted or not. */
  readonly requests: readonly string[];
  /** Opens a notifier with one of the two receivers. */
  readonly notifier: (receiver?: keyof Receivers, stop?: AbortSignal) => TestNotifier;
  /** Ticks the workers at the same time. By default they are two new ones. */
  readonly tickAll: (workers?: readonly TestNotifier[]) => Promise<void>;
  readonly endRun: (status: "ok" | "failed", error?: string) => Promise<void>;
};

type TestNotifier = {
  readonly tick: () => Promise<unknown>;
  readonly lines: readonly string[];
};

export async function openNotifierFixture(
  db: Database,
  { name = `job-${randomUUID()}`, schedule = farSchedule(), monitor = {}, notify = {} } = {},
): Promise<NotifierFixture> {
  const config = parse({
    service: { baseUrl: "http://127.0.0.1:1" },
    projects: [{ id: randomUUID(), name: "production", key: { env: "KEY" } }],
    exports: [{ name, schedule, projects: ["production"], window: { days: 2 }, groupings: ["none"] }],
    rotations: [{ name: `${name}-keys`, schedule, project: "production", comment: "exporter", scopes: ["member"] }],
    ...{ monitor, notify },
  });
  const ids = await registerSeries(db, configuredSeries(config.exports));
  const texts: string[] = [];
  const signatures: string[] = [];
  const requests: string[] = [];
  const server = await scriptedServer(({ method, target, body }, response) => {
    requests.push(`${method} ${target}`);
    if (fixture.status === undefined) return;
    if (fixture.status === 200 && method === "POST") {
      const [text = "", signature = ""] = JSON.parse(body).text.split(" — ");
      texts.push(text);
      signatures.push(signature);
    }
    answer(response, fixture.status, "");
  });
  const [, seriesId = 0] = [...ids].find(([series]) => series.includes(config.projects[0]?.id ?? "")) ?? [];

  const fixture: NotifierFixture = {
    ...{ name, texts, signatures, requests, status: 200, seriesId },
    notifier(receiver = "webhook", stop = new AbortController().signal) {
      const lines: string[] = [];
      const scrubber = new Scrubber();
      scrubber.add(new Secret(SECRET));
      const app = { log: pino({}, { write: (line: string) => void lines.push(line) }), scrubber };
      const receivers: Receivers = {
        webhook: undefined,
        deadMan: undefined,
        [receiver]: { field: `notify.${receiver}`, address: new Secret(`${server.origin}/${receiver}`) },
      };
      return { tick: openNotifier({ app, db, config, receivers, stop, timeoutMs: 30_000 }), lines };
    },
    async tickAll(workers = [fixture.notifier(), fixture.notifier()]) {
      await Promise.all(workers.map(({ tick }) => tick()));
    },
    async endRun(status, error) {
      const runId = randomUUID();
      await startRun(db, { runId, kind: "export", job: name, trigger: "schedule" });
      await finishRun(db, runId, status, error);
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
  return fixture;
}
