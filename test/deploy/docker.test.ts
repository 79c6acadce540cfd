// Builds the program from the Dockerfile's files and checks docker-compose.yml, without Docker. test/containers runs both.

import { execFile } from "node:child_process";
import fs from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { parse } from "yaml";

const ROOT = path.join(import.meta.dirname, "../..");

test("the program can be built from the files that the Dockerfile copies", async () => {
  await using folder = await fs.mkdtempDisposable(path.join(os.tmpdir(), "usage-export-image-"));
  const context = path.join(folder.path, "context");
  const app = path.join(folder.path, "app");
  await copyContext(context);
  const copied = copiedByBuildStage(await fs.readFile(path.join(ROOT, "Dockerfile"), "utf8"));
  expect(copied.length).toBeGreaterThan(3);
  for (const { source, target } of copied) {
    const place = target.endsWith("/") ? path.join(target, path.basename(source)) : target;
    await fs.cp(path.join(context, source), path.join(app, place), { recursive: true });
  }
  await fs.symlink(path.join(ROOT, "node_modules"), path.join(app, "node_modules"));

  await promisify(execFile)(process.execPath, ["tools/build.ts"], { cwd: app });

  const dist = path.join(app, "dist");
  expect(await fs.readdir(dist)).toContain("usage-export.cjs");
  // node_modules is a link here, so undici could be bundled twice: under the path of the link and under the real one.
  const licences = await fs.readFile(path.join(dist, "THIRD-PARTY-LICENSES.txt"), "utf8");
  expect(licences.match(/^undici .*$/gm)).toHaveLength(1);
});

/** Copies the build context: .dockerignore leaves out everything except the lines that begin with "!". */
async function copyContext(folder: string): Promise<void> {
  const [first, ...rest] = (await fs.readFile(path.join(ROOT, ".dockerignore"), "utf8"))
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  expect(first).toBe("*");
  for (const line of rest) {
    expect(line).toMatch(/^!/);
    for await (const file of fs.glob(line.slice(1), { cwd: ROOT })) {
      await fs.cp(path.join(ROOT, file), path.join(folder, file), { recursive: true });
    }
  }
}

function copiedByBuildStage(dockerfile: string): { readonly source: string; readonly target: string }[] {
  const [buildStage = ""] = dockerfile.split(/^FROM \$\{NODE_IMAGE\}$/m);
  return [...buildStage.matchAll(/^COPY (.+) (\S+)$/gm)].flatMap(([, sources = "", target = ""]) =>
    sources.split(" ").map((source) => ({ source, target })),
  );
}

const TEXT = await fs.readFile(path.join(ROOT, "docker-compose.yml"), "utf8");
const { services }: { services: Record<string, Record<string, unknown>> } = parse(TEXT, { merge: true });

test("every service limits its memory and its log", () => {
  for (const [name, service] of Object.entries(services)) {
    expect([name, service]).toEqual([
      name,
      expect.objectContaining({
        mem_limit: expect.any(String),
        logging: { driver: "json-file", options: { "max-size": "10m", "max-file": "3" } },
      }),
    ]);
  }
});

// Logs hide a password wherever its text occurs.
test("a default password is a word that the file uses nowhere else", () => {
  const defaults = [...TEXT.matchAll(/\$\{(\w+_PASSWORD):-(\w+)\}/g)].map(([, name, value]) => [name, value] as const);
  const values = new Map(defaults);
  // Each variable has the same default wherever it is used.
  expect(new Set(defaults.map(String)).size).toBe(values.size);
  expect(values.size).toBe(5);
  for (const [name, value] of values) {
    expect(TEXT.replaceAll(/\$\{\w+_PASSWORD:-\w+\}|^#.*$/gm, "")).not.toContain(value);
    // Letters only, as a URL can't hold every character. TRIAL_PASSWORD is one of "monitor.access", which demands 16 characters.
    expect(value).toMatch(name === "TRIAL_PASSWORD" ? /^[A-Za-z]{16,}$/ : /^[A-Za-z]{10,}$/);
  }
});
