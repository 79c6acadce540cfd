// The pace of a service that several processes call, each on connections of its own.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { sql } from "kysely";
import { expect, onTestFinished, test } from "vitest";
import { type Database, openPostgres } from "../../src/db/connection/database.ts";
import {
  holdCalls,
  keepTurns,
  pausedUntil,
  resumeCalls,
  type ServicePace,
  type TurnAnswer,
  takeTurns,
} from "../../src/db/rate-limit.ts";
import { testDatabase } from "../support/database.ts";

const { db, url } = await testDatabase();

/** A service of its own for each test. */
function paceOf(part: Partial<ServicePace> = {}): ServicePace {
  return { service: `https://${randomUUID()}.test`, requestsPerSecond: 1000, maxConcurrent: 4, ...part };
}

function connections(count: number): readonly Database[] {
  return Array.from({ length: count }, () => {
    const connection = openPostgres(url);
    onTestFinished(() => connection.destroy());
    return connection;
  });
}

async function takeTurn(db: Database, pace: ServicePace, callId: string): Promise<TurnAnswer> {
  const { answers } = await takeTurns(db, pace, { ended: [], waiting: [callId], ahead: 0 });
  if (!answers[0]) throw new Error("no answer");
  return answers[0];
}

async function giveBack(pace: ServicePace, callId: string): Promise<void> {
  await takeTurns(db, pace, { ended: [callId], waiting: [], ahead: 0 });
}

/** When each call that has a turn has it, in milliseconds after the first. */
async function turns({ service }: ServicePace): Promise<readonly number[]> {
  const { rows } = await sql<{ ms: number }>`
    select extract(epoch from turn_at - min(turn_at) over ())::float8 * 1000 as ms
    from usage_export.service_call where service = ${service} and turn_at is not null order by turn_at
  `.execute(db);
  return rows.map(({ ms }) => Math.round(ms));
}

test("turns are handed out evenly by the rate, whoever asks for them", async () => {
  const pace = paceOf({ requestsPerSecond: 20, maxConcurrent: 100 });
  await Promise.all(
    connections(3).map(async (connection) => {
      for (let i = 0; i < 10; i++) await takeTurn(connection, pace, randomUUID());
    }),
  );
  const times = await turns(pace);
  expect(times).toHaveLength(30);
  const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  expect(Math.min(...gaps)).toBeGreaterThanOrEqual(49);
});

test("no more calls have a place at once than may, whoever asks for them", async () => {
  const pace = paceOf({ maxConcurrent: 4 });
  const answers = await Promise.all(
    connections(3).flatMap((connection) => Array.from({ length: 5 }, () => takeTurn(connection, pace, randomUUID()))),
  );
  expect(answers.filter(({ outcome }) => outcome === "turn")).toHaveLength(4);
  expect(answers.filter(({ outcome }) => outcome === "busy")).toHaveLength(11);
});

test("a place that is given back goes to the call that waits longest", async () => {
  const pace = paceOf({ maxConcurrent: 1 });
  const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
  await takeTurn(db, pace, first);
  expect(await takeTurn(db, pace, second)).toEqual({ outcome: "busy", wait: 1 });
  expect(await takeTurn(db, pace, third)).toEqual({ outcome: "busy", wait: 2 });
  await giveBack(pace, first);
  expect(await takeTurn(db, pace, third)).toMatchObject({ outcome: "busy" });
  expect(await takeTurn(db, pace, second)).toMatchObject({ outcome: "turn" });
});

test("a call that asks again keeps its turn and hears what is left to wait", async () => {
  const pace = paceOf({ requestsPerSecond: 1 });
  await takeTurn(db, pace, randomUUID());
  const call = randomUUID();
  const { wait } = await takeTurn(db, pace, call);
  expect(wait).toBeGreaterThan(900);
  await sleep(50);
  const again = await takeTurn(db, pace, call);
  expect(again.outcome).toBe("turn");
  expect(again.wait).toBeLessThan(wait - 40);
  expect(await turns(pace)).toHaveLength(2);
});

test("after a time without calls there is no burst", async () => {
  const pace = paceOf({ requestsPerSecond: 20, maxConcurrent: 10 });
  await takeTurn(db, pace, randomUUID());
  await sql`update usage_export.service_pace set next_at = now() - interval '1 hour' where service = ${pace.service}`.execute(
    db,
  );
  await takeTurn(db, pace, randomUUID());
  const { wait } = await takeTurn(db, pace, randomUUID());
  expect(wait).toBeGreaterThan(20);
});

test("a call whose process says nothing any more loses its place, and one that does keeps it", async () => {
  const pace = paceOf({ maxConcurrent: 2 });
  const [silent, alive] = [randomUUID(), randomUUID()];
  await takeTurn(db, pace, silent);
  await takeTurn(db, pace, alive);
  await sql`update usage_export.service_call set until = now() - interval '1 second' where service = ${pace.service}`.execute(
    db,
  );
  await keepTurns(db, [alive]);
  expect(await takeTurn(db, pace, randomUUID())).toMatchObject({ outcome: "turn" });
  expect(await takeTurn(db, pace, randomUUID())).toMatchObject({ outcome: "busy" });
});

