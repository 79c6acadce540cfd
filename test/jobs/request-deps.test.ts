import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { App } from "../../src/app.ts";
import { nextFetchNo, openFetchNumbers } from "../../src/db/usage/fetch-numbers.ts";
import { openAnswerWriter } from "../../src/db/usage/writer.ts";
import { openDialects, openGroupingCheck } from "../../src/jobs/dialects.ts";
import type { KeyRing } from "../../src/jobs/export-context.ts";
import { requestDeps } from "../../src/jobs/request-deps.ts";
import { Scrubber, Secret } from "../../src/secret.ts";
import { openBacklog } from "../../src/usage/export.ts";
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
  const context = {
    ...{ app, db, service, keys, dialects, groupings: openGroupingCheck() },
    ...{ fetchNumbers: openFetchNumbers(db), writer: openAnswerWriter(db), backlog: openBacklog() },
  };
  const { project, series, seriesId } = await newSeries(db);
  const { fail } = requestDeps(context, {
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
