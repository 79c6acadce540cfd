// The build of the image without a Docker engine: its files alone have to be enough.

import { execFile } from "node:child_process";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const ROOT = path.join(import.meta.dirname, "../..");

test("the program can be built from the files that the Dockerfile copies", async () => {
  const dockerfile = await fs.readFile(path.join(ROOT, "Dockerfile"), "utf8");
  const [buildStage = ""] = dockerfile.split(/^FROM \$\{NODE_IMAGE\}$/m);
  const copied = [...buildStage.matchAll(/^COPY (.+) (\S+)$/gm)].flatMap(([, sources = "", target = ""]) =>
    sources.split(" ").map((source) => ({ source, target })),
  );
  expect(copied.length).toBeGreaterThan(3);
  await using folder = await fs.mkdtempDisposable(path.join(os.tmpdir(), "usage-export-image-"));
  for (const { source, target } of copied) {
    const place = target.endsWith("/") ? path.join(target, path.basename(source)) : target;
    await fs.cp(path.join(ROOT, source), path.join(folder.path, place), { recursive: true });
  }
  await fs.symlink(path.join(ROOT, "node_modules"), path.join(folder.path, "node_modules"));

  await promisify(execFile)(process.execPath, ["tools/build.ts"], { cwd: folder.path });

  expect(await fs.readdir(path.join(folder.path, "dist"))).toContain("usage-export.cjs");
});