test("while the service wants no call nobody has a turn, and a shorter wait does not end a longer one", async () => {
  const pace = paceOf();
  await holdCalls(db, pace.service, 60_000);
  await holdCalls(db, pace.service, 1_000);
  const answer = await takeTurn(db, pace, randomUUID());
  expect(answer.outcome).toBe("held");
  expect(answer.wait).toBeGreaterThan(50_000);
});

test("services do not wait for each other", async () => {
  const one = paceOf({ maxConcurrent: 1 });
  await takeTurn(db, one, randomUUID());
  expect(await takeTurn(db, paceOf({ maxConcurrent: 1 }), randomUUID())).toMatchObject({ outcome: "turn" });
});

test("calls that ask together are served in their order, and take the places that are given back with them", async () => {
  const pace = paceOf({ maxConcurrent: 2, requestsPerSecond: 100 });
  const [one, two, three, four] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const asked = await takeTurns(db, pace, { ended: [], waiting: [one, two, three], ahead: 0 });
  expect(asked.answers).toMatchObject([
    { outcome: "turn", wait: 0 },
    { outcome: "turn", wait: 10 },
    { outcome: "busy", wait: 1 },
  ]);
  const later = await takeTurns(db, pace, { ended: [one], waiting: [four, three], ahead: 0 });
  expect(later.answers).toMatchObject([{ outcome: "busy", wait: 1 }, { outcome: "turn" }]);
});

test("turns are given ahead for as long as they come soon, and count for the rate", async () => {
  const pace = paceOf({ maxConcurrent: 1, requestsPerSecond: 100 });
  const { aheadMs } = await takeTurns(db, pace, { ended: [], waiting: [randomUUID()], ahead: 3 });
  expect(aheadMs).toEqual([10, 20, 30]);
  const soon = await takeTurns(db, pace, { ended: [], waiting: [], ahead: 1_000 });
  expect(soon.aheadMs.length).toBeGreaterThan(3);
  expect(Math.max(...soon.aheadMs)).toBeLessThan(100);
  expect(Math.max(...soon.aheadMs)).toBeGreaterThan(80);
});

test("no turn is given ahead while a call of somebody else waits", async () => {
  const pace = paceOf({ maxConcurrent: 1 });
  const [mine, theirs, next] = [randomUUID(), randomUUID(), randomUUID()];
  await takeTurn(db, pace, mine);
  await takeTurn(db, pace, theirs);
  expect(await takeTurns(db, pace, { ended: [], waiting: [next], ahead: 5 })).toMatchObject({ aheadMs: [] });
  expect(await takeTurns(db, pace, { ended: [theirs], waiting: [next], ahead: 5 })).toMatchObject({
    aheadMs: { length: 5 },
  });
});

test("a clock that is set back makes no wait longer than it was, and ends none before", async () => {
  const pace = paceOf({ requestsPerSecond: 2, maxConcurrent: 2 });
  await holdCalls(db, pace.service, 60_000);
  await sql`update usage_export.service_pace set held_until = held_until + interval '1 day'`.execute(db);
  const { outcome, wait } = await takeTurn(db, pace, randomUUID());
  expect(outcome).toBe("held");
  expect(wait).toBeGreaterThan(50_000);
  expect(wait).toBeLessThanOrEqual(60_000);
  expect((await pausedUntil(db, pace.service))?.getTime()).toBeLessThan(Date.now() + 61_000);
  expect(await resumeCalls(db, pace.service)).toBeInstanceOf(Date);

  const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
  for (const call of [first, second]) expect(await takeTurn(db, pace, call)).toMatchObject({ outcome: "turn" });
  expect(await takeTurn(db, pace, third)).toMatchObject({ outcome: "busy" });
  await sql`update usage_export.service_pace set next_at = next_at + interval '1 day'`.execute(db);
  await sql`
    update usage_export.service_call
    set asked_at = asked_at + interval '1 day', turn_at = turn_at + interval '1 day', until = until + interval '1 day'
  `.execute(db);
  const answers = await Promise.all([first, second].map((call) => takeTurn(db, pace, call)));
  expect(answers.map(({ outcome }) => outcome)).toEqual(["turn", "turn"]);
  expect(Math.max(...answers.map(({ wait }) => wait))).toBeLessThan(2_000);
  const times = await turns(pace);
  expect(times[1]).toBeGreaterThanOrEqual(500);
  // Whoever asked before the step is served before those who came after it.
  const newcomer = randomUUID();
  await takeTurn(db, pace, newcomer);
  await giveBack(pace, first);
  expect(await takeTurn(db, pace, newcomer)).toMatchObject({ outcome: "busy" });
  expect(await takeTurn(db, pace, third)).toMatchObject({ outcome: "turn" });
});
