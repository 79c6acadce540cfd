// The service repeats the program's keys in its answers, and no output shows one. After the first test its context searches the database, too.

import { readdir } from "node:fs/promises";
import { test as base, expect } from "vitest";
import { waitForRuns } from "../cli/evidence.ts";
import { databaseTest } from "../cli/program-context.ts";
import { openRotationContext } from "../cli/rotation/rotation-context.ts";
import { ENCODINGS } from "../support/encodings.ts";
import { findLeaks } from "../support/leaks.ts";
import { scriptedServer } from "../support/scripted-server.ts";
import { everyNth, IS_LONG_RUN, TIME_LIMIT } from "./sweep.ts";

const { test, db } = await databaseTest();

/** CI takes only every fourth encoding, because each needs a run of `rotate`. */
const QUOTED_ENCODINGS = everyNth(IS_LONG_RUN ? 1 : 4, Object.entries(ENCODINGS));
/** Makes Node write a diagnostic report on SIGUSR2. A report contains the environment, unless Node is told otherwise. */
const DIAGNOSTICS = "--report-on-signal --report-signal=SIGUSR2 --report-directory=.";

test("keys that the service repeats are in no log, page, notification, file, report or row", async ({ context }) => {
  const notifications: string[] = [];
  await using receiver = await scriptedServer(({ method, target, body }, response) => {
    // The path contains the secret of the receiver's address, so only its beginning is recorded.
    notifications.push(`${method} ${target.split("/").slice(0, 2).join("/")} ${body}`);
    response.end("ok");
  });
  const emulator = await context.setUp({
    exports: [{ groupings: ["none", "endpoint", "tags"] }],
    notify: { webhook: { env: "NOTICES_URL" } },
  });
  const statuses = { none: 400, endpoint: 500, tags: 401 };
  emulator.fault = ({ path }) => {
    const status = Object.entries(statuses).find(([grouping]) => path.includes(`grouping=${grouping}`))?.[1];
    const words = `<b>${context.key}</b> is not ${encodeURIComponent(context.key)}`;
    if (status === undefined) return undefined;
    const headers = { "content-type": "application/json", "dg-request-id": context.key };
    return { kind: "answer", status, headers, body: JSON.stringify({ err_code: context.key, err_msg: words }) };
  };
  const env = { NOTICES_URL: `${receiver.origin}/services/${context.newSecret()}`, NODE_OPTIONS: DIAGNOSTICS };
  const worker = context.start(["start"], env);
  const url = /http:\/\/[^"\s]+/.exec(await worker.waitFor("monitor listens"))?.[0];
  await waitForRuns(db, 1);
  context.start(["start"], env);
  // A worker sends notifications after its first tick, and then once a minute. So the second worker is the first to report the failures.
  await expect.poll(() => notifications.length).toBeGreaterThan(0);

  const texts: Record<string, string> = { notifications: notifications.join("\n") };
  const pages = ["/", "/usage", "/data-health", "/api/v1/usage", "/api/v1/chargeback.csv"];
  for (const path of [...pages, "/report.html", "/livez", "/readyz", "/metrics", "/nowhere"]) {
    texts[path] = await (await fetch(`${url}${path}`)).text();
  }
  worker.kill("SIGUSR2");
  await expect.poll(() => diagnosticsIn(context.folder)).toHaveLength(1);
  for (const args of [...SHOW_ARGS, ...DUMP_ARGS]) texts[args.join(" ")] = JSON.stringify(await context.run(args));

  const requests = emulator.requests.map(({ path }) => ({ target: path, headers: {}, body: "" }));
  expect(await findLeaks([context.key], { texts, folders: [context.folder], requests })).toEqual([]);
  expect(texts["/data-health"]).toContain("[secret]");
});

base("a key that a gateway quotes or a delivery command prints is shown and stored nowhere", TIME_LIMIT, async () => {
  await using context = await openRotationContext();
  for (const [, encode] of QUOTED_ENCODINGS) {
    context.proxy.quote = (secret) => `made ${encode(secret)}`;
    expect((await context.run(["rotate", "--now"])).stdout).toContain("the service answered 502");
  }
  context.proxy.quote = undefined;
  await context.configure({ deliver: [{ command: ["sh", "-c", "cat; cat >&2; exit 1"] }] });
  expect((await context.run(["rotate", "--now"])).stdout).toContain("ended with 1");
  for (const args of [["dump", "--view", "api_keys"], ...SHOW_ARGS]) await context.run(args);
  expect(await context.leaks({ databaseUrl: context.databaseUrl })).toEqual([]);
});

const SHOW_ARGS = [
  ["status"],
  ["status", "--json"],
  ["keys", "--json"],
  ["jobs", "--json"],
  ["check"],
  ["report", "--out", "report.html"],
];
const DUMP_ARGS = [
  ["dump", "--view", "runs", "--format", "jsonl"],
  ["dump", "--view", "coverage", "--out", "coverage.csv"],
];

async function diagnosticsIn(folder: string): Promise<readonly string[]> {
  return (await readdir(folder)).filter((name) => name.startsWith("report.") && name.endsWith(".json"));
}
