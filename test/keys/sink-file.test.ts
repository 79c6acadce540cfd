import { existsSync } from "node:fs";
import fs, { chmod, type FileHandle, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Sink } from "../../src/config/rotations.ts";
import { replaceFile, withFileLimit } from "../../src/files.ts";
import { sinkId } from "../../src/keys/rotation-plan.ts";
import { deliverKey, staleFiles, testSink } from "../../src/keys/sinks.ts";
import { Secret } from "../../src/secret.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { COMMAND, FILE } from "./sample-ledger.ts";

const OLD = new Secret("a".repeat(40));
const NEW = new Secret("b".repeat(40));

const newFolder = () => temporaryFolder(onTestFinished);

const testKeyFile = (file: string) => testSink({ file });
const writeKeyFile = (file: string, key: Secret) => deliverKey({ file }, { apiKeyId: "id", key });

const modeOf = async (file: string) => ((await fs.stat(file)).mode & 0o777).toString(8);

test.each([
  ["of the first delivery", undefined],
  ["that others could read before", "exporter.key"],
  ["beside the temporary file that a crash left", "exporter.key.usage-export-next"],
])("the file %s gives the new key to its user alone", async (_, before) => {
  const folder = newFolder();
  if (before) await writeFile(path.join(folder, before), "half a k", { mode: 0o644 });
  const file = path.join(folder, "exporter.key");
  await writeKeyFile(file, NEW);
  expect(await readFile(file, "utf8")).toBe(`${NEW.reveal()}\n`);
  expect(await modeOf(file)).toBe("600");
  expect(await readdir(folder)).toEqual(["exporter.key"]);
});

test("missing folders are created for their user alone", async () => {
  const folder = newFolder();
  await writeKeyFile(path.join(folder, "a/b/exporter.key"), NEW);
  expect([await modeOf(path.join(folder, "a")), await modeOf(path.join(folder, "a/b"))]).toEqual(["700", "700"]);
});

test("a file is not replaced if the signal aborts after the last piece was written", async () => {
  const folder = newFolder();
  const [target, temporary] = ["old", "new"].map((name) => path.join(folder, name)) as [string, string];
  await writeFile(target, "old");
  const stop = new AbortController();
  function* pieces() {
    yield "new";
    stop.abort();
  }
  await expect(replaceFile(target, pieces(), { temporary, signal: stop.signal })).rejects.toThrow("aborted");
  expect(await readFile(target, "utf8")).toBe("old");
  expect(await readdir(folder)).toEqual(["old"]);
});

test("a reader always sees a whole key", async () => {
  const file = path.join(newFolder(), "exporter.key");
  await writeKeyFile(file, OLD);
  const wholeKeys = [OLD, NEW].map((key) => `${key.reveal()}\n`);
  let isWriting = true;
  const reading = (async () => {
    const seen = new Set<string>();
    while (isWriting) seen.add(await readFile(file, "utf8"));
    return seen;
  })();
  for (let i = 0; i < 100; i++) await writeKeyFile(file, i % 2 === 0 ? NEW : OLD);
  isWriting = false;
  expect([...(await reading)].sort()).toEqual(wholeKeys);
});

test("a delivery syncs the file before its rename and the folder after it", async () => {
  const file = path.join(newFolder(), "exporter.key");
  const synced = await recordSyncs(file);
  await writeKeyFile(file, NEW);
  expect(synced).toEqual(["file before the rename", "folder after the rename"]);
});

/** Records each sync from now on, and whether the key file exists by then. A power failure can't be simulated. */
async function recordSyncs(file: string): Promise<readonly string[]> {
  await using handle = await fs.open(path.dirname(file));
  const handles: Pick<FileHandle, "sync"> = Object.getPrototypeOf(handle);
  const { sync } = handles;
  onTestFinished(() => {
    handles.sync = sync;
  });
  const synced: string[] = [];
  handles.sync = async function (this: FileHandle) {
    const what = (await this.stat()).isDirectory() ? "folder" : "file";
    synced.push(`${what} ${existsSync(file) ? "after" : "before"} the rename`);
    return sync.call(this);
  };
  return synced;
}

