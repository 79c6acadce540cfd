// Which days are judged unusual, and when an anomaly ends. The tests run on each kind of database.

import { sql } from "kysely";
import { beforeAll, expect, test } from "vitest";
import { judgePendingDays, openAnomalies } from "../../src/db/anomalies.ts";
import type { Database } from "../../src/db/connection/database.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import type { Day } from "../../src/usage/days.ts";
import type { AnomalySettings } from "../../src/usage/metrics.ts";
import type { Project } from "../../src/usage/series.ts";
import { daysBack, newSeries, store, UNGUARDED, type Usage, view } from "./stored-usage.ts";

const SETTINGS: AnomalySettings = { sensitivity: "normal" };
const WINDOW_DAYS = 3;

export function testAnomalies(db: Database): void {
  let back: (days: number) => Day;
  beforeAll(async () => {
    back = await daysBack(db);
  });

  /** A series of totals as in storeDays. `to` is by default 4, the newest final day. */
  async function seriesWith(amounts: Readonly<Record<number, string>>, from = 70, to = WINDOW_DAYS + 1) {
    const stored = await newSeries(db, "none", { windowDays: WINDOW_DAYS });
    await storeDays(stored.seriesId, amounts, from, to);
    return stored;
  }

  /** Stores the requests of the days from `from` to `to` days ago: those in `amounts`, by days ago, or else 1000. */
  async function storeDays(seriesId: number, amounts: Readonly<Record<number, string>>, from: number, to: number) {
    const days = Array.from({ length: from - to + 1 }, (_, n) => from - n);
    const usage: Usage = Object.fromEntries(days.map((n) => [back(n), { requests: amounts[n] ?? "1000" }]));
    await store(db, seriesId, usage, UNGUARDED);
  }

  /** The amount of each day up to 70 days ago. */
  const everyDay = (amount: string) => Object.fromEntries(Array.from({ length: 71 }, (_, n) => [n, amount]));

  const judge = (settings = SETTINGS) => judgePendingDays(db, settings);
  const anomaliesOf = (project: Project) => view(db, "usage_anomalies", project);

  /** Makes every verdict older, as if this time had passed. */
  async function letPass(hours: number) {
    await sql`update usage_export.judged_day set judged_at = judged_at - make_interval(hours => ${hours})`.execute(db);
  }

  async function openIn(project: Project) {
    return (await inTransaction(db, openAnomalies)).filter((one) => one.project === project.name);
  }

  test("at first only the newest final day is judged", async () => {
    const { project, seriesId } = await seriesWith({ 4: "5000", 9: "5000", 20: "5000" });
    expect(await judge()).toEqual([
      { project: project.name, filter: "all", day: back(4), verdict: "high", metric: "requests", isFinal: true },
    ]);
    expect(await judge()).toEqual([]);
    const high = { direction: "high", metric: "requests", amount: "5000", expected: "1000.000000" };
    expect(await anomaliesOf(project)).toMatchObject([{ ...high, usage_date: back(4), is_open: true }]);
    // Nobody waits for a later day of a project that is not exported any more.
    await sql`update usage_export.series set retired_at = now() where series_id = ${seriesId}`.execute(db);
    expect(await openIn(project)).toEqual([]);
  });

  test("a day's expected amount is by its weekday in the eight weeks before, without the day itself", async () => {
    const { project } = await seriesWith({ 4: "5000", 11: "500", 18: "500", 25: "500", 60: "500" });
    await judge();
    // Half of those weekdays have 500, so the weekday's share is midway between 1/13 and 1/7: 20/27 of any other day's.
    expect(await anomaliesOf(project)).toMatchObject([{ expected: "740.740741" }]);
  });

  test("a day that is not final is called high only beyond a wider band", async () => {
    const { project, seriesId } = await seriesWith({}, 70, 4);
    expect(await judge()).toHaveLength(1);
    for (const [i, verdict] of ["normal", "not judged", "high"].entries()) {
      await storeDays(seriesId, { 3: "1340", 2: "100", 1: "5000" }, 3 - i, 3 - i);
      expect(await judge()).toMatchObject([{ day: back(3 - i), verdict, isFinal: false }]);
    }
    expect(await judge()).toEqual([]);
    expect(await anomaliesOf(project)).toMatchObject([{ usage_date: back(1), is_open: true, finality: "settling" }]);
  });

  test("a day that has become final is judged once more", async () => {
    const { project, seriesId } = await seriesWith({}, 70, 4);
    await judge();
    for (const n of [3, 2]) {
      await storeDays(seriesId, { 3: "1340", 2: "5000" }, n, n);
      await judge();
    }
    await letPass(48);
    const [{ judged_at: first } = {}] = await anomaliesOf(project);
    await sql`update usage_export.series set window_days = 1 where series_id = ${seriesId}`.execute(db);
    const judged = (await judge()).map(({ day, verdict, isFinal }) => `${day} ${verdict} ${isFinal}`);
    expect(judged.sort()).toEqual([`${back(3)} high true`, `${back(2)} high true`]);
    const found = await anomaliesOf(project);
    expect(found).toMatchObject([{ finality: "final" }, { finality: "final" }]);
    const sameTime = found.filter(({ judged_at }) => String(judged_at) === String(first));
    expect(sameTime).toMatchObject([{ usage_date: back(2) }]);
  });

  test("a day that was read only shortly after its end is not judged until it is read again", async () => {
    const { project, seriesId } = await seriesWith({}, 70, 6);
    await judge();
    await storeDays(seriesId, { 5: "100" }, 5, 4);
    await sql`
      update usage_export.slice set fetched_at = (usage_date + 1)::timestamp at time zone 'UTC' + interval '2 hours'
      where series_id = ${seriesId} and usage_date = (now() at time zone 'UTC')::date - 5
    `.execute(db);
    expect(await judge()).toMatchObject([{ day: back(4), verdict: "normal" }]);
    expect(await anomaliesOf(project)).toEqual([]);
    await storeDays(seriesId, {}, 5, 5);
    expect(await judge()).toMatchObject([{ day: back(5), verdict: "normal" }]);
  });

  test.each([
    ["tier=gold", 1],
    ["accessor=gold", 0],
  ])("a filter named like a filter of a fan-out is not judged (%j: %j days)", async (name, count) => {
    const filter = { name, features: { diarize: "true" }, dimensions: {} };
    const { seriesId } = await newSeries(db, "none", { windowDays: WINDOW_DAYS, filter });
    await storeDays(seriesId, {}, 70, 4);
    expect(await judge()).toHaveLength(count);
  });

  test("all days that have become final are judged together", async () => {
    const { project, seriesId } = await seriesWith({}, 70, 9);
    await judge();
    await storeDays(seriesId, { 6: "10" }, 8, 4);
    const judged = (await judge()).map(({ day, verdict }) => [day, verdict]);
    expect(judged.sort()).toEqual([8, 7, 6, 5, 4].map((n) => [back(n), n === 6 ? "low" : "normal"]));
    await storeDays(seriesId, { 12: "9999" }, 12, 12);
    expect(await judge()).toEqual([]);
    expect(await anomaliesOf(project)).toHaveLength(1);
  });

  test("a restated day is not judged again", async () => {
    const { project, seriesId } = await seriesWith({ 4: "5000" });
    await judge();
    await storeDays(seriesId, { 4: "1000" }, 4, 4);
    expect(await judge()).toEqual([]);
    expect(await anomaliesOf(project)).toMatchObject([{ amount: "5000" }]);
  });

  test("processes that judge at the same time store one verdict", async () => {
    const { project } = await seriesWith({ 4: "5000" });
    const results = await Promise.all([judge(), judge(), judge()]);
    expect(results.flat()).toHaveLength(1);
    expect(await anomaliesOf(project)).toHaveLength(1);
  });

  test("of several metrics the one that is furthest off is stored", async () => {
    const usual = { requests: "1000", hours: "50", tts_characters: "7" };
    const unusual = { requests: "1400", hours: "500", tts_characters: "99" };
    const usage = Object.fromEntries(Array.from({ length: 60 }, (_, n) => [back(n + 4), n === 0 ? unusual : usual]));
    const { project, seriesId } = await newSeries(db, "none", { windowDays: WINDOW_DAYS, usage });
    expect(await judge()).toMatchObject([{ verdict: "high", metric: "hours" }]);
    expect(await anomaliesOf(project)).toMatchObject([{ amount: "500" }]);
    // More hours of the newest day may still come, so 0 hours are not called low.
    await store(db, seriesId, { [back(1)]: { requests: "1800", hours: "0" } });
    expect(await judge()).toMatchObject([{ day: back(1), verdict: "high", metric: "requests" }]);
  });

  test("too little usage and too short a history are not judged", async () => {
    await seriesWith({ ...everyDay("9"), 4: "90" });
    expect(await judge()).toMatchObject([{ verdict: "not judged" }]);
    await seriesWith({ 4: "5000" }, 30, 4);
    expect(await judge()).toMatchObject([{ verdict: "not judged" }]);
    await seriesWith({ 4: "5000" }, 33, 4);
    expect(await judge()).toMatchObject([{ verdict: "high" }]);
  });

  test("a day without usage is unusual only in a series with usage", async () => {
    const { seriesId } = await seriesWith({}, 70, 5);
    await store(db, seriesId, { [back(4)]: {} });
    expect(await judge()).toMatchObject([{ verdict: "low", metric: "requests" }]);
    await seriesWith(everyDay("0"));
    expect(await judge()).toMatchObject([{ verdict: "not judged", metric: null }]);
  });

  test("once anomalies are on again, only the newest final day is judged", async () => {
    const { seriesId } = await seriesWith({}, 70, 16);
    await judge();
    await sql`update usage_export.judged_day set usage_date = usage_date - 10`.execute(db);
    await storeDays(seriesId, { 6: "9999" }, 15, 4);
    expect(await judge({ ...SETTINGS, sensitivity: "off" })).toEqual([]);
    expect(await judge()).toMatchObject([{ day: back(4), verdict: "normal" }]);
  });

  test("an anomaly ends with a later usual day, at the earliest after half a day", async () => {
    const { project, seriesId } = await seriesWith({ 8: "5000" }, 70, 8);
    await judge();
    await storeDays(seriesId, {}, 7, 6);
    await judge();
    expect(await openIn(project)).toHaveLength(1);
    await letPass(20);
    expect(await openIn(project)).toHaveLength(1);
    await storeDays(seriesId, {}, 5, 5);
    await judge();
    expect(await openIn(project)).toEqual([]);
    expect(await anomaliesOf(project)).toMatchObject([{ is_open: false }]);
  });

  test("only the verdicts on usual days are removed after two months", async () => {
    const { project, seriesId } = await seriesWith({ 4: "5000" });
    await judge();
    await letPass(24 * 100);
    await sql`
      insert into usage_export.judged_day (project_id, filter_key, usage_date, series_id, verdict, judged_at, is_final)
      select ${project.id}, '{}', (now() at time zone 'UTC')::date - back, ${seriesId}, verdict, now() - interval '61 days', true
      from (values (70, 'normal'), (69, 'not judged'), (68, 'high'), (63, 'normal')) as old (back, verdict)
    `.execute(db);
    await storeDays(seriesId, {}, 3, 3);
    await sql`update usage_export.series set window_days = 2 where series_id = ${seriesId}`.execute(db);
    await judge();
    const { rows } = await sql<{ day: string }>`
      select usage_date::text as day from usage_export.judged_day where project_id = ${project.id} order by day
    `.execute(db);
    expect(rows.map(({ day }) => day)).toEqual([back(68), back(4), back(3)]);
  });

  test("an anomaly without a later usual day ends after 14 days", async () => {
    const { project, seriesId } = await seriesWith({ 4: "5000" });
    await judge();
    // A usual day of a filter says nothing of the project.
    await sql`
      insert into usage_export.judged_day (project_id, filter_key, usage_date, series_id, verdict, judged_at, is_final)
      values (${project.id}, 'other', ${back(3)}, ${seriesId}, 'normal', now() + interval '13 hours', true)
    `.execute(db);
    await letPass(13 * 24);
    expect(await openIn(project)).toHaveLength(1);
    await letPass(2 * 24);
    expect(await openIn(project)).toEqual([]);
  });

  test("after a step the days are unusual until more than half of two weeks have the new level", async () => {
    const { seriesId } = await seriesWith({}, 90, 14);
    await judge();
    await storeDays(seriesId, everyDay("3000"), 13, 4);
    const verdicts = (await judge()).toSorted((a, b) => (a.day < b.day ? -1 : 1)).map(({ verdict }) => verdict);
    expect(verdicts).toEqual([...Array(8).fill("high"), ...Array(2).fill("normal")]);
  });
}
