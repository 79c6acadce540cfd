import fs from "node:fs";
import path from "node:path";
import { Validator } from "@seriousme/openapi-schema-validator";
import { sql } from "kysely";
import { pino } from "pino";
import { expect, test } from "vitest";
import { z } from "zod";
import { queryAtOneMoment } from "../../src/db/connection/transaction.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { Answer } from "../../src/facts/answer.ts";
import { Secret } from "../../src/secret.ts";
import { openReadApi } from "../../src/web/api.ts";
import { forgetAll, storeSeries } from "../db/reported-usage.ts";
import { daysBack, newProject, nextFetchNo } from "../db/stored-usage.ts";
import { STORABLE_NAMES } from "../show/hostile-names.ts";
import { testDatabase } from "../support/database.ts";
import { openTestMonitor } from "./test-monitor.ts";

const { db } = await testDatabase();
const back = await daysBack(db);

const log = pino({ enabled: false });
const api = openReadApi({ log, version: "1.2.3", queryAtOneMoment: (read) => queryAtOneMoment(db, read) });

async function get(path: string, query: string | Record<string, string> = "", from = api) {
  const response = await from.request(`/api/v1/${path}?${new URLSearchParams(query)}`);
  return { status: response.status, headers: response.headers, body: await response.text() };
}

async function ask(query: string) {
  const { status, body } = await get("usage", query);
  return { status, answer: JSON.parse(body) };
}

/** Usage of this many hours of a model on each day, counted back from today. */
function usageOf(hours: string) {
  return (days: readonly number[], model = "nova-3") =>
    Object.fromEntries(days.map((day) => [back(day), [[model, { hours }] as const]]));
}

async function fail(seriesId: number, day: string): Promise<void> {
  const fetchNo = await nextFetchNo(db);
  await recordFailure(db, { seriesId, days: [day], reason: "the service was away", fetchNo });
}

/** Throws if a field is missing, of another type, or not described. */
function strictAnswer(answer: unknown): Answer {
  return z.strictObject(Answer.shape).parse(answer);
}

const PATHS = ["/api/v1/usage", "/api/v1/usage.csv", "/api/v1/chargeback.csv"];

test("the API answers at its paths, only to those who may see the pages", async () => {
  const access = () => ({ scheme: "Bearer", credentials: new Secret("a-token-of-some-length") }) as const;
  await using monitor = await openTestMonitor({ api: async () => api, access });
  const authorization = { authorization: "Bearer a-token-of-some-length" };
  const document = JSON.parse((await monitor.ask("/api/v1/openapi.json", { headers: authorization })).text);
  expect(Object.keys(document.paths)).toEqual(PATHS);
  for (const one of PATHS) {
    expect(await monitor.ask(one)).toMatchObject({ status: 401 });
    const response = await fetch(monitor.url + one, { headers: authorization });
    expect(response.status).toBe(200);
    const start = Buffer.from(await response.arrayBuffer()).toString("utf8", 0, 3);
    expect(start === "\ufeff", "spreadsheets read a CSV as UTF-8 only with the byte order mark").toBe(
      one.endsWith("csv"),
    );
  }
});