test("if the key file is a link, only the link's target is replaced", async () => {
  const folder = newFolder();
  await fs.mkdir(path.join(folder, "real"));
  const real = path.join(folder, "real/key");
  await writeKeyFile(real, OLD);
  const link = path.join(folder, "exporter.key");
  await fs.symlink(real, link);
  await testKeyFile(link);
  await writeKeyFile(link, NEW);
  expect(await fs.readlink(link)).toBe(real);
  expect(await readFile(real, "utf8")).toBe(`${NEW.reveal()}\n`);
});

test("the test of a sink leaves its folder as it was", async () => {
  const folder = newFolder();
  const file = path.join(folder, "exporter.key");
  await writeKeyFile(file, OLD);
  await writeFile(`${file}.probe`, "somebody's");
  await testKeyFile(file);
  expect(await readFile(file, "utf8")).toBe(`${OLD.reveal()}\n`);
  await testKeyFile(path.join(folder, "new.key"));
  expect(await readdir(folder)).toEqual(["exporter.key", "exporter.key.probe"]);
});

test.each([
  ["whose folder is a file", "a/exporter.key"],
  ["that is a folder", "."],
  ["in whose folder no file can be made", "/proc/exporter.key"],
  // Node's recursive mkdir never ends in /proc.
  ["whose folder can't be created", "/proc/x/y/exporter.key"],
])("a sink %s fails its test and the delivery", async (_, name) => {
  const folder = newFolder();
  await writeFile(path.join(folder, "a"), "");
  const file = path.resolve(folder, name);
  const failure = { code: "delivery", message: `the key file ${file} can't be written` };
  await expect(testKeyFile(file)).rejects.toMatchObject(failure);
  await expect(writeKeyFile(file, NEW)).rejects.toMatchObject(failure);
});

const KEY = new Secret("0123456789abcdef0123456789abcdef01234567");

const sinkNamed = (name: string) => ({ file: path.join(newFolder(), name) });

/** What is wrong with the sinks, all of which got the key. */
async function staleTextsOf(...sinks: readonly Sink[]): Promise<readonly string[]> {
  const stale = await staleFiles(sinks, sinks.map(sinkId), KEY);
  return [...stale.values()];
}

test("only a file that got the key and does not hold it is reported", async () => {
  const [right, other, unknown] = [sinkNamed("right"), sinkNamed("other"), sinkNamed("unknown")];
  const command = { command: ["store-key"], timeoutSeconds: 30 };
  await writeFile(right.file, `${KEY.reveal()}\n`);
  await writeFile(other.file, `${"f".repeat(40)}\n`);
  const stale = await staleFiles([right, other, unknown, command], [right, other, command].map(sinkId), KEY);
  expect([...stale]).toEqual([
    [sinkId(other), `the delivered file ${other.file} holds something other than the key in use`],
  ]);
});

test("a file that is gone or is a folder is reported", async () => {
  const [folder, gone] = [sinkNamed("folder"), sinkNamed("gone")];
  await mkdir(folder.file);
  expect(await staleTextsOf(folder, gone)).toEqual([
    `the delivered file ${folder.file} can't be read (EISDIR)`,
    `the delivered file ${gone.file} is gone`,
  ]);
});

test("a file on which an earlier operation still hangs is reported", async () => {
  const [silent, gone] = [sinkNamed("silent"), sinkNamed("gone")];
  const { promise: hanging, resolve } = Promise.withResolvers<void>();
  onTestFinished(() => resolve());
  await expect(withFileLimit(silent.file, 1, () => hanging)).rejects.toMatchObject({ code: "ETIMEDOUT" });
  expect(await staleTextsOf(silent, gone)).toEqual([
    `the delivered file ${silent.file} can't be read (ETIMEDOUT)`,
    `the delivered file ${gone.file} is gone`,
  ]);
});

test("a file that this user may not read is not reported", async () => {
  const sink = sinkNamed("exporter.key");
  await writeFile(sink.file, "\n");
  await chmod(sink.file, 0o000);
  // Root reads a file whatever its mode is, except those in /sys that are only written.
  const unreadable = process.getuid?.() === 0 ? { file: "/sys/bus/platform/uevent" } : sink;
  expect(await staleTextsOf(unreadable)).toEqual([]);
});

test("a sink's id depends only on its file or command", () => {
  const sinks = [FILE, { file: "/run/other.key" }, COMMAND, { ...COMMAND, command: ["store-key", "other"] }];
  expect(new Set(sinks.map(sinkId)).size).toBe(sinks.length);
  expect(sinkId({ ...COMMAND, timeoutSeconds: 5 })).toBe(sinkId(COMMAND));
});
