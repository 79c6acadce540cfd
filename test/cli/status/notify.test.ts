// Whom `start` tells what: a job that fails, that it works again, and that all is well.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { answer, scriptedServer } from "../../support/scripted-server.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

/** A program takes a second or two to start. */
const NOTIFY = { webhook: { env: "NOTICES_URL" }, deadMan: { env: "ALIVE_URL" } };

/** Two addresses that nobody may see. */
async function receivers(context: ProgramContext) {
  const texts: string[] = [];
  const pings: string[] = [];
  const server = await scriptedServer(({ method, body }, response) => {
    if (method === "POST") texts.push(JSON.parse(body).text);
    else pings.push(method);
    answer(response, 200, "ok");
  });
  const env = {
    NOTICES_URL: `${server.origin}/services/${context.newSecret()}`,
    ALIVE_URL: `${server.origin}/${context.newSecret()}`,
  };
  return { texts, pings, env, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

test("a failing job is one notification, its recovery another, and then that all is well", async ({ context }) => {
  await using told = await receivers(context);
  const emulator = await serveAndConfigure(context, { rest: { notify: NOTIFY } });
  emulator.fault = () => ({ kind: "answer", status: 400, body: "no" });
  // The next tick of a worker is a minute away; that of a new one is not.
  const startAnother = () => context.start(["start"], told.env);
  startAnother();
  await waitForRuns(db, 1);
  startAnother();
  await expect.poll(() => told.texts).toHaveLength(1);
  expect(told.texts[0]).toMatch(
    /^Export nightly failed .* \(catchup\): 2 of 2 slices not read\. The first error: .*400/,
  );
  expect(told.pings).toEqual([]);

  emulator.fault = undefined;
  await sql`update usage_export.slice set attempted_at = attempted_at - interval '1 hour'`.execute(db);
  startAnother();
  await waitForRuns(db, 2);
  startAnother();
  await expect.poll(() => told.pings.length).toBeGreaterThan(0);
  // Another worker may be at it.
  await expect.poll(() => told.texts).toHaveLength(2);
  expect(told.texts[1]).toMatch(/^Export nightly works again/);
});

test("an address that can't be read is refused at the start, with its path and without its value", async ({
  context,
}) => {
  await serveAndConfigure(context, { rest: { notify: NOTIFY } });
  const env = { NOTICES_URL: `http://hooks.example.com/${context.newSecret()}` };
  for (const args of [["start"], ["check", "--offline"]]) {
    expect(await context.run(args, env)).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringMatching(
        /^usage-export: notify\.webhook: environment variable NOTICES_URL begins with http:.*\nnotify\.deadMan: environment variable ALIVE_URL is not set/,
      ),
    });
  }
});

test("`check` says that the addresses can be read, and sends nothing", async ({ context }) => {
  await using told = await receivers(context);
  await serveAndConfigure(context, { rest: { notify: NOTIFY } });
  const { status, stdout } = await context.run(["check"], told.env);
  expect(stdout).toContain("  ok   notify.webhook: its address can be read; nothing was sent there\n");
  expect(stdout).toContain("  ok   notify.deadMan: its address can be read; nothing was sent there\n");
  expect(status).toBe(0);
  expect({ texts: told.texts, pings: told.pings }).toEqual({ texts: [], pings: [] });
});
