// A pace that is kept elsewhere, with the place it is kept at played by the test.

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { openSharedPace, type TurnAnswer, type Turns } from "../../src/service/shared-rate-limiter.ts";

const GO: TurnAnswer = { outcome: "turn", wait: 0 };
const NEVER = new AbortController().signal;

/** Answers as told, and after that lets everybody go at once. A pause passes at once, unless there is news before. */
function play(answers: readonly (TurnAnswer | Error)[]) {
  const left = [...answers];
  const said = { asked: [] as string[], givenBack: [] as string[], held: [] as number[], slept: [] as number[] };
  const turns: Turns = {
    async take({ ended, waiting }) {
      said.givenBack.push(...ended);
      said.asked.push(...waiting);
      const given = waiting.map(() => {
        const answer = left.shift() ?? GO;
        if (answer instanceof Error) throw answer;
        return answer;
      });
      return { answers: given, aheadMs: [] };
    },
    async keep() {},
    async hold(ms) {
      // Slower than the other statements.
      await sleep(20);
      said.held.push(ms);
    },
  };
  const pause = async (ms: number, signal: AbortSignal) => {
    // What happens in the same moment happens before.
    await new Promise((resolve) => setImmediate(resolve));
    signal.throwIfAborted();
    said.slept.push(ms);
  };
  const pace = openSharedPace(turns, 60_000, () => 0, pause);
  return { pace, said };
}

test("a call that has its turn at once does not wait, and gives its place back when it is over", async () => {
  const { pace, said } = play([]);
  const leave = await pace.enter(NEVER);
  expect(said).toMatchObject({ slept: [], givenBack: [] });
  leave();
  await pace.close();
  expect(said.givenBack).toEqual(said.asked);
});

test("a call waits for its turn and asks again, as the service may have asked for a longer wait", async () => {
  const { pace, said } = play([
    { outcome: "turn", wait: 200 },
    { outcome: "held", wait: 2000 },
    { outcome: "turn", wait: 0 },
  ]);
  await pace.enter(NEVER);
  expect(said.slept).toEqual([200, 2000]);
  expect(new Set(said.asked).size).toBe(1);
});

test("the further away a place is, the later it is asked for again", async () => {
  const { pace, said } = play([1, 3, 100].map((wait) => ({ outcome: "busy", wait }) as const));
  await pace.enter(NEVER);
  expect(said.slept).toEqual([25, 75, 250]);
});

test("a wait that is too long is not waited out, and takes no place", async () => {
  const { pace, said } = play([{ outcome: "held", wait: 60_001 }]);
  await expect(pace.enter(NEVER)).rejects.toMatchObject({ code: "rate_limited", details: { askedSeconds: 61 } });
  await pace.close();
  expect(said.givenBack).toEqual(said.asked);
});

test("a call that is aborted while it waits gives back what it asked for", async () => {
  const stop = new AbortController();
  const { pace, said } = play([{ outcome: "busy", wait: 1 }]);
  stop.abort(new Error("stopped"));
  await expect(pace.enter(stop.signal)).rejects.toThrow("stopped");
  await pace.close();
  expect(said.givenBack).toHaveLength(1);
});

test("a question that fails fails those who asked it only", async () => {
  const { pace } = play([new Error("no database")]);
  await expect(pace.enter(NEVER)).rejects.toThrow("no database");
  await expect(pace.enter(NEVER)).resolves.toBeTypeOf("function");
});

test("calls that come at the same time ask together, in their order", async () => {
  const { pace, said } = play([GO, { outcome: "busy", wait: 2 }, { outcome: "busy", wait: 3 }]);
  await Promise.all([pace.enter(NEVER), pace.enter(NEVER), pace.enter(NEVER)]);
  expect(said.slept).toEqual([50]);
  expect(said.asked.slice(3)).toEqual(said.asked.slice(1, 3));
});

test("no turn is asked for before all know what the service asked for", async () => {
  const { pace, said } = play([]);
  pace.hold(7000);
  const entered = pace.enter(NEVER);
  expect(said.held).toEqual([]);
  await entered;
  expect(said.held).toEqual([7000]);
});

test("what the service asks for is told to all", async () => {
  const { pace, said } = play([]);
  pace.hold(7000);
  await pace.close();
  expect(said.held).toEqual([7000]);
});