test("the OpenAPI document is valid and complete", async () => {
  const document = JSON.parse((await get("openapi.json")).body);
  expect(await new Validator().validate(document)).toMatchObject({ valid: true });
  const page = fs.readFileSync(path.join(import.meta.dirname, "../../docs/api.md"), "utf8");
  const paths = [...page.matchAll(/^\| `(\/api[^`]+)` \|/gm)].map(([, one]) => one);
  expect(paths.sort()).toEqual([...Object.keys(document.paths), "/api/v1/openapi.json"].sort());
  const { parameters } = document.paths["/api/v1/usage.csv"].get;
  const names = ["project", "metric", "grouping", "no-value", "limit", "rows"];
  for (const name of names)
    expect(parameters).toContainEqual(expect.objectContaining({ name, description: expect.stringMatching(/.{20}/) }));
});

test("an answer names the days and projects that it lacks", async () => {
  await forgetAll(db);
  const [one, other, third] = [newProject(), newProject(), newProject()];
  const usage = usageOf("1.50");
  // The series of `other` begins a day later, so back(6) is unread.
  const dueFrom = (daysAgo: number) => ({ start: back(daysAgo), end: back(1) });
  const [seriesId = 0] = await storeSeries(db, [
    { project: one, grouping: "model", usage: usage([1, 2, 3, 5, 6]), due: dueFrom(6), windowDays: 2 },
    { project: other, grouping: "model", usage: usage([1, 2, 3, 4, 5]), due: dueFrom(5), windowDays: 2 },
    { project: third, grouping: "tags", usage: {}, due: dueFrom(6) },
  ]);
  for (const day of [back(5), back(2)]) await fail(seriesId, day);
  const { answer } = await ask(`from=${back(6)}&to=${back(1)}&compare=none`);
  expect(strictAnswer(answer)).toMatchObject({
    complete: false,
    projectCount: 2,
    days: [
      { day: back(6), state: "unread" },
      { day: back(5), state: "incomplete" },
      { day: back(4), state: "incomplete" },
      { day: back(3), state: "final" },
      { day: back(2), state: "incomplete" },
      { day: back(1), state: "settling" },
    ],
    // Ten readings of 1.5 hours.
    total: { amount: "15", before: null, change: null },
    lacking: { incompleteDays: [back(5), back(4), back(2)], unreadDays: [back(6)], projectsLeftOut: [third.name] },
  });
  const csv = await get("usage.csv", `from=${back(6)}&to=${back(1)}&compare=none&rows=days`);
  expect(csv.headers.get("content-disposition")).toContain(".csv");
  expect(csv.body).toContain(`${back(4)},"incomplete","group","nova-3",1.5,"false",`);
  const only = await ask(`from=${back(3)}&to=${back(1)}&compare=none&project=${other.id}`);
  expect(only.answer).toMatchObject({ complete: true, lacking: { incompleteDays: [] } });
});

test("a project that is no longer exported is named, unless it was read on all of the days", async () => {
  await forgetAll(db);
  const [kept, removed, early] = [newProject(), newProject(), newProject()];
  const [failed, narrowed] = [newProject(), newProject()];
  // `removed` was read until 3 days ago, `early` until 5. The only day of `failed` fails. `narrowed` is later read only by tags.
  const usage = usageOf("1");
  const due = { start: back(6), end: back(1) };
  const [keptId, , , failedId = 0] = await storeSeries(db, [
    { project: kept, grouping: "model", usage: usage([1, 2, 3, 4, 5, 6]), due, windowDays: 1 },
    { project: removed, grouping: "model", usage: usage([3, 4, 5, 6, 7, 8], "old-model"), windowDays: 1 },
    { project: early, grouping: "model", usage: usage([5, 6, 7, 8]), windowDays: 1 },
    { project: failed, grouping: "model", usage: usage([3]), windowDays: 1 },
    { project: narrowed, grouping: "model", usage: usage([7]), windowDays: 1 },
  ]);
  await fail(failedId, back(3));
  // From now on only these are configured.
  const [stillId] = await storeSeries(db, [
    { project: kept, grouping: "model", windowDays: 1 },
    { project: narrowed, grouping: "tags" },
  ]);
  expect(stillId).toBe(keptId);

  const ended = async (query: string) => {
    const { complete, lacking } = strictAnswer((await ask(query)).answer);
    return {
      complete,
      ended: lacking.projectsEnded.toSorted(),
      leftOut: lacking.projectsLeftOut.toSorted(),
      counts: [lacking.projectsEndedCount, lacking.projectsLeftOutCount],
    };
  };
  const named = (...projects: readonly { name: string }[]) => projects.map(({ name }) => name).sort();
  expect(await ended(`from=${back(4)}&to=${back(1)}&compare=none`)).toEqual({
    complete: false,
    ...{ ended: named(removed, failed), leftOut: named(narrowed), counts: [2, 1] },
  });
  // `early` is named, too: usage that only the compared period has would look like a decrease.
  expect(await ended(`from=${back(2)}&to=${back(1)}`)).toEqual({
    complete: false,
    ...{ ended: named(removed, early), leftOut: named(narrowed), counts: [2, 1] },
  });
  // On these days `kept` was not due yet, and readings of projects that are no longer exported do not count for it.
  const { lacking } = strictAnswer((await ask(`from=${back(8)}&to=${back(7)}&compare=none`)).answer);
  expect(lacking.unreadDays).toEqual([back(8), back(7)]);
  // The usage of `removed` on days that were not read is unknown, so it is null and not 0.
  const { groups } = strictAnswer((await ask(`from=${back(2)}&to=${back(1)}`)).answer);
  expect(groups.find(({ group }) => group === "old-model")).toMatchObject({ amount: null, before: "1" });
  expect(await ended(`from=${back(6)}&to=${back(5)}&compare=none&project=${removed.id}`)).toEqual({
    complete: true,
    ...{ ended: [], leftOut: [], counts: [0, 0] },
  });
});

test.each([
  ["hours", "line_item"],
  ["estimated_cost", "tags"],
])("a metric that the grouping does not have gives no groups: %s by %s", async (metric, grouping) => {
  const { status, answer } = await ask(`metric=${metric}&grouping=${grouping}`);
  expect(status).toBe(200);
  expect(answer).toMatchObject({ projectCount: 0, groups: [], complete: false });
});

test.each([
  ["metric=hour", /^metric: Invalid option: expected one of "hours"\|"total_hours"/],
  ["grouping=day", /^grouping: Invalid option: expected one of "none"\|"accessor"/],
  ["limit=1001", "limit: Too big: expected number to be <=1000"],
  ["limit=x", "limit: Invalid input: expected number, received NaN"],
  ["sort=up", /^sort: Invalid option/],
  ["metric=hours&metric=requests", /^metric: Invalid option/],
  ["project=nobody", 'project: no usage of a project "nobody" was ever exported'],
  ["project=prodution", /; did you mean "production"\?$/],
  ["project=twin", /"twin" is the name of several projects; use the identifier of one, such as p-2 or p-3$/],
  ["filter=nothing", 'filter: no usage of a filter "nothing" was ever exported'],
  ["filter=all", /^filter: "all" has no conditions/],
  ["group=a&no-value=yes", "group: expected group or no-value, not both"],
  ["group=a&grouping=none", /^group: expected no group/],
  ["from=2026-02-30&to=2026-03-01", "from: expected a day that exists, as YYYY-MM-DD"],
  ["colour=red", 'Unrecognized key: "colour"'],
])("%s is refused with a message that names the parameter", async (query, message) => {
  await forgetAll(db);
  const twins = ["p-2", "p-3"].map((id) => ({ project: { id, name: "twin" }, grouping: "model" }) as const);
  await storeSeries(db, [{ project: { id: "p-1", name: "production" }, grouping: "model" }, ...twins]);
  const { status, answer } = await ask(query);
  expect(status).toBe(400);
  expect(answer).toEqual({ error: typeof message === "string" ? message : expect.stringMatching(message) });
});

test("hostile names of projects, filters and groups are quoted in the SQL of an answer", async () => {
  await forgetAll(db);
  const names = [...STORABLE_NAMES, "   ", "'", "\\", "\\'; select 1; --", "$1", "?", "/*", "--"];
  const usage = { [back(1)]: names.map((name) => [name, { hours: "1" }] as const) };
  for (const name of names) {
    const series = { project: { id: `id ${name}`, name }, grouping: "model", usage } as const;
    await storeSeries(db, [series, { ...series, filter: { name, features: { a: "true" }, dimensions: {} } }]);
    const query = new URLSearchParams({ project: name, filter: name, group: name, period: "7d" });
    const { status, answer } = await ask(String(query));
    expect([status, answer.total, answer.groups.length]).toEqual([200, { amount: "1", before: null, change: null }, 1]);
    expect(answer.groups[0].group).toBe(name);
    expect(answer.sql).not.toMatch(/[\u202a-\u202e\u2066-\u2069]/);
    const { rows } = await sql.raw<Record<string, string>>(answer.sql).execute(db);
    expect(rows[0]?.group).toBe(name);
  }
});

/** An API that reads by calling `work`, with a time limit of half a second. */
function apiThat(work: (signal: AbortSignal) => Promise<never>) {
  const slow = openReadApi({ log, version: "1", queryAtOneMoment: (_, signal) => work(signal) }, 500);
  return async (query: string) => {
    const { status, headers, body } = await get("usage", query, slow);
    return { status, retryAfter: headers.get("retry-after"), error: JSON.parse(body).error };
  };
}

test("if the database can't be read, the answer is 503 with the reason", async () => {
  const askWithoutDatabase = apiThat(() => Promise.reject(new Error("connect ECONNREFUSED")));
  const error = expect.stringContaining("connect ECONNREFUSED");
  expect(await askWithoutDatabase("")).toEqual({ status: 503, retryAfter: "5", error });
});

test("a question that takes too long and the question that waits behind it both end with 503", async () => {
  let signals: AbortSignal[] = [];
  const askSlow = apiThat((signal) => {
    signals = [...signals, signal];
    return new Promise(() => {});
  });
  const [slow, later] = await Promise.all([askSlow("period=90d"), askSlow("period=7d")]);
  const error = "the usage could not be read: not read within 0.5 s; try again, or ask for fewer days or one project";
  expect(slow).toEqual({ status: 503, retryAfter: "5", error });
  expect(later).toEqual(slow);
  // The first reading is aborted, and the second never begins.
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});
