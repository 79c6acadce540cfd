import { chmod, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Sink } from "../../src/config/rotations.ts";
import { withFileLimit } from "../../src/files.ts";
import { sinkId } from "../../src/keys/plan.ts";
import { staleFiles } from "../../src/keys/sinks.ts";
import { Secret } from "../../src/secret.ts";

const KEY = new Secret("0123456789abcdef0123456789abcdef01234567");

async function sinkNamed(name: string): Promise<Sink & { readonly file: string }> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-stale-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return { file: path.join(folder, name) };
}

/** What is wrong with the sinks, all of which got the key. */
async function faultsOf(...sinks: readonly Sink[]): Promise<readonly string[]> {
  const stale = await staleFiles(sinks, sinks.map(sinkId), KEY);
  return [...stale.values()];
}

test("only a file that got the key and does not hold it is reported", async () => {
  const [right, other, unknown] = [await sinkNamed("right"), await sinkNamed("other"), await sinkNamed("unknown")];
  const command = { command: ["store-key"], timeoutSeconds: 30 };
  await writeFile(right.file, `${KEY.reveal()}\n`);
  await writeFile(other.file, `${"f".repeat(40)}\n`);
  const stale = await staleFiles([right, other, unknown, command], [right, other, command].map(sinkId), KEY);
  expect([...stale]).toEqual([
    [sinkId(other), `the delivered file ${other.file} holds something else than the key in use`],
  ]);
});

test("a file that is gone or is a folder is reported", async () => {
  const [folder, gone] = [await sinkNamed("folder"), await sinkNamed("gone")];
  await mkdir(folder.file);
  expect(await faultsOf(folder, gone)).toEqual([
    `the delivered file ${folder.file} can't be read (EISDIR)`,
    `the delivered file ${gone.file} is gone`,
  ]);
});

test("a file whose file system does not answer is reported", async () => {
  const [silent, gone] = [await sinkNamed("silent"), await sinkNamed("gone")];
  const { promise: answer, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  await expect(withFileLimit(silent.file, 1, () => answer)).rejects.toMatchObject({ code: "ETIMEDOUT" });
  expect(await faultsOf(silent, gone)).toEqual([
    `the delivered file ${silent.file} can't be read (ETIMEDOUT)`,
    `the delivered file ${gone.file} is gone`,
  ]);
});

test("a file that this user may not read is not reported", async () => {
  const sink = await sinkNamed("exporter.key");
  await writeFile(sink.file, "\n");
  await chmod(sink.file, 0o000);
  // Root reads a file whatever its mode is, except those in /sys that are only written.
  const unreadable = process.getuid?.() === 0 ? { file: "/sys/bus/platform/uevent" } : sink;
  expect(await faultsOf(unreadable)).toEqual([]);
});
