// A worker reads projects with different keys. Many keys are paused by the service, and the calls of a project hang: neither holds back the
// others. The test's service is the judge.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { Program } from "../../support/program.ts";
import { answer, answerJson, scriptedServer } from "../../support/scripted-server.ts";
import { programTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";
import { farSchedule, manyFilters, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const test = programTest(database);

const FILTERS = 30;
/** More than the eight requests that a worker with the default `maxConcurrent` has ready at once. */
const PAUSED = Array.from({ length: 9 }, (_, i) => `paused-${i}`);
const PROJECTS = [...PAUSED, "quick", "slow", "swift"];

async function openJudge() {
  const slow = Promise.withResolvers<void>();
  const calls = new Map(PROJECTS.map((id) => [id, 0]));
  const server = await scriptedServer(({ target }, response) => {
    const url = new URL(target, "http://service");
    const [, , , id = ""] = url.pathname.split("/");
    const number = (calls.get(id) ?? 0) + 1;
    if (!target.includes("/usage/breakdown")) return answerJson(response, 404, {});
    calls.set(id, number);
    if (PAUSED.includes(id) && number === 1) return answer(response, 429, "", { "retry-after": "20" });
    const window = { start: url.searchParams.get("start"), end: url.searchParams.get("end") };
    const results = [{ requests: 5, grouping: { ...window, accessor: url.searchParams.get("accessor") } }];
    const held = id === "slow" && number > 1 ? slow.promise : undefined;
    void Promise.resolve(held).then(() => answerJson(response, 200, { ...window, results }));
  });
  return { server, answerSlow: slow.resolve, total: (id: string) => calls.get(id) ?? 0 };
}

test("paused keys and a project whose calls hang leave the calls of other projects as they were", async ({
  context,
}) => {
  const judge = await openJudge();
  await using server = judge.server;
  const projects = PROJECTS.map((id) => ({ id, name: id, key: { file: `${id}.key` } }));
  for (const id of PROJECTS) {
    await writeFile(path.join(context.folder, `${id}.key`), context.newSecret(`${id}.key`));
  }
  const job = { schedule: farSchedule(), window: { days: 1 }, checkFeatures: "off", filters: manyFilters(FILTERS) };
  const config = smallConfig(server.origin, { projects, exports: [{ ...job, projects: ["*"] }] });
  await context.configure({ ...config, monitor: { port: 0 } });
  const worker = context.start(["start"], { USAGE_EXPORT_KEY: undefined });
  // Before the server is closed, which waits for the worker's calls.
  await using _ended = { [Symbol.asyncDispose]: () => end(worker) };
  const { total } = judge;

  await expect.poll(() => Math.min(total("quick"), total("swift"))).toBe(FILTERS);
  // Nobody waited for the end of a pause.
  expect(Math.max(...PAUSED.map(total))).toBeLessThan(FILTERS);
  // Only the first call of the slow project has been answered, and one of the four slots is left to the others.
  expect(total("slow")).toBeLessThanOrEqual(4);
  const status = await context.run(["status"], { USAGE_EXPORT_KEY: undefined });
  expect(status.stdout).toMatch(
    /calls with the key of file .*paused-0\.key are paused until \d{4}-.* UTC, as the service/,
  );
  judge.answerSlow();
  expect(await waitForRuns(database.db, 1)).toMatchObject([{ status: "ok" }]);
  // All that was answered with 429 is read, and nothing twice. Calls may have been on their way when the first was answered.
  for (const id of PAUSED) expect(total(id)).toBe(FILTERS + 1);
});

async function end(worker: Program): Promise<void> {
  worker.kill("SIGTERM");
  await worker.ended;
}
