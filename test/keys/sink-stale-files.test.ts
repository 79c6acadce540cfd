import * as fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { type Sink, sinkId } from "../../src/keys/policy.ts";
import { staleFiles } from "../../src/keys/sinks.ts";
import { Secret } from "../../src/secret.ts";

vi.mock("node:fs/promises", { spy: true });

const KEY = new Secret("0123456789abcdef0123456789abcdef01234567");

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

async function sinkNamed(name: string): Promise<Sink & { readonly file: string }> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), "usage-export-stale-"));
  return { file: path.join(folder, name) };
}

test("a file whose file system does not answer is reported, and the other files are still checked", async () => {
  const [silent, gone] = [await sinkNamed("silent"), await sinkNamed("gone")];
  vi.mocked(fs.open).mockReturnValueOnce(new Promise(() => {}));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const checked = staleFiles([silent, gone], [sinkId(silent), sinkId(gone)], KEY);
  await vi.advanceTimersByTimeAsync(5_000);
  expect([...(await checked).values()]).toEqual([
    `the delivered file ${silent.file} can't be read (ETIMEDOUT)`,
    `the delivered file ${gone.file} is gone`,
  ]);
});

test("a file that this user may not read is not reported", async () => {
  const sink = await sinkNamed("exporter.key");
  await fs.writeFile(sink.file, "\n");
  vi.mocked(fs.open).mockRejectedValueOnce(Object.assign(new Error("denied"), { code: "EACCES" }));
  expect(await staleFiles([sink], [sinkId(sink)], KEY)).toEqual(new Map());
});
