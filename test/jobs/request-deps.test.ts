import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import { nextFetchNo } from "../../src/db/usage/fetch-numbers.ts";
import type { KeyRing } from "../../src/jobs/api-keys.ts";
import { openDialects } from "../../src/jobs/dialects.ts";
import { openSharedParts, requestDeps } from "../../src/jobs/request-deps.ts";
import { Scrubber, Secret } from "../../src/secret.ts";
import { coverageOf, newSeries } from "../db/stored-usage.ts";
import { KEY, openTestService } from "../service/open-test-service.ts";
import { testDatabase } from "../support/database.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const SECRET = "open-sesame-41";

test("a reason is stored without the secrets that are known", async () => {
  await using service = openTestService("http://127.0.0.1:1");
  const scrubber = new Scrubber();
  scrubber.add(new Secret(SECRET));
  const app: App = {
    env: {},
    configPath: "jobs.config.json",
    signal: new AbortController().signal,
    scrubber,
    log: pino({ level: "silent" }),
    person: "the test",
    actor: "the test",
    write: () => {},
    terminal: false,
  };
  const keys: KeyRing = { use: (_, call) => call(KEY), useToRotate: (_, call) => call(KEY) };
  const dialects = openDialects({ app, db, service, keys });
  const world = { app, db, service, keys, dialects, ...openSharedParts(db) };
  const { project, series, seriesId } = await newSeries(db);
  const { fail } = requestDeps(world, {
    runId: randomUUID(),
    idOf: () => seriesId,
    emptyGuard: "confirm",
    undated: "snapshot",
    cliffGuard: "confirm",
  });

  const window = { start: DAY, end: DAY };
  const refusal = { reason: `no answer from http://${SECRET}@host`, code: "unavailable" } as const;
  await fail({ series, window }, await nextFetchNo(db), [DAY], refusal);

  expect(await coverageOf(db, project)).toMatchObject([{ error: "no answer from http://[secret]@host" }]);
});
