import { existsSync } from "node:fs";
import {
  type FileHandle,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { testKeyFile, writeKeyFile } from "../../src/keys/sinks.ts";
import { Secret } from "../../src/secret.ts";

const OLD = new Secret("a".repeat(40));
const NEW = new Secret("b".repeat(40));

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-key-file-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

const modeOf = async (file: string) => ((await stat(file)).mode & 0o777).toString(8);

test("the file has the key on a line of its own, for its user alone, and the folder has no other file", async () => {
  const folder = await newFolder();
  const file = path.join(folder, "exporter.key");
  await writeKeyFile(file, NEW);
  expect(await readFile(file, "utf8")).toBe(`${NEW.reveal()}\n`);
  expect(await modeOf(file)).toBe("600");
  expect(await readdir(folder)).toEqual(["exporter.key"]);
});

test("a file that others could read is closed to them by the next key", async () => {
  const file = path.join(await newFolder(), "exporter.key");
  await writeFile(file, "old", { mode: 0o644 });
  await writeKeyFile(file, NEW);
  expect(await modeOf(file)).toBe("600");
});

test("folders are made where they are missing, for their user alone", async () => {
  const folder = await newFolder();
  await writeKeyFile(path.join(folder, "a/b/exporter.key"), NEW);
  expect([await modeOf(path.join(folder, "a")), await modeOf(path.join(folder, "a/b"))]).toEqual(["700", "700"]);
});

test("what is open for reading keeps the old key whole", async () => {
  const file = path.join(await newFolder(), "exporter.key");
  await writeKeyFile(file, OLD);
  const before = (await stat(file)).ino;
  await writeKeyFile(file, NEW);
  expect((await stat(file)).ino).not.toBe(before);
});

test("a reader never sees half a key, nor none", async () => {
  const file = path.join(await newFolder(), "exporter.key");
  await writeKeyFile(file, OLD);
  const allowed = [OLD, NEW].map((key) => `${key.reveal()}\n`);
  let isWriting = true;
  const reading = (async () => {
    const seen = new Set<string>();
    while (isWriting) seen.add(await readFile(file, "utf8"));
    return seen;
  })();
  for (let i = 0; i < 100; i++) await writeKeyFile(file, i % 2 === 0 ? NEW : OLD);
  isWriting = false;
  expect([...(await reading)].sort()).toEqual(allowed);
});

test("the file is synced before it is renamed, and the folder after that", async () => {
  const file = path.join(await newFolder(), "exporter.key");
  const synced = await noteSyncs(file);
  await writeKeyFile(file, NEW);
  expect(synced).toEqual(["file before it is there", "folder after"]);
});

/** What is synced from now on, before or after the file is there. A power failure in between can't be simulated. */
async function noteSyncs(file: string): Promise<readonly string[]> {
  await using handle = await open(path.dirname(file));
  const handles: Pick<FileHandle, "sync"> = Object.getPrototypeOf(handle);
  const { sync } = handles;
  onTestFinished(() => {
    handles.sync = sync;
  });
  const synced: string[] = [];
  handles.sync = async function (this: FileHandle) {
    const what = (await this.stat()).isDirectory() ? "folder" : "file";
    synced.push(`${what} ${existsSync(file) ? "after" : "before it is there"}`);
    return sync.call(this);
  };
  return synced;
}

test("a temporary file that a crash left is deleted with the next key", async () => {
  const folder = await newFolder();
  const file = path.join(folder, "exporter.key");
  await writeFile(`${file}.usage-export-next`, "half a k", { mode: 0o600 });
  await writeKeyFile(file, NEW);
  expect(await readdir(folder)).toEqual(["exporter.key"]);
});

test("other files in the folder stay as they are", async () => {
  const folder = await newFolder();
  const file = path.join(folder, "exporter.key");
  const others = [`${file}.next`, `${file}.probe`];
  for (const other of others) await writeFile(other, "somebody's");
  await testKeyFile(file);
  await writeKeyFile(file, NEW);
  for (const other of others) expect(await readFile(other, "utf8")).toBe("somebody's");
});

test.each<[string, (name: string, other: string) => Promise<void>]>([
  ["a file that others may read", (name) => writeFile(name, "somebody's", { mode: 0o644 })],
  ["a link", (name, other) => symlink(other, name)],
  ["a folder", async (name) => void (await mkdir(name))],
])("%s instead of its own file is neither deleted nor written through", async (_, make) => {
  const folder = await newFolder();
  const other = path.join(folder, "other");
  await writeFile(other, "untouched");
  const file = path.join(folder, "exporter.key");
  const name = `${file}.usage-export-next`;
  await make(name, other);
  await expect(writeKeyFile(file, NEW)).rejects.toMatchObject({
    code: "delivery",
    cause: { message: `${name} is in the way, and this program did not make it: remove it` },
  });
  expect(await readFile(other, "utf8")).toBe("untouched");
  expect((await readdir(folder)).sort()).toContain("exporter.key.usage-export-next");
});

test("a name that is a link stays one, and what it leads to is replaced", async () => {
  const folder = await newFolder();
  await mkdir(path.join(folder, "real"));
  const real = path.join(folder, "real/key");
  await writeKeyFile(real, OLD);
  const link = path.join(folder, "exporter.key");
  await symlink(real, link);
  await testKeyFile(link);
  await writeKeyFile(link, NEW);
  expect(await readlink(link)).toBe(real);
  expect(await readFile(real, "utf8")).toBe(`${NEW.reveal()}\n`);
});

test("testing a file leaves it as it was, and no other file", async () => {
  const folder = await newFolder();
  const file = path.join(folder, "exporter.key");
  await writeKeyFile(file, OLD);
  await testKeyFile(file);
  expect(await readFile(file, "utf8")).toBe(`${OLD.reveal()}\n`);
  await testKeyFile(path.join(folder, "new.key"));
  expect(await readdir(folder)).toEqual(["exporter.key"]);
});

test("a folder instead of the file is found by the test", async () => {
  const file = path.join(await newFolder(), "exporter.key");
  await mkdir(file);
  await expect(testKeyFile(file)).rejects.toMatchObject({
    code: "delivery",
    message: `the key file ${file} can't be written`,
  });
});

test("a file instead of its folder is found by the test, and by the delivery", async () => {
  const folder = await newFolder();
  await writeFile(path.join(folder, "a"), "");
  const file = path.join(folder, "a/exporter.key");
  await expect(testKeyFile(file)).rejects.toMatchObject({ code: "delivery" });
  await expect(writeKeyFile(file, NEW)).rejects.toMatchObject({ code: "delivery" });
});

// Not a folder of a closed mode: root may write anywhere but in what the kernel shows.
test("a folder that can't be written is found by the test", async () => {
  await expect(testKeyFile("/proc/exporter.key")).rejects.toMatchObject({ code: "delivery" });
});

// Node's own way to make a folder with those above it never ends there.
test("a folder that can't be made is found by the test, and by the delivery", async () => {
  const message = "the key file /proc/x/y/exporter.key can't be written";
  await expect(testKeyFile("/proc/x/y/exporter.key")).rejects.toMatchObject({ code: "delivery", message });
  await expect(writeKeyFile("/proc/x/exporter.key", NEW)).rejects.toMatchObject({ code: "delivery" });
});
