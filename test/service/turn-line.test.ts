// The places of a process and how they go from call to call, with the clock and the database played by the test.

import { expect, test } from "vitest";
import { openTurnLine, type TurnAnswer } from "../../src/service/shared-rate-limiter.ts";

const GO: TurnAnswer = { outcome: "turn", wait: 0 };
const BUSY: TurnAnswer = { outcome: "busy", wait: 1 };
const NEVER = new AbortController().signal;

type Asked = { readonly ended: readonly string[]; readonly waiting: readonly string[]; readonly ahead: number };

/** A database with one place, which gives `aheadMs` turns ahead. All pauses last until `pass`, or until there is news. */
function onePlace(aheadMs: readonly number[]) {
  const asked: Asked[] = [];
  const clock = { nowMs: 1_000 };
  let taken: string | undefined;
  const pauses: (() => void)[] = [];
  let during = () => {};
  const line = openTurnLine(
    async (calls) => {
      asked.push(calls);
      during();
      if (taken !== undefined && calls.ended.includes(taken)) taken = undefined;
      const answers = calls.waiting.map((callId) => {
        taken ??= callId;
        return taken === callId ? GO : BUSY;
      });
      return { answers, aheadMs: aheadMs.slice(0, calls.ahead) };
    },
    60_000,
    () => clock.nowMs,
    (_ms, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      pauses.push(resolve);
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      return promise;
    },
  );
  /** Once. */
  const whileAsking = (what: () => void) => {
    during = () => {
      during = () => {};
      what();
    };
  };
  const pass = () => pauses.splice(0).forEach((over) => void over());
  return { line, asked, clock, pass, whileAsking };
}

/** All that can happen without a pause has happened. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

/** One has the place, and the other waits for it. */
async function oneAndOther(aheadMs: readonly number[]) {
  const context = onePlace(aheadMs);
  const { name } = await context.line.wait("one", NEVER);
  const other = context.line.wait("other", NEVER);
  await settled();
  return { ...context, name, other };
}

test("where a turn was given ahead the place goes to the next call without asking, which is told later", async () => {
  const { line, asked, name, other, pass } = await oneAndOther([0]);
  const before = asked.length;
  const told = line.end(name);
  expect(await other).toEqual({ name: "one", waitMs: 0 });
  expect(asked).toHaveLength(before);
  pass();
  await told;
  expect(asked.at(-1)).toMatchObject({ ended: ["other"], waiting: [] });
  expect([...line.places]).toEqual(["one"]);
});

test("a turn that was given ahead is not used before its time", async () => {
  const { line, name, other, clock } = await oneAndOther([40]);
  clock.nowMs += 10;
  void line.end(name);
  expect(await other).toEqual({ name: "one", waitMs: 30 });
});

test("a turn that was given ahead and not used in time is void: the place is given back and asked for", async () => {
  const { line, asked, name, other, clock } = await oneAndOther([0]);
  clock.nowMs += 200;
  void line.end(name);
  expect(await other).toEqual({ name: "other", waitMs: 0 });
  expect(asked.at(-1)).toMatchObject({ ended: ["one"], waiting: ["other"] });
});

test("what the service asks for makes the turns void that were given ahead", async () => {
  const { line, name, other } = await oneAndOther([0]);
  line.forgetAhead();
  void line.end(name);
  expect(await other).toEqual({ name: "other", waitMs: 0 });
});

test("turns given ahead by an answer that was under way when the service asked for a wait are void", async () => {
  const { line, whileAsking } = onePlace([0]);
  const { name } = await line.wait("one", NEVER);
  whileAsking(() => line.forgetAhead());
  const other = line.wait("other", NEVER);
  await settled();
  void line.end(name);
  expect(await other).toEqual({ name: "other", waitMs: 0 });
});

test("a turn that was given while the service asked for a wait is void, and is asked for again", async () => {
  const { line, asked, whileAsking } = onePlace([]);
  whileAsking(() => line.forgetAhead());
  await line.wait("one", NEVER);
  expect(asked.map(({ waiting }) => waiting)).toEqual([["one"], ["one"]]);
});

test("a place without a call waits a moment for the next one", async () => {
  const { line, asked, name, other } = await oneAndOther([0, 0]);
  void line.end(name);
  const place = await other;
  const kept = line.end(place.name);
  const before = asked.length;
  expect(await line.wait("third", NEVER)).toMatchObject({ name: "one" });
  await kept;
  expect(asked).toHaveLength(before);
});

test("a place for which nobody comes is given back after that moment", async () => {
  const { line, asked, name, other, pass } = await oneAndOther([0, 0]);
  void line.end(name);
  const told = line.end((await other).name);
  await settled();
  pass();
  await settled();
  pass();
  await told;
  expect(asked.at(-1)?.ended).toContain("one");
  expect([...line.places]).toEqual([]);
});

test("a place without a call is given back at once where no call comes any more", async () => {
  const { line, asked, name, other } = await oneAndOther([0, 0]);
  void line.end(name);
  const told = line.end((await other).name);
  line.close();
  await told;
  expect(asked.at(-1)?.ended).toContain("one");
});

test("turns are asked for ahead only while there is somebody to use them", async () => {
  const { asked } = await oneAndOther([]);
  expect(asked.map(({ waiting, ahead }) => [waiting, ahead])).toEqual([
    [["one"], 0],
    [["other"], 4],
  ]);
});

test("a wait that ended with the database is no part of the wait of a later call", async () => {
  const clock = { nowMs: 0 };
  const told: string[] = [];
  const answers = [BUSY, new Error("away"), BUSY];
  const line = openTurnLine(
    async ({ waiting }) => {
      const answer = answers.shift() ?? GO;
      if (answer instanceof Error) throw answer;
      return { answers: waiting.map(() => answer), aheadMs: [] };
    },
    60_000,
    () => clock.nowMs,
    async () => {},
    (wait, seconds) => told.push(`${wait} ${seconds}`),
  );
  await expect(line.wait("one", NEVER)).rejects.toThrow("away");
  await settled();
  clock.nowMs += 20 * 60 * 60_000;
  expect(await line.wait("other", NEVER)).toEqual({ name: "other", waitMs: 0 });
  expect(told).toEqual([]);
});
