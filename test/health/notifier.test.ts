// Workers together send each notification, report and ping once, even if a receiver, a worker or the database fails.

import os from "node:os";
import { sql } from "kysely";
import { beforeEach, expect, test } from "vitest";
import { openPostgres } from "../../src/db/connection/database.ts";
import { inTransaction } from "../../src/db/connection/transaction.ts";
import { lockJob, markScheduled } from "../../src/db/jobs/jobs.ts";
import { recordFailure } from "../../src/db/usage/failures.ts";
import { farSchedule } from "../cli/small-config.ts";
import { daysBack, nextFetchNo, setDue, store, total } from "../db/stored-usage.ts";
import { startPostgresFront } from "../faults/postgres-front.ts";
import { testDatabase } from "../support/database.ts";
import { type NotifierFixture, openNotifierFixture, SECRET } from "./test-notifier.ts";

const { db } = await testDatabase();
const { db: broken, url: brokenUrl } = await testDatabase();

// Otherwise each test would also send that the alerts of earlier tests are over.
beforeEach(async () => {
  await sql`truncate usage_export.configured, usage_export.notice, usage_export.series cascade`.execute(db);
});

const DAY_MS = 24 * 60 * 60 * 1000;

test("two workers together send one notification when a job fails", async () => {
  await using fixture = await openNotifierFixture(db);
  const workers = [fixture.notifier(), fixture.notifier()];
  const tickAll = () => fixture.tickAll(workers);
  await tickAll();
  expect(fixture.texts).toEqual([]);

  await fixture.endRun("failed", `the service does not know ${SECRET}`);
  await tickAll();
  await tickAll();
  await fixture.endRun("failed", "the service answered 500");
  await tickAll();
  expect(fixture.texts).toEqual([
    expect.stringMatching(`^Export ${fixture.name} failed .*does not know \\[secret\\]$`),
  ]);

  await fixture.endRun("ok");
  await tickAll();
  await tickAll();
  expect(fixture.texts.slice(1)).toEqual([`Over: export ${fixture.name}.`]);
});

test("two workers send a due report of seven days once, even if the receiver was away at first", async () => {
  await using fixture = await openNotifierFixture(db, { notify: { webhook: { env: "HOOK" }, report: "* * * * *" } });
  const back = await daysBack(db);
  const totals = [total(back(1), { hours: "2.5" }), total(back(7), { hours: "10" }), total(back(8), { hours: "100" })];
  await store(db, fixture.seriesId, totals, { grouping: "none" });
  const workers = [fixture.notifier(), fixture.notifier()];
  const tickAll = () => fixture.tickAll(workers);
  const reports = () => fixture.texts.filter((text) => text.includes("12.5 hours"));
  fixture.status = 503;
  await tickAll();
  expect(reports()).toEqual([]);
  fixture.status = 200;
  await tickAll();
  await tickAll();
  // The report is due every minute, and another minute may have begun.
  expect(reports()).toHaveLength(await countSentReports());
  expect(reports().length).toBeLessThan(3);
  expect(reports()[0]).toMatch(/12\.5 hours\.$/);
});

async function countSentReports(): Promise<number> {
  const sent = sql`select from usage_export.notice where subject like 'report %' and state = 'wrong'`;
  return (await sent.execute(db)).rows.length;
}

test("a weekly report that was missed for days is not sent", async () => {
  const weekday = new Date(Date.now() - 3 * DAY_MS).getUTCDay();
  await using fixture = await openNotifierFixture(db, {
    notify: { webhook: { env: "HOOK" }, report: `0 0 * * ${weekday}` },
  });
  await fixture.notifier().tick();
  expect(await countSentReports()).toBe(0);
});

test.each([
  [{}, `usage-export on ${os.hostname()}`],
  [{ publicUrl: "https://a.example:8443/b/" }, "usage-export at a.example:8443, https://a.example:8443/b/"],
])("with monitor %j a notification names its sender, even if its text is cut", async (monitor, signature) => {
  await using fixture = await openNotifierFixture(db, { monitor });
  await fixture.endRun("failed", "x".repeat(1000));
  await fixture.notifier().tick();
  expect(fixture.signatures).toEqual([signature]);
});

test("a receiver that answers 503 at first gets the notification later", async () => {
  await using fixture = await openNotifierFixture(db);
  const worker = fixture.notifier();
  await fixture.endRun("failed", "no");
  fixture.status = 503;
  for (let i = 0; i < 3; i++) await worker.tick();
  expect(fixture.texts).toEqual([]);

  fixture.status = 200;
  for (let i = 0; i < 3; i++) await worker.tick();
  expect(fixture.texts).toHaveLength(1);
  expect(worker.lines.map((line) => JSON.parse(line).msg)).toEqual([
    "notification not sent, will be retried",
    "receiver reached again",
    "notification sent",
  ]);
  expect(worker.lines[0]).toContain("notify.webhook answered 503");
  expect(worker.lines.join("")).not.toContain("127.0.0.1");
});

