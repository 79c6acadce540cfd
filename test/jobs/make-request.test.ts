import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { expect, test } from "vitest";
import type { Config } from "../../src/config/config.ts";
import { openReader } from "../../src/db/usage/due-slices.ts";
import { openFetchNumbers } from "../../src/db/usage/fetch-numbers.ts";
import { openWriter } from "../../src/db/usage/writer.ts";
import { AppError } from "../../src/errors.ts";
import type { ExportContext } from "../../src/jobs/context.ts";
import { Dialects } from "../../src/jobs/dialects.ts";
import { makeRequest, readBreakdown } from "../../src/jobs/export.ts";
import { FilterCheck } from "../../src/jobs/filter-check.ts";
import { Scrubber, Secret } from "../../src/secret.ts";
import type { Service } from "../../src/service/client-types.ts";
import type { UsageRequest } from "../../src/usage/export-plan.ts";
import { ALL_USAGE, seriesKey } from "../../src/usage/series.ts";
import type { AnswerRules } from "../../src/usage/slice-decision.ts";
import { coverageOf, newSeries, nextFetchNo, store } from "../db/stored-usage.ts";
import { KEY_RING, openTestService, serve } from "../service/open-test-service.ts";
import { testDatabase } from "../support/database.ts";
import { answeringJson, answerJson } from "../support/scripted-server.ts";
import { silentApp } from "../support/silent-app.ts";
import { RUN_DAY, sampleAnswer, sampleJob, sampleRequest, sampleRow, windowless } from "../usage/sample-request.ts";

const { db } = await testDatabase();

const DAY = "2026-03-17";
const SECRET = "open-sesame-41";

const DAY_ANSWER = sampleAnswer([sampleRow(DAY, { endpoint: "listen" })], { start: DAY, end: DAY });

function contextOf(service: Service) {
  const app = silentApp();
  return { app, db, service, keyRing: KEY_RING, dialects: new Dialects({ app, db, service, keyRing: KEY_RING }) };
}

/** Reads the answer without storing it, for a series of which nothing is stored. */
function read(
  context: ReturnType<typeof contextOf>,
  request: UsageRequest,
  undated: AnswerRules["undated"] = "snapshot",
) {
  const stored = async () => ({ oldest: null, hasRows: false, isNewestEmpty: false });
  const how = { check: new FilterCheck(context, sampleJob()), job: sampleJob({ undated }), runDay: RUN_DAY, stored };
  return readBreakdown(context, how, request);
}

test("a filter's tag is reported as neither known nor unknown if the service lists no tags", async () => {
  const { service } = await serve(answeringJson(200, { models: [] }));
  const { series } = sampleRequest("none");
  const byTag = { ...series, filter: { ...ALL_USAGE, dimensions: { tags: "prod" } } };
  const [unknown] = await new FilterCheck(contextOf(service), sampleJob()).unknownNames(byTag);
  expect(unknown?.text).toContain("does not say whether");
});

test("the groups of an answer are read from the field that has the grouping's name in the request", async () => {
  const rows = [sampleRow("2026-03-17", { models: null }), sampleRow("2026-03-16", { models: "nova" })];
  const { server, service } = await serve(answeringJson(200, sampleAnswer(rows)), { dialect: "2026" });
  const { slices } = await read(contextOf(service), sampleRequest("model"));
  expect(slices.map(({ columns }) => columns.groups.map(({ display }) => display))).toEqual([["nova"], [null]]);
  expect(server.requests[0]?.target).toContain("grouping=models");
});

test("if the service begins to speak the other dialect, its groups are read in that dialect", async () => {
  let spoken = "models";
  const { service } = await serve(
    ({ target }, response) => {
      const isSpoken = new URL(target, "http://service").searchParams.get("grouping") === spoken;
      const row = { [spoken]: isSpoken ? "nova" : null };
      answerJson(response, 200, sampleAnswer([sampleRow("2026-03-17", row)]));
    },
    { dialect: "auto" },
  );
  const context = contextOf(service);
  const displays = async () => {
    const { slices } = await read(context, sampleRequest("model"));
    return slices.flatMap(({ columns }) => columns.groups.map(({ display }) => display));
  };
  expect(await displays()).toEqual(["nova"]);
  spoken = "model";
  expect(await displays()).toEqual(["nova"]);
});

test("an answer is refused if the service ignores the grouping only beside a filter", async () => {
  const { service } = await serve(({ target }, response) => {
    const { searchParams } = new URL(target, "http://service");
    const grouping = searchParams.get("grouping") ?? "none";
    answerJson(response, 200, sampleAnswer([sampleRow(DAY, { [grouping]: searchParams.has("diarize") ? null : "x" })]));
  });
  const { series, window } = sampleRequest("tags");
  const filter = { ...ALL_USAGE, name: "diarized", features: { diarize: "true" } };
  const context = contextOf(service);
  expect((await read(context, { series, window })).slices).not.toEqual([]);
  await expect(read(context, { series: { ...series, filter }, window })).rejects.toThrow("answer the total");
});

