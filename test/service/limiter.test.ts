// Calls of one process, as the service sees them: pauses of keys, and the room that a project leaves to the others.

import { expect, test } from "vitest";
import { sleep } from "../../src/async.ts";
import type { ServiceCall } from "../../src/service/service.ts";
import { answer, answerJson, scriptedServer } from "../support/scripted-server.ts";
import { KEY, openTestService } from "./open-test-service.ts";

const REAL_TIME = { now: () => performance.now(), sleep, random: () => 0 };

/** Calls `/v1/projects/NAME` with a key of that name. A project of `paused` is answered with 429 once, one of `stuck` never. */
async function openProjects({ paused = [], stuck = [] }: { paused?: readonly string[]; stuck?: readonly string[] }) {
  const startsMs = new Map<string, number[]>();
  const server = await scriptedServer(({ target }, response) => {
    const name = target.split("/")[3] ?? "";
    const starts = [...(startsMs.get(name) ?? []), performance.now()];
    startsMs.set(name, starts);
    if (paused.includes(name) && starts.length === 1) answer(response, 429, "", { "retry-after": "1" });
    else if (!stuck.includes(name)) answerJson(response, 200, {});
  });
  const service = openTestService(server.origin, {}, REAL_TIME);
  const over = new AbortController();
  const call = (name: string) => {
    const read: ServiceCall = { method: "GET", path: ["v1", "projects", name], retry: true };
    return service.call(read, KEY.named(`env ${name}`), over.signal);
  };
  const times = (name: string) => startsMs.get(name) ?? [];
  const close = async () => {
    over.abort(new Error("the test is over"));
    await service.close();
    await server[Symbol.asyncDispose]();
  };
  return { call, times, [Symbol.asyncDispose]: close };
}

test("a 429 pauses the calls with that key alone, for the whole time that the service asked for", async () => {
  const limited = ["a", "b", "c", "d"];
  await using projects = await openProjects({ paused: limited });
  const paused = limited.map((name) => projects.call(name));
  await expect.poll(() => limited.every((name) => projects.times(name).length === 1)).toBe(true);
  await Promise.all([projects.call("good"), projects.call("good")]);
  await Promise.all(paused);
  expect((projects.times("good")[0] ?? 0) - (projects.times("d")[0] ?? 0)).toBeLessThan(500);
  for (const name of limited) {
    const [first = 0, second = 0, ...more] = projects.times(name);
    expect(second - first).toBeGreaterThanOrEqual(1_000);
    expect(more).toEqual([]);
  }
});

test("while a project whose calls are never answered has most slots, the others get those that become free", async () => {
  await using projects = await openProjects({ stuck: ["stuck"] });
  for (let i = 0; i < 3; i++) projects.call("stuck").catch(() => {});
  await expect.poll(() => projects.times("stuck").length).toBe(3);
  const good = Array.from({ length: 10 }, () => projects.call("good"));
  for (let i = 0; i < 3; i++) projects.call("stuck").catch(() => {});
  const other = projects.call("other");
  await Promise.all([...good, other]);
  expect(projects.times("stuck").length).toBe(3);
});
