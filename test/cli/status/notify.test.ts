// What `start` sends to the receivers: that days fail, that they were read, and that all is well.

import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { answer, scriptedServer } from "../../support/scripted-server.ts";
import { type ProgramContext, programTest } from "../program-context.ts";
import { serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const NOTIFY = { webhook: { env: "NOTICES_URL" }, deadMan: { env: "ALIVE_URL" } };

/** Starts a server for both receivers. Their addresses contain secrets. */
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

test("the failure and the recovery of a job are one notification each", async ({ context }) => {
  await using received = await receivers(context);
  const emulator = await serveAndConfigure(context, { rest: { notify: NOTIFY } });
  emulator.fault = () => ({ kind: "answer", status: 400, body: "no" });
  // A new worker has its first tick at once, while the next tick of a running one may be a minute away.
  const startAnother = () => context.start(["start"], received.env);
  startAnother();
  await waitForRuns(db, 1);
  startAnother();
  await expect.poll(() => received.texts).toHaveLength(1);
  expect(received.texts[0]).toMatch(
    /^Readings fail since .*; 2 days of 1 project could not be read; .*; the newest error: .*400/,
  );
  expect(received.pings).toEqual([]);

  emulator.fault = undefined;
  // The worker tries failed days again only after a while.
  await sql`update usage_export.slice set attempted_at = attempted_at - interval '1 hour'`.execute(db);
  startAnother();
  await waitForRuns(db, 2);
  startAnother();
  await expect.poll(() => received.pings.length).toBeGreaterThan(0);
  // Another worker may still be sending the notification.
  await expect.poll(() => received.texts).toHaveLength(2);
  expect(received.texts[1]).toMatch(/^Over: failed /);
});
