// How a changed configuration is noticed and checked while the worker runs: the files of a real folder, and every way in which they change.

import { mkdir, rename, rm, symlink, writeFile } from "node:fs/promises";
import path from "node:path";
import { test as base, expect } from "vitest";
import { openApp } from "../../src/app.ts";
import { loadForWorker, openReloader } from "../../src/worker/reload.ts";
import { smallConfig } from "../cli/small-config.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const READ_EVERY_MS = 10;
const ENV = { USAGE_EXPORT_KEY: "0123456789abcdef0123456789abcdef", LOG_LEVEL: "fatal" };

/** A configuration that differs from others by its rate. */
function configText(requestsPerSecond: number, rest: object = {}): string {
  return JSON.stringify({ ...smallConfig("http://127.0.0.1:1", { service: { requestsPerSecond } }), ...rest });
}

async function openFolder(folder: string) {
  const file = path.join(folder, "jobs.config.json");
  // Replaces the file in one step, so that the reloader never reads half of it.
  const write = async (text: string) => {
    await writeFile(`${file}.new`, text);
    await rename(`${file}.new`, file);
  };
  await write(configText(1));
  const app = await openApp(ENV, file, new AbortController().signal);
  let outage: Error | undefined;
  let outagesMet = 0;
  const requireStartable = async () => {
    if (!outage) return;
    outagesMet++;
    throw outage;
  };
  const results: string[] = [];
  const onRefusalChange = (refusal: unknown) => void results.push(refusal ? "refused" : "valid");
  const reloader = openReloader(
    await loadForWorker(app),
    { log: app.log, load: () => loadForWorker(app), requireStartable, onRefusalChange },
    READ_EVERY_MS,
  );
  const rate = () => reloader.current().config.service.requestsPerSecond;
  const setOutage = (error: Error | undefined) => {
    outage = error;
  };
  return { folder, file, write, reloader, results, rate, setOutage, outagesMet: () => outagesMet };
}

const test = base.extend<{ opened: Awaited<ReturnType<typeof openFolder>> }>({
  opened: async ({ onTestFinished }, use) => {
    const opened = await openFolder(temporaryFolder(onTestFinished));
    onTestFinished(() => opened.reloader[Symbol.asyncDispose]());
    await use(opened);
  },
});

test("a file that is written, replaced by a new one, or reached by another symbolic link is taken up", async ({
  opened: { folder, file, write, reloader, rate },
}) => {
  const before = reloader.current().superseded;
  // Most editors put a new file in its place.
  await write(configText(2));
  await expect.poll(rate).toBe(2);
  expect(before.aborted).toBe(true);
  expect(reloader.current().superseded.aborted).toBe(false);

  // A shell writes into the same file. Here even the length stays the same.
  await writeFile(file, configText(3));
  await expect.poll(rate).toBe(3);

  // In Kubernetes the file is a link through a link to a folder, and the link to the folder is replaced.
  for (const revision of [4, 5]) {
    await mkdir(path.join(folder, `revision-${revision}`));
    await writeFile(path.join(folder, `revision-${revision}`, "jobs.config.json"), configText(revision));
  }
  await symlink("revision-4", path.join(folder, "data"));
  await symlink("data/jobs.config.json", path.join(folder, "link"));
  await rename(path.join(folder, "link"), file);
  await expect.poll(rate).toBe(4);
  await symlink("revision-5", path.join(folder, "next"));
  await rename(path.join(folder, "next"), path.join(folder, "data"));
  await expect.poll(rate).toBe(5);
});

test("a half-written file is refused until it is whole", async ({ opened: { write, reloader, rate, results } }) => {
  const text = configText(2);
  await write(text.slice(0, text.length / 2));
  await expect.poll(() => reloader.refusal()?.reason).toMatch(/JSON/);
  expect(rate()).toBe(1);
  expect(reloader.current().superseded.aborted).toBe(false);
  // Another mistake does not make the refusal younger.
  const since = reloader.refusal()?.at;
  await write(configText(2, { runs: { keepDays: -1 } }));
  await expect.poll(() => reloader.refusal()?.reason).toMatch(/keepDays/);
  expect(reloader.refusal()?.at).toBe(since);
  await write(text);
  await expect.poll(rate).toBe(2);
  expect(reloader.refusal()).toBeUndefined();
  expect(results).toEqual(["refused", "refused", "valid"]);
});

test("a configuration that changes while the database is away is taken up afterwards", async ({
  opened: { write, reloader, rate, results, setOutage, outagesMet },
}) => {
  setOutage(Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }));
  await write(configText(2));
  // The second outage is met only after the first was handled.
  await expect.poll(outagesMet).toBeGreaterThan(1);
  expect([reloader.refusal(), rate()]).toEqual([undefined, 1]);
  setOutage(undefined);
  await expect.poll(rate).toBe(2);
  expect(results).toEqual([]);
});

test("a refusal ends when the file is as it was before", async ({ opened: { file, write, reloader, results } }) => {
  await rm(file);
  await expect.poll(() => reloader.refusal()?.reason).toMatch(/does not exist/);
  await write(configText(1));
  await expect.poll(() => reloader.refusal()).toBeUndefined();
  expect(reloader.current().superseded.aborted).toBe(false);
  expect(results).toEqual(["refused", "valid"]);
});

test("a configuration is refused while a secret that it names is missing", async ({
  opened: { folder, write, reloader, rate },
}) => {
  await writeFile(path.join(folder, "token"), "0123456789abcdef");
  const monitor = { access: { bearer: { file: "token" } } };
  await write(configText(2, { notify: { webhook: { file: "address" } }, monitor }));
  await expect.poll(() => reloader.refusal()?.reason).toMatch(/notify\.webhook: .*does not exist/);
  await writeFile(path.join(folder, "address"), "https://hooks.example.com/0123456789");
  await expect.poll(rate).toBe(2);

  // From then on a new address or token is a change, too.
  await writeFile(path.join(folder, "address"), "https://hooks.example.com/other");
  await expect
    .poll(() => reloader.current().receivers.webhook?.address.reveal())
    .toBe("https://hooks.example.com/other");
  await writeFile(path.join(folder, "token"), "fedcba9876543210");
  await expect.poll(() => reloader.current().access?.credentials.reveal()).toBe("fedcba9876543210");
});

test("a change of the monitor's port is refused, with the next step", async ({ opened: { write, reloader, rate } }) => {
  await write(configText(2, { monitor: { port: 1234 } }));
  await expect
    .poll(() => reloader.refusal()?.reason)
    .toBe("monitor.port: a running worker can't change it from 9464 to 1234; restart the worker, or undo the change");
  expect(rate()).toBe(1);
});
