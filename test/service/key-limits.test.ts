// The limits of single keys, as the service sees them.

import { expect, test } from "vitest";
import { sleep } from "../../src/async.ts";
import type { KeyLimit } from "../../src/rate-share.ts";
import { Secret } from "../../src/secret.ts";
import type { ServiceCall } from "../../src/service/service.ts";
import { answer, answerJson, scriptedServer } from "../support/scripted-server.ts";
import { limit, openTestService } from "./open-test-service.ts";

const READ: ServiceCall = { method: "GET", path: ["v1", "projects", "p1", "usage", "breakdown"], retry: true };
const REAL_TIME = { now: () => performance.now(), sleep, random: () => 0 };

/** A service that answers each key of `pausedKeys` with 429 once, and takes 20 ms for an answer. */
async function openKeys(names: readonly KeyLimit[], pausedKeys: readonly string[] = []) {
  const startsMs = new Map<string, number[]>();
  const server = await scriptedServer(({ headers }, response) => {
    const name = names.find((one) => headers.authorization?.endsWith(keyText(one)))?.name ?? "";
    const starts = [...(startsMs.get(name) ?? []), performance.now()];
    startsMs.set(name, starts);
    if (pausedKeys.includes(name) && starts.length === 1) answer(response, 429, "", { "retry-after": "1" });
    else setTimeout(() => answerJson(response, 200, {}), 20);
  });
  const keys = new Map(names.map((one) => [new Secret(keyText(one)), one]));
  const service = openTestService(server.origin, {}, { ...REAL_TIME, limitOf: (key) => keys.get(key) });
  const call = (name: string) => {
    const [key] = [...keys].find(([, one]) => one.name === name) ?? [];
    if (!key) throw new Error(`no key ${name}`);
    return service.call(READ, key, limit());
  };
  const times = (name: string) => startsMs.get(name) ?? [];
  const close = async () => {
    await service.close();
    await server[Symbol.asyncDispose]();
  };
  return { call, times, [Symbol.asyncDispose]: close };
}

function keyText({ name }: KeyLimit): string {
  return `sk_CANARY_0123456789_${name}`;
}

test("a 429 to one key pauses that key alone, for the whole time that the service asked for", async () => {
  await using keys = await openKeys([{ name: "a" }, { name: "b" }], ["a"]);
  const paused = keys.call("a");
  await expect.poll(() => keys.times("a").length).toBe(1);
  const others = await Promise.all([keys.call("b"), keys.call("b"), keys.call("a")]);
  await paused;
  expect(others).toHaveLength(3);
  const [first = 0, ...later] = keys.times("a");
  expect(later).toHaveLength(2);
  expect(Math.min(...later) - first).toBeGreaterThanOrEqual(1_000);
  expect(Math.max(...keys.times("b")) - first).toBeLessThan(500);
});

test("however many keys are answered with 429 at the same time, calls with another key go on", async () => {
  const limited = ["a", "b", "c", "d"];
  await using keys = await openKeys(
    [...limited, "good"].map((name) => ({ name })),
    limited,
  );
  const paused = limited.map((name) => keys.call(name));
  await expect.poll(() => limited.every((name) => keys.times(name).length === 1)).toBe(true);
  // The answer to the last of them may still be on its way.
  await sleep(50, limit());
  await keys.call("good");
  await Promise.all(paused);
  expect((keys.times("good")[0] ?? 0) - (keys.times("d")[0] ?? 0)).toBeLessThan(500);
});

test("a key keeps its own rate and cap while another key is as fast as the service allows", async () => {
  await using keys = await openKeys([{ name: "a", requestsPerSecond: 10, maxConcurrent: 1 }, { name: "b" }]);
  const ofA = Promise.all(Array.from({ length: 8 }, () => keys.call("a")));
  await Promise.all(Array.from({ length: 40 }, () => keys.call("b")));
  const bEndedMs = performance.now();
  await ofA;
  const starts = keys.times("a");
  expect(starts.at(-1) ?? 0).toBeGreaterThan(bEndedMs);
  // Seven intervals of 100 ms; the first call may have taken long to arrive.
  expect((starts.at(-1) ?? 0) - (starts[0] ?? 0)).toBeGreaterThan(500);
});