test.each([
  ["day", "Wed, 18 Mar 2026 23:59:50 GMT", "2026-03-18"],
  ["day", "Thu, 19 Mar 2026 00:10:00 GMT", "2026-03-19"],
  ["day-before", "Thu, 19 Mar 2026 00:10:00 GMT", "2026-03-18"],
  ["snapshot", "Thu, 19 Mar 2026 00:10:00 GMT", RUN_DAY],
] as const)(`"undated": "%s": in a run of ${RUN_DAY} an answer of %s counts for %s`, async (undated, date, day) => {
  const { service } = await serve(answeringJson(200, { results: [{ requests: 3 }] }, { date }));
  const { slices } = await read(contextOf(service), windowless("none"), undated);
  expect(slices.map((one) => one.day)).toEqual([day]);
});

/** Makes a request for DAY of a new series, in a run that began before `meanwhile`. */
async function readAndStore(
  service: Service,
  {
    meanwhile = async () => {},
    ...part
  }: Partial<ExportContext> & { readonly meanwhile?: (series: { readonly seriesId: number }) => Promise<unknown> } = {},
) {
  const stored = await newSeries(db);
  const { project, series, seriesId } = stored;
  const ids = new Map([[seriesKey(series), seriesId]]);
  const opened = { nextFetchNo: openFetchNumbers(db), reader: openReader(db), writer: openWriter(db) };
  const context = { ...contextOf(service), config: {} as Config, ids, ...opened, ...part };
  const lines: string[] = [];
  const log = pino({}, { write: (line) => lines.push(line) });
  const run = { runId: randomUUID(), job: sampleJob(), runDay: RUN_DAY, log, fetchNo: await nextFetchNo(db) };
  await meanwhile(stored);
  const window = { start: DAY, end: DAY };
  const check = new FilterCheck(context, run.job);
  const outcome = await makeRequest(context, { ...run, check }, { series, window });
  return { outcome, coverage: await coverageOf(db, project), lines: lines.map((line) => JSON.parse(line)) };
}

test("a failure is stored on its day without the secrets that the program knows", async () => {
  const scrubber = new Scrubber();
  scrubber.add(new Secret(SECRET));
  await using service = openTestService("http://127.0.0.1:1");
  const app = silentApp({ scrubber });
  const keyRing = { ...KEY_RING, use: () => Promise.reject(new AppError("config", `no key at ${SECRET}`)) };
  const { outcome, coverage, lines } = await readAndStore(service, { app, keyRing });
  expect(outcome).toMatchObject({ code: "config" });
  expect(coverage).toMatchObject([{ usage_date: DAY, status: "failed", error: "no key at [secret]" }]);
  expect(lines).toMatchObject([{ msg: "usage request failed", code: "config", start: DAY }]);
});

test("a request that fails before its call does not fail a day that was read since the run began", async () => {
  await using service = openTestService("http://127.0.0.1:1");
  const keyRing = { ...KEY_RING, use: () => Promise.reject(new AppError("config", "no key")) };
  const meanwhile = ({ seriesId }: { readonly seriesId: number }) => store(db, seriesId, { [DAY]: { listen: "1" } });
  const { outcome, coverage } = await readAndStore(service, { keyRing, meanwhile });
  expect(outcome).toMatchObject({ code: "config" });
  expect(coverage).toMatchObject([{ status: "complete", error: null }]);
});

test("an answer replaces what another process stored before its last attempt", async () => {
  let seriesId = 0;
  const storeOther = () => store(db, seriesId, { [DAY]: { listen: "2" } });
  const { service } = await serve(({ number }, response) => {
    if (number === 1) void storeOther().then(() => answerJson(response, 503, {}));
    else answerJson(response, 200, DAY_ANSWER);
  });
  const { outcome } = await readAndStore(service, {
    // openFetchNumbers takes numbers in advance, so a number may be lower than that of the other process.
    nextFetchNo: () => nextFetchNo(db),
    meanwhile: async (series) => {
      seriesId = series.seriesId;
    },
  });
  expect(outcome).toMatchObject({ slices: [{ day: DAY, decision: "replace" }] });
});

const failingStore = (error: Error): Partial<ExportContext> => ({
  writer: { ...openWriter(db), store: () => Promise.reject(error) },
});

test("a bug in this program fails only its request", async () => {
  const { service } = await serve(answeringJson(200, DAY_ANSWER));
  const { outcome, coverage, lines } = await readAndStore(service, failingStore(new TypeError("x is not a function")));
  expect(outcome).toMatchObject({ code: "internal", reason: "x is not a function" });
  expect(coverage).toMatchObject([{ status: "failed" }]);
  expect(lines).toMatchObject([{ code: "internal", stack: expect.stringContaining("request.test.ts") }]);
});

test.each<[string, Error]>([
  ["a lost database", Object.assign(new Error("Connection terminated unexpectedly"), { code: "08006" })],
  ["an error about the product's database", new AppError("database", "the schema is not the expected one")],
  ["a table that is missing", Object.assign(new Error('relation "slice" does not exist'), { code: "42P01" })],
])("%s ends the run", async (_, error) => {
  const { service } = await serve(answeringJson(200, DAY_ANSWER));
  await expect(readAndStore(service, failingStore(error))).rejects.toBe(error);
});
