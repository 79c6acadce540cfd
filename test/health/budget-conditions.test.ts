// Notifications about budgets: each threshold is notified once a period, even if numbers are corrected or caught up, or workers restart.

import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import type { Budget } from "../../src/config/money.ts";
import { databaseNow } from "../../src/db/connection/database.ts";
import { storeBudgets } from "../../src/db/prices-and-budgets.ts";
import { addDays, type Day, dayOf } from "../../src/usage/days.ts";
import { store, total } from "../db/stored-usage.ts";
import { testDatabase } from "../support/database.ts";
import { type NotifierFixture, openNotifierFixture } from "./test-notifier.ts";

const { db, read } = await testDatabase();
const today = dayOf(await databaseNow(db));
const MONTH = `${today.slice(0, 7)}-01`;

beforeEach(async () => {
  await sql`truncate usage_export.configured, usage_export.budget, usage_export.notice`.execute(db);
});

/** Stores a budget of 100 hours for the fixture's project. */
async function setBudget({ seriesId }: NotifierFixture, part: Partial<Budget> = {}): Promise<void> {
  const { rows } = await sql<{ id: string }>`
    select project_id as id from usage_export.series where series_id = ${seriesId}
  `.execute(db);
  const budget: Budget = {
    ...{ name: "limit", projects: rows.map(({ id }) => ({ id, name: id })), scope: "all" },
    ...{ scopeValue: undefined, metric: "hours", amount: "100", period: "month" },
    ...{ thresholds: ["80", "100"], from: MONTH },
    ...part,
  };
  await storeBudgets(db, [budget]);
}

/** Stores the hours of a day, by default the first of the month. */
async function storeHours({ seriesId }: NotifierFixture, hours: string, day: Day = MONTH): Promise<void> {
  await store(db, seriesId, [total(day, { hours })], { grouping: "none", cliffGuard: "off" });
}

/** Ticks two workers, and then two new ones: what is not stored is forgotten in between. */
async function tickTwice(fixture: NotifierFixture): Promise<void> {
  for (let i = 0; i < 2; i++) await fixture.tickAll();
}

test("each threshold is notified once, even if corrected numbers are below it for a while", async () => {
  await using fixture = await openNotifierFixture(db);
  await setBudget(fixture);
  await storeHours(fixture, "79.999");
  await tickTwice(fixture);
  expect(fixture.texts).toEqual([]);

  await storeHours(fixture, "80");
  await tickTwice(fixture);
  expect(fixture.texts).toEqual([
    expect.stringMatching(`^Budget limit \\(${MONTH.slice(0, 7)}\\) reached 80%: 80 of 100 hours \\(80%\\)`),
  ]);
  await storeHours(fixture, "120.5");
  await tickTwice(fixture);
  await storeHours(fixture, "130");
  await tickTwice(fixture);
  expect(fixture.texts.slice(1)).toEqual([expect.stringMatching(/ reached 100%: 121 of 100 hours \(120%\)/)]);

  await storeHours(fixture, "50");
  await tickTwice(fixture);
  await storeHours(fixture, "130");
  await tickTwice(fixture);
  expect(fixture.texts).toHaveLength(2);
});

test("each caught-up day over its budget is notified once, even if it is read again days later", async () => {
  await using fixture = await openNotifierFixture(db);
  await setBudget(fixture, { period: "day", thresholds: ["100"], from: addDays(today, -60) });
  await sql`update usage_export.budget set recorded_at = now() - interval '60 days'`.execute(db);
  const days = [40, 39, 38].map((back) => addDays(today, -back));
  const [first = "", below = "", last = ""] = days;
  await storeHours(fixture, "150", first);
  await storeHours(fixture, "99", below);
  await storeHours(fixture, "150", last);
  await tickTwice(fixture);
  expect(fixture.texts).toEqual(
    [first, last].map((day) => expect.stringContaining(`Budget limit (${day}) reached 100%`)),
  );

  const { seriesId } = fixture;
  await read(sql`update usage_export.slice set fetched_at = now() - interval '4 days' where series_id = ${seriesId}`);
  await tickTwice(fixture);
  for (const day of [first, last]) await storeHours(fixture, "160", day);
  await tickTwice(fixture);
  expect(fixture.texts.slice(2)).toEqual([]);
});

test("records of budget notifications are deleted after 400 days", async () => {
  await using fixture = await openNotifierFixture(db);
  await setBudget(fixture, { period: "day", thresholds: ["100"], from: addDays(today, -450) });
  await sql`update usage_export.budget set recorded_at = now() - interval '450 days'`.execute(db);
  for (const back of [449, 40]) await storeHours(fixture, "150", addDays(today, -back));
  await sql`
    insert into usage_export.notice (subject, state, since, claim) values
      (${`budget limit ${addDays(today, -449)} 100`}, 'wrong', now() - interval '449 days', gen_random_uuid()),
      ('budget limit 2020-01 100', 'wrong', now() - interval '300 days', gen_random_uuid())
  `.execute(db);
  await tickTwice(fixture);
  expect(fixture.texts).toEqual([expect.stringContaining(`(${addDays(today, -40)}) reached 100%`)]);
  const { rows } = await sql<{ subject: string }>`select subject from usage_export.notice order by subject`.execute(db);
  const kept = [`budget limit ${addDays(today, -40)} 100`, "budget limit 2020-01 100"];
  expect(rows.map(({ subject }) => subject)).toEqual(kept.sort());
});

test("two thresholds reached at once give one notification", async () => {
  await using fixture = await openNotifierFixture(db);
  await setBudget(fixture, { period: "day", from: addDays(today, -2), amount: "200" });
  await sql`update usage_export.budget set recorded_at = now() - interval '60 days'`.execute(db);
  await setBudget(fixture, { period: "day", from: addDays(today, -2) });
  await storeHours(fixture, "150", addDays(today, -2));
  await storeHours(fixture, "150", today);
  await tickTwice(fixture);
  expect(fixture.texts).toEqual([expect.stringContaining(`Budget limit (${today}) reached 100%`)]);
});

test("if budgets and anomalies can't be read, a failed export is notified all the same", async () => {
  await using fixture = await openNotifierFixture(db);
  await setBudget(fixture);
  await fixture.endRun("failed", "no answer");
  await sql`alter view usage_export.budget_period rename to moved`.execute(db);
  await sql`alter view bi.usage_anomalies rename to moved`.execute(db);
  try {
    await tickTwice(fixture);
  } finally {
    await sql`alter view usage_export.moved rename to budget_period`.execute(db);
    await sql`alter view bi.moved rename to usage_anomalies`.execute(db);
  }
  expect(fixture.texts).toEqual([expect.stringContaining(`Export ${fixture.name} failed`)]);
});