test("if a worker stops while it sends a notification, another worker can send it at once", async () => {
  await using fixture = await openNotifierFixture(db);
  const stop = new AbortController();
  const stopping = fixture.notifier("webhook", stop.signal);
  await fixture.endRun("failed", "no");
  fixture.status = undefined;
  const ticked = stopping.tick();
  await expect.poll(() => fixture.requests).toHaveLength(1);
  stop.abort(new Error("the worker stops"));
  await ticked;
  expect(stopping.lines).toEqual([]);

  fixture.status = 200;
  await fixture.notifier().tick();
  expect(fixture.texts).toHaveLength(1);
});

test("ticks that can't read the database log the failure once", async () => {
  await using fixture = await openNotifierFixture(db);
  const worker = fixture.notifier();
  await sql`alter table usage_export.notice rename to notice_away`.execute(db);
  for (let i = 0; i < 2; i++) await worker.tick();
  await sql`alter table usage_export.notice_away rename to notice`.execute(db);
  expect(worker.lines).toEqual([expect.stringMatching(/relation .*notice.* does not exist/)]);
});

/** Makes the last three days due and stores only the newest, so that two are missing. */
async function storeWithGaps({ seriesId }: NotifierFixture): Promise<void> {
  const back = await daysBack(db);
  await setDue(db, [seriesId], back(3), back(1));
  await store(db, seriesId, [total(back(1), { requests: "1" })], { grouping: "none" });
}

test("missing and failed days are notified once", async () => {
  await using fixture = await openNotifierFixture(db);
  await storeWithGaps(fixture);
  const back = await daysBack(db);
  const fetchNo = await nextFetchNo(db);
  await recordFailure(db, { seriesId: fixture.seriesId, days: [back(2)], fetchNo, reason: "down" });
  for (let i = 0; i < 2; i++) await fixture.notifier().tick();
  expect(fixture.texts).toEqual([
    "Usage of 1 project was due and never read: usage-export status says which",
    expect.stringMatching(
      /^Readings fail, first seen .*: 1 day of 1 project could not be read, .*; the newest error: down$/,
    ),
  ]);

  const answers = [3, 2].map((days) => total(back(days), { requests: "1" }));
  await store(db, fixture.seriesId, answers, { grouping: "none" });
  for (let i = 0; i < 2; i++) await fixture.notifier().tick();
  expect(fixture.texts.slice(2)).toEqual(["Over: missing usage.", "Over: failed readings: other."]);
});

test.each([
  ["not notified while the next tick is about to plan a run", "* * * * *", 90_000, 0],
  ["notified while the job is overdue", farSchedule(), 2 * DAY_MS, 1],
  ["notified while the job is overdue, even if a run was planned minutes ago", "* * * * *", 5 * 60_000, 1],
])("missing days are %s", async (_, schedule, plannedAgoMs, notifications) => {
  await using fixture = await openNotifierFixture(db, { schedule });
  await storeWithGaps(fixture);
  const job = { kind: "export", name: fixture.name } as const;
  await inTransaction(db, async (tx) => {
    await lockJob(tx, job);
    await markScheduled(tx, job, new Date(Date.now() - plannedAgoMs));
  });
  await fixture.notifier().tick();
  expect(fixture.texts).toHaveLength(notifications);
});

test("the dead man's switch is pinged only while no slice is failed", async () => {
  await using fixture = await openNotifierFixture(db);
  const { tick } = fixture.notifier("deadMan");
  for (let i = 0; i < 5; i++) await tick();
  // A new minute may have begun during the ticks; then there are two pings.
  expect(fixture.requests.length).toBeLessThanOrEqual(2);
  expect(fixture.requests[0]).toBe("GET /deadMan");

  const pings = fixture.requests.length;
  const day = (await daysBack(db))(1);
  const { seriesId } = fixture;
  await recordFailure(db, { seriesId, days: [day], fetchNo: await nextFetchNo(db), reason: "down" });
  await fixture.notifier("deadMan").tick();
  expect(fixture.requests).toHaveLength(pings);

  await store(db, seriesId, [total(day, { requests: "1" })], { grouping: "none" });
  await fixture.notifier("deadMan").tick();
  expect(fixture.requests).toHaveLength(pings + 1);
});

test("an error after an outage of the database is logged", async () => {
  await using front = await startPostgresFront(brokenUrl);
  await using behindFront = openPostgres(front.url);
  await using fixture = await openNotifierFixture(behindFront);
  const worker = fixture.notifier();
  front.cut();
  await worker.tick();
  expect(worker.lines).toEqual([]);
  front.restore();
  await sql`alter table usage_export.notice rename to lost`.execute(broken);
  for (let i = 0; i < 2; i++) await worker.tick();
  expect(worker.lines).toEqual([expect.stringContaining("alerts not evaluated")]);
});
