// The profile `emulator` of docker-compose.yml, from the build to a second start, as a user would run it.

import { randomBytes } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { openTrial } from "./compose.ts";

/** The key that docker-compose.yml gives the emulator. */
const KEY = "key-of-the-trial";
const WORKER = "trial-worker";
/** Refuses connections, as the emulator listens on the loopback of its own container. */
const UNREACHABLE = "http://127.0.0.1:8080";

const password = randomBytes(16).toString("hex");
const programPassword = randomBytes(16).toString("hex");
const { compose, docker, containerOf, query } = await openTrial("emulator", password, programPassword);

beforeAll(async () => {
  await compose("build");
  await compose("up", "-d");
});

afterEach(async ({ task }) => {
  if (task.result?.state === "fail") process.stdout.write(await compose("logs", "--no-color", "--tail", "30"));
});

afterAll(() => compose("down", "--volumes", "--rmi", "local"));

test("the first numbers are stored within half a minute, without any configuration", async () => {
  await expect.poll(() => count("bi.usage_total"), { timeout: 30_000 }).toBeGreaterThan(0);
});

test("the worker answers on this machine that it is ready", async () => {
  const address = (await compose("port", "emulator", "9464")).trim();
  await expect.poll(() => statusOf(`http://${address}/readyz`), { timeout: 30_000 }).toBe(200);

  // The first check comes after half a minute.
  await expect.poll(() => inspect("{{.State.Health.Status}}"), { timeout: 90_000, interval: 500 }).toBe("healthy");
});

test("init calls the service from the container", async () => {
  const init = ["init", "--yes", "--base-url", UNREACHABLE];
  const asked = compose("run", "-T", "--rm", "-e", `USAGE_EXPORT_KEY=${KEY}`, ...init);
  await expect(asked).rejects.toThrow("ECONNREFUSED");
});

test("nothing in the worker's container is root or can write to its files", async () => {
  const worker = await containerOf(WORKER);

  const [, ...processes] = (await docker("top", worker, "-eo", "pid,uid")).trim().split("\n");
  expect(new Set(processes.map((line) => line.trim().split(/\s+/)[1]))).toEqual(new Set(["1000"]));
  for (const folder of ["/", "/app/dist", "/config"]) {
    await expect(docker("exec", worker, "touch", `${folder}/x`)).rejects.toThrow("Read-only file system");
  }
});

test("the program's role owns its tables and views without being a superuser", async () => {
  const wrong = `
    select 'superuser' from pg_roles where rolname = 'usage_exporter' and rolsuper
    union all select oid::regclass::text from pg_class
    where relnamespace in ('bi'::regnamespace, 'usage_export'::regnamespace, 'usage_export_queue'::regnamespace)
      and relowner <> 'usage_exporter'::regrole`;
  expect(await query(wrong)).toBe("");

  await query("alter schema bi owner to usage_export");
  await query("alter view bi.usage_total owner to usage_export");
  await query("alter table usage_export.series owner to usage_export");
  await query("alter role usage_exporter superuser");
  expect(await query(wrong)).not.toBe("");
  await compose("up", "-d", "--force-recreate", "program-role");
  await expect.poll(() => query(wrong), { timeout: 30_000 }).toBe("");
});

test("the key and the database's password are in no log", async () => {
  const log = await compose("logs", "--no-color");

  expect(log).toContain("worker started");
  for (const secret of [KEY, password, programPassword]) expect(log).not.toContain(secret);
});

test("a stopped worker ends before it would be killed", async () => {
  await compose("stop", WORKER);

  expect(await inspect("{{.State.ExitCode}} {{.State.OOMKilled}}")).toBe("0 false");
  expect(await compose("logs", "--no-color", WORKER)).toContain("worker stopped");
});

test("after down and up the numbers are still there", async () => {
  const [rows, runs] = [await count("bi.usage_total"), await count("bi.runs")];

  await compose("down");
  await compose("up", "-d");

  expect(await count("bi.usage_total")).toBeGreaterThanOrEqual(rows);
  await expect.poll(() => count("bi.runs"), { timeout: 90_000, interval: 500 }).toBeGreaterThan(runs);
});

async function count(view: string): Promise<number> {
  return Number(await query(`select count(*) from ${view}`));
}

async function inspect(format: string): Promise<string> {
  return (await docker("inspect", "--format", format, await containerOf(WORKER))).trim();
}

/** undefined while nobody answers. */
async function statusOf(url: string): Promise<number | undefined> {
  try {
    return (await fetch(url)).status;
  } catch {
    return undefined;
  }
}
