// An outage is shown once, by its cause, with its start, whether it is tried again and which numbers are shown meanwhile: by `status`,
// on the dashboard and in notifications.

import { sql } from "kysely";
import { expect } from "vitest";
import { freePort } from "../../support/keeper.ts";
import type { Program } from "../../support/program.ts";
import { answer, scriptedServer } from "../../support/scripted-server.ts";
import { breakdowns, waitForRuns, workOnce } from "../evidence.ts";
import { databaseTest } from "../program-context.ts";
import { smallConfig } from "../small-config.ts";

const { test, db } = await databaseTest();

const GROUPINGS = ["none", "endpoint", "method", "model", "tags"];

const urlOf = async (worker: Program): Promise<string> => JSON.parse(await worker.waitFor("monitor listens")).url;

/** The visible text of the page, on one line. */
const visibleText = async (page: Response) => (await page.text()).replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");

test("an unavailable service is shown once, beside the run that is retrying", async ({ context }) => {
  const emulator = await context.setUp({ exports: [{ groupings: GROUPINGS }] });
  await workOnce(context, db);
  // Failed and missing days make the worker catch up. A scheduled run would read its whole window, whatever is due.
  await sql`
    update usage_export.slice set status = 'failed', attempted_at = now() - interval '1 hour', failing_since = now() - interval '1 hour';
    delete from usage_export.slice where usage_date = (select max(usage_date) from usage_export.slice)
  `.execute(db);
  emulator.fault = () => ({ kind: "answer", status: 503 });
  const worker = context.work({ LOG_LEVEL: "debug" });
  const line = JSON.parse(await worker.waitFor("requests failed, to be tried again"));
  expect(line).toMatchObject({ level: 40, code: "unavailable", attempt: 1, attempts: 8 });
  expect(JSON.parse(await worker.waitFor("queue job failed"))).toMatchObject({ level: 20, attempt: 1 });
  const retrying = () => sql`select from usage_export_queue.job where state = 'retry'`.execute(db);
  await expect.poll(async () => (await retrying()).rows.length).toBe(1);

  const { status, stdout } = await context.run(["status"]);
  expect(stdout.match(/^ {2}the service is failing \(503\), first seen .*$/gm)).toEqual([
    expect.stringMatching(
      /first seen 20\S+ \d\d:\d\d UTC: 2 days of 1 project could not be read, so older numbers are shown where there are some; the worker tries again$/,
    ),
  ]);
  expect(stdout).toMatch(/^ {2}last run: running, .*, catchup$/m);
  expect(stdout.match(/the service answered 503/g)).toHaveLength(1);
  expect(status).toBe(1);

  const page = await (await fetch(await urlOf(worker))).text();
  expect(page.match(/The service is failing \(503\), first seen /g)).toHaveLength(1);
  emulator.fault = undefined;
  const [, retried] = await waitForRuns(db, 2);
  expect(retried).toMatchObject({ status: "ok", trigger: "catchup", planned: 10, complete: 10 });
  expect(await context.run(["status"])).toMatchObject({ status: 0 });
});

test("without a worker, status does not say that an unreachable service is tried again", async ({ context }) => {
  await context.configure(smallConfig("http://127.0.0.1:1", { exports: [{ groupings: GROUPINGS }] }));
  await context.run(["export"]);
  expect((await context.run(["status"])).stdout).toMatch(
    /^ {2}the service is not reachable, first seen .* UTC: 2 days of 1 project could not be read, so no numbers are shown$/m,
  );
});

test("a failed run is shown on the dashboard until it has recovered", async ({ context }) => {
  const texts: string[] = [];
  let pings = 0;
  await using receiver = await scriptedServer(({ method, body }, response) => {
    // On a slow machine there may also be notifications about a late worker or job.
    if (method === "POST")
      texts.push(...(JSON.parse(body).text.match(/^(?:Readings fail|Over: failed readings).*/s) ?? []));
    else pings++;
    answer(response, 200, "ok");
  });
  const notify = { webhook: { env: "NOTICES_URL" }, deadMan: { env: "ALIVE_URL" } };
  const emulator = await context.setUp({ notify, exports: [{ groupings: ["none", "endpoint"] }] });
  emulator.fault = ({ path }) =>
    path.includes("endpoint") ? { kind: "answer", status: 400, body: "<b>no</b> such grouping" } : undefined;
  // A new worker notifies at its first tick. A running one may take a minute.
  const startAnother = () =>
    context.work({
      NOTICES_URL: `${receiver.origin}/services/${context.newSecret()}`,
      ALIVE_URL: `${receiver.origin}/${context.newSecret()}`,
    });
  const worker = startAnother();
  const url = await urlOf(worker);
  const counts = { status: "failed", planned: 4, complete: 2, failed: 2 };
  expect(await waitForRuns(db, 1)).toMatchObject([{ ...counts, requests: 2 }]);
  expect(breakdowns(emulator).filter((path) => path.includes("endpoint"))).toHaveLength(1);
  const logged = JSON.parse(await worker.waitFor("run finished"));
  expect(logged).toMatchObject({ ...counts, level: 40, error: expect.stringContaining("such grouping") });

  const response = await fetch(url);
  expect(response.status).toBe(200);
  expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
  expect(await response.clone().text()).toContain("&lt;b&gt;no&lt;/b&gt; such grouping");
  expect(await visibleText(response)).toMatch(
    /, first seen .* UTC: 2 days of 1 project could not be read, so .*; the worker tries again.*such grouping/,
  );
  const health = await visibleText(await fetch(new URL("/data-health", url)));
  expect(health).toMatch(/catching up failed .*2 of 4, 2 failed/);
  expect(health).toMatch(/usage by endpoint, .*: no numbers\. .*such grouping/);
  startAnother();
  await expect.poll(() => texts).toHaveLength(1);
  expect(texts[0]).toMatch(
    /^Readings fail, first seen .*: 2 days of 1 project could not be read, .*; the newest error: .*400/,
  );
  expect(pings).toBe(0);

  emulator.fault = undefined;
  // The worker tries failed days again only after a while.
  await sql`update usage_export.slice set attempted_at = attempted_at - interval '1 hour'`.execute(db);
  startAnother();
  await waitForRuns(db, 2);
  startAnother();
  await expect.poll(() => pings).toBeGreaterThan(0);
  // Another worker may still be sending the notification.
  await expect.poll(() => texts).toHaveLength(2);
  expect(texts[1]).toMatch(/^Over: failed readings: /);
  // The dashboard caches what it reads for some seconds.
  await expect.poll(async () => visibleText(await fetch(url))).toContain("All data up to");
});

test("the dashboard needs the configured password", async ({ context }) => {
  const access = { basic: { username: "ops", password: { env: "MONITOR_PASSWORD" } } };
  // `health` calls the configured port, so that can't be 0.
  await context.setUp({ monitor: { host: "0.0.0.0", port: await freePort(), access } });
  const password = context.newSecret();
  const url = await urlOf(context.work({ MONITOR_PASSWORD: password }));
  await waitForRuns(db, 1);

  const ask = (given: string) =>
    fetch(url, { headers: { authorization: `Basic ${Buffer.from(`ops:${given}`).toString("base64")}` } });
  expect((await fetch(url)).status).toBe(401);
  expect((await ask("wrong")).status).toBe(401);
  const page = await ask(password);
  expect([page.status, await visibleText(page)]).toEqual([200, expect.stringContaining("All data up to")]);
  expect(await context.run(["health"], { MONITOR_PASSWORD: undefined })).toMatchObject({ status: 0, stdout: "ok\n" });
});
