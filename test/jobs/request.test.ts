import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { nextFetchNo, openFetchNumbers } from "../../src/db/usage/fetch-numbers.ts";
import { openRunWriter } from "../../src/db/usage/writer.ts";
import { openDialects } from "../../src/jobs/dialects.ts";
import { FilterCheck } from "../../src/jobs/filters.ts";
import type { KeyRing } from "../../src/jobs/key-ring.ts";
import { requestDeps } from "../../src/jobs/request.ts";
import { Scrubber, Secret } from "../../src/secret.ts";
import type { Service } from "../../src/service/service.ts";
import type { Undated } from "../../src/usage/slice.ts";
import { coverageOf, newSeries } from "../db/stored-usage.ts";
import { KEY, openTestService } from "../service/open-test-service.ts";
import { testDatabase } from "../support/database.ts";
import { answerJson, scriptedServer } from "../support/scripted-server.ts";
import { silentApp } from "../support/silent-app.ts";
import { RUN_DAY, sampleAnswer, sampleJob, sampleRequest, sampleRow, windowless } from "../usage/sample-request.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const SECRET = "open-sesame-41";

function contextOf(service: Service, scrubber = new Scrubber()) {
  const app = silentApp({ scrubber });
  const keys: KeyRing = {
    nameOf: () => undefined,
    use: (_, call) => call(KEY),
    useToRotate: (_, call) => call(KEY),
  };
  const dialects = openDialects({ app, db, service, keys });
  const shared = { fetchNumbers: openFetchNumbers(db), writer: openRunWriter(db) };
  return { app, db, service, keys, dialects, ...shared };
}

function settingsOf(context: ReturnType<typeof contextOf>, seriesId: number) {
  const check = new FilterCheck(context);
  return { runId: randomUUID(), policy: sampleJob(), check, idOf: () => seriesId, log: context.app.log };
}

test("the reason of a failure is stored without the secrets that the program knows", async () => {
  await using service = openTestService("http://127.0.0.1:1");
  const scrubber = new Scrubber();
  scrubber.add(new Secret(SECRET));
  const context = contextOf(service, scrubber);
  const { project, series, seriesId } = await newSeries(db);
  const { fail } = requestDeps(context, settingsOf(context, seriesId));

  const window = { start: DAY, end: DAY };
  const refusal = { reason: `no answer from http://${SECRET}@host`, code: "unavailable" } as const;
  await fail({ series, window }, await nextFetchNo(db), [DAY], refusal);

  expect(await coverageOf(db, project)).toMatchObject([{ error: "no answer from http://[secret]@host" }]);
});

test("the groups of an answer are read from the field by whose name the grouping was requested", async () => {
  const rows = [sampleRow("2026-03-17", { models: null }), sampleRow("2026-03-16", { models: "nova" })];
  await using server = await scriptedServer((_request, response) => answerJson(response, 200, sampleAnswer(rows)));
  await using service = openTestService(server.origin, { dialect: "2026" });
  const context = contextOf(service);
  const { fetch } = requestDeps(context, settingsOf(context, 0));
  const { slices } = await fetch(sampleRequest("model"), RUN_DAY, context.app.signal, async () => {});
  expect(slices.map(({ columns }) => columns.groups.map(({ display }) => display))).toEqual([["nova"], [null]]);
  expect(server.requests[0]?.target).toContain("grouping=models");
});

/** Reads an answer without a date whose Date header is `date`, in a run that was planned on RUN_DAY. */
async function readUndated(undated: Undated, date: string) {
  const results = [{ requests: 3 }];
  await using server = await scriptedServer((_request, response) => answerJson(response, 200, { results }, { date }));
  await using service = openTestService(server.origin);
  const context = contextOf(service);
  const { seriesId } = await newSeries(db);
  const settings = { ...settingsOf(context, seriesId), policy: sampleJob({ undated }) };
  const { fetch } = requestDeps(context, settings);
  const { slices } = await fetch(windowless("none"), RUN_DAY, context.app.signal, async () => {});
  return slices.map(({ day }) => day);
}

test.each([
  ["day", "Wed, 18 Mar 2026 23:59:50 GMT", "2026-03-18"],
  ["day", "Thu, 19 Mar 2026 00:10:00 GMT", "2026-03-19"],
  ["day-before", "Thu, 19 Mar 2026 00:10:00 GMT", "2026-03-18"],
  ["snapshot", "Thu, 19 Mar 2026 00:10:00 GMT", RUN_DAY],
] as const)(
  '"undated": "%s": an answer of %s counts for %s, on whichever day its run was planned',
  async (undated, date, day) => {
    expect(await readUndated(undated, date)).toEqual([day]);
  },
);
