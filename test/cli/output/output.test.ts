// Where output goes: to a file that is replaced as a whole, or to standard output. A terminal also gets a progress bar.

import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { Writable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { withProgress } from "../../../src/cli/export.ts";
import { writeFileAtomically, writeStandardOutput } from "../../../src/cli/output.ts";
import { NO_COUNTS, type RunCounts } from "../../../src/usage/counts.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const NEVER = new AbortController().signal;

test("a source that fails in the middle leaves only the old file", async () => {
  const folder = temporaryFolder(onTestFinished);
  const file = path.join(folder, "report.html");
  await writeFile(file, "the old one");
  const away = new Error("the source is away");
  async function* half() {
    yield "half of a new one";
    throw away;
  }
  await expect(writeFileAtomically(file, half(), NEVER)).rejects.toBe(away);
  expect([await readFile(file, "utf8"), await readdir(folder)]).toEqual(["the old one", ["report.html"]]);

  await writeFileAtomically(file, ["a new ", "one"], NEVER);
  expect([await readFile(file, "utf8"), await readdir(folder)]).toEqual(["a new one", ["report.html"]]);
});

test.each([
  ["in a folder that does not exist", "none/usage.csv", "ENOENT"],
  ["whose name is too long for the temporary file beside it", `${"u".repeat(250)}.csv`, "ENAMETOOLONG"],
  ["whose name is that of a folder", "folder", "EISDIR"],
])('a file %s is an error with the code "delivery" that names the file', async (_, name, code) => {
  const folder = temporaryFolder(onTestFinished);
  await mkdir(path.join(folder, "folder"));
  const file = path.join(folder, name);
  await expect(writeFileAtomically(file, ["usage"], NEVER)).rejects.toMatchObject({
    code: "delivery",
    message: `the file ${file} could not be written`,
    cause: { code },
  });
  expect(await readdir(folder)).toEqual(["folder"]);
});

test("a stopped write leaves no file", async () => {
  const folder = temporaryFolder(onTestFinished);
  const stop = new AbortController();
  const reason = new Error("stopped by SIGTERM");
  function* stopped() {
    yield "some";
    stop.abort(reason);
    yield "more";
  }
  await expect(writeFileAtomically(path.join(folder, "usage.csv"), stopped(), stop.signal)).rejects.toBe(reason);
  expect(await readdir(folder)).toEqual([]);
});

test("EPIPE from the source is thrown, unlike EPIPE from standard output", async () => {
  async function* broken(): AsyncGenerator<string> {
    yield await Promise.reject(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
  }
  await expect(writeStandardOutput(broken(), NEVER)).rejects.toThrow("write EPIPE");
});

/** Runs the progress bar of 12 planned slices on a fake clock, adding one entry of `counts` a second. Returns everything that it wrote. */
async function draw(counts: readonly Partial<RunCounts>[], terminal = { isTTY: true, columns: 100 }): Promise<string> {
  let ms = 0;
  let written = "";
  const stream = new Writable({
    write(piece, _encoding, done) {
      written += piece;
      done();
    },
  });
  const addAll = async (onCounted: (added: RunCounts) => void) => {
    for (const added of counts) {
      ms += 1_000;
      onCounted({ ...NO_COUNTS, ...added });
    }
  };
  await withProgress("nightly", 12, addAll, Object.assign(stream, terminal), () => ms);
  return written;
}

test.each<[string, readonly Partial<RunCounts>[], string]>([
  [
    "the progress and the time that is left",
    [{ complete: 2, suspect: 1 }],
    "\r\x1b[Knightly [======------------------] 3 of 12 slices, 3 s left\r\x1b[K",
  ],
  ["failures as soon as there are any", [{ complete: 2 }, { failed: 2 }], "4 of 12 slices, 2 failed, 4 s left"],
  ["that nothing is done yet", [], "nightly [------------------------] 0 of 12 slices"],
  ["a full bar if more is done than was planned", [{ complete: 13 }], `[${"=".repeat(24)}] 13 of 12 slices`],
])("on a terminal a bar shows %s", async (_, states, shown) => {
  expect(await draw(states)).toContain(shown);
});

test("on a narrow terminal the bar is cut to one line", async () => {
  const lines = (await draw([{ complete: 12 }], { isTTY: true, columns: 20 })).split("\r\x1b[K");
  expect(lines).toEqual(["", "nightly [---------…", "nightly [=========…", ""]);
  // A container's terminal may have no size.
  expect(await draw([], { isTTY: true, columns: 0 })).toMatch(/\] 0 of 12 slices\r/);
});

test("nothing is written to a stream that is no terminal", async () => {
  expect(await draw([{ complete: 3 }], { isTTY: false, columns: 100 })).toBe("");
});
