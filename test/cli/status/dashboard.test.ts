// The dashboard of a worker: what it shows about a failed run, and to whom it is shown.

import { once } from "node:events";
import { createServer } from "node:net";
import { sql } from "kysely";
import { expect } from "vitest";
import { testDatabase } from "../../support/database.ts";
import type { Program } from "../../support/program.ts";
import { programTest } from "../program-context.ts";
import { serveAndConfigure, waitForRuns } from "../workers.ts";

const database = await testDatabase();
const { db } = database;
const test = programTest(database);

const BASIC = { basic: { username: "ops", password: { env: "MONITOR_PASSWORD" } } };

async function urlOf(worker: Program): Promise<string> {
  const line = await worker.waitFor("monitor listens");
  return /http:\/\/[^"\s]+/.exec(line)?.[0] ?? "";
}

/** The visible text of the page, on one line. */
async function read(response: Response): Promise<string> {
  return textOf(await response.text());
}

function textOf(page: string): string {
  return page.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
}

test("the dashboard shows a failed run until it has recovered", async ({ context }) => {
  const emulator = await serveAndConfigure(context, { exports: [{ groupings: ["none", "endpoint"] }] });
  emulator.fault = ({ path }) =>
    path.includes("endpoint") ? { kind: "answer", status: 400, body: "<b>no</b> such grouping" } : undefined;
  const worker = context.start(["start"]);
  const url = await urlOf(worker);
  await waitForRuns(db, 1);

  const response = await fetch(`${url}/`);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  const page = await response.text();
  expect(page).toContain("&lt;b&gt;no&lt;/b&gt; such grouping");
  expect(textOf(page)).toMatch(
    / since .* UTC; 2 days of 1 project could not be read; the worker tries again.*such grouping/,
  );
  expect(await read(await fetch(`${url}/data-health`))).toMatch(/catching up failed .*2 of 4, 2 failed/);
  const gap = /usage by endpoint, .*: no numbers\. .*such grouping/;
  expect(await read(await fetch(`${url}/data-health`))).toMatch(gap);

  emulator.fault = undefined;
  // The worker tries failed days again only after a while.
  await sql`update usage_export.slice set attempted_at = attempted_at - interval '1 hour'`.execute(db);
  context.start(["start"]);
  await waitForRuns(db, 2);
  // The dashboard caches what it reads for some seconds.
  await expect.poll(async () => read(await fetch(`${url}/`))).toContain("All data up to");
});

test("the dashboard needs the configured password, and health checks do not", async ({ context }) => {
  const port = await freePort();
  const monitor = { host: "0.0.0.0", port, access: BASIC };
  await serveAndConfigure(context, { rest: { monitor } });
  const password = context.newSecret();
  const worker = context.start(["start"], { MONITOR_PASSWORD: password });
  const url = await urlOf(worker);
  await waitForRuns(db, 1);

  const right = Buffer.from(`ops:${password}`).toString("base64");
  const ask = (authorization?: string) => fetch(`${url}/`, authorization ? { headers: { authorization } } : {});
  expect((await ask()).status).toBe(401);
  expect((await ask("Basic b3BzOm5v")).status).toBe(401);
  const page = await ask(`Basic ${right}`);
  expect([page.status, await read(page)]).toEqual([200, expect.stringContaining("All data up to")]);
  expect(await context.run(["health"], { MONITOR_PASSWORD: undefined })).toMatchObject({ status: 0, stdout: "ok\n" });
});

test("an address that other machines reach needs a password, or the word none", async ({ context }) => {
  const monitor = { host: "0.0.0.0", port: 0 };
  await serveAndConfigure(context, { rest: { monitor } });
  const says = expect.stringMatching(/monitor\.host.*other machines reach "0\.0\.0\.0": set "access" beside it/);
  expect(await context.run(["start"])).toMatchObject({ status: 2, stderr: says });
  await serveAndConfigure(context, { rest: { monitor: { ...monitor, access: "none" } } });
  const url = await urlOf(context.start(["start"]));
  expect((await fetch(url)).status).toBe(200);
  expect((await fetch(`${url}/metrics`)).status).toBe(200);
});

/** A free port for the configuration: `health` calls the configured port, so that can't be 0. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
