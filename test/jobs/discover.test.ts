// How lists of projects are read.

import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { readLists } from "../../src/jobs/discovery.ts";
import { smallConfig } from "../cli/small-config.ts";
import { answer, answerJson, scriptedServer } from "../support/scripted-server.ts";
import { silentApp } from "../support/silent-app.ts";

const KEYS = ["PAUSED", "QUICK"];
const env = Object.fromEntries(KEYS.map((name) => [`${name}_KEY`, `sk_CANARY_0123456789_${name}`]));
const app = silentApp({ env });

test("a pause that the service asks for while a list is read holds the calls with that key alone", async () => {
  const startsMs = new Map(KEYS.map((name): [string, number[]] => [name, []]));
  const times = (name: string) => startsMs.get(name) ?? [];
  await using server = await scriptedServer(({ headers }, response) => {
    const name = KEYS.find((one) => headers.authorization?.endsWith(one)) ?? "";
    times(name).push(performance.now());
    if (name === "PAUSED" && times(name).length === 1) return answer(response, 429, "", { "retry-after": "2" });
    answerJson(response, 200, { projects: [{ project_id: name }] });
  });
  const projects = KEYS.map((name) => ({ discover: true, key: { env: `${name}_KEY` } }));
  const config = parseConfig(JSON.stringify(smallConfig(server.origin, { projects, exports: [{ projects: ["*"] }] })), {
    source: "the test",
    baseDir: "/",
  });

  const lists = await readLists(app, config, undefined);

  expect(lists.map((read) => "listed" in read && read.listed.length)).toEqual([1, 1]);
  const [pausedMs = 0, againMs = 0] = times("PAUSED");
  expect(againMs - pausedMs).toBeGreaterThanOrEqual(2_000);
  expect(Math.max(...times("QUICK"))).toBeLessThan(againMs);
});
