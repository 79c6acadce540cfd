// What the release script refuses and makes, and what publishing needs. A stub stands in for .ci/run.

import { execFileSync, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../support/temporary-folder.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const repository = temporaryFolder(afterAll);

beforeAll(() => {
  fs.mkdirSync(path.join(repository, "tools"));
  for (const tool of ["tools/release.ts", "tools/publishable.ts"]) {
    fs.copyFileSync(path.join(ROOT, tool), path.join(repository, tool));
  }
  write(".ci/run", "#!/bin/sh\nexit 1\n", 0o755);
  write("package.json", JSON.stringify({ name: "usage-export", version: "1.2.3", type: "module" }));
  write("CHANGELOG.md", "# Changelog\n\n## [1.2.3] - 2026-11-22\n");
  git("init", "--quiet");
  git("config", "user.name", "test");
  git("config", "user.email", "test@localhost");
  commit();
});

test("a release needs a folder", () => {
  expect(release()).toMatchObject({ status: 1, stderr: expect.stringContaining("expected a folder") });
});

test("a tree with changes is not released", () => {
  write("new.txt", "not committed");
  expect(release("out")).toMatchObject({ status: 1, stderr: expect.stringContaining("not committed") });
  fs.rmSync(path.join(repository, "new.txt"));
});

test("a version is not released twice", () => {
  git("tag", "v1.2.3");
  expect(release("out")).toMatchObject({ status: 1, stderr: expect.stringContaining("the tag v1.2.3 exists") });
  git("tag", "--delete", "v1.2.3");
});

test("a version without its section in the changelog is not released", () => {
  write("CHANGELOG.md", "# Changelog\n\n## [Unreleased]\n");
  commit();
  expect(release("out")).toMatchObject({ status: 1, stderr: expect.stringContaining('"## [1.2.3] - YYYY-MM-DD"') });
  git("revert", "--no-edit", "HEAD");
});

test("if the checks fail, there is no tag and no tarball", () => {
  expect(release("out")).toMatchObject({ status: 1 });
  expect(git("tag", "--list")).toBe("");
  expect(fs.readdirSync(path.join(repository, "out"))).toEqual([]);
});

const MADE = ["usage-export-1.2.3.cdx.json", "usage-export-1.2.3.tgz"];

test("if the checks pass, there are a tarball, its bill of materials and a tag", () => {
  write(".ci/run", "#!/bin/sh\nexit 0\n", 0o755);
  execFileSync("npm", ["install", "--package-lock-only"], { cwd: repository });
  commit();
  const output = temporaryFolder(onTestFinished);
  expect(release(output)).toMatchObject({ status: 0, stdout: expect.stringContaining("git push origin v1.2.3") });
  expect(fs.readdirSync(output).sort()).toEqual(MADE);
  expect(git("tag", "--list")).toBe("v1.2.3");
});

test("--tagged makes the files of the version's tag without checks", () => {
  write(".ci/run", "#!/bin/sh\nexit 1\n", 0o755);
  commit();
  const output = temporaryFolder(onTestFinished);
  expect(release("--tagged", "v1.2.4", output)).toMatchObject({ status: 1, stderr: expect.stringContaining("1.2.3") });
  expect(release("--tagged", "v1.2.3", output)).toMatchObject({ status: 0 });
  expect(fs.readdirSync(output).sort()).toEqual(MADE);
});

test("the error and docs/releasing.md name what is missing before publication", () => {
  const docs = fs.readFileSync(path.join(ROOT, "docs/releasing.md"), "utf8");
  const manifest = { name: "usage-export", version: "1.2.3", type: "module" };
  write("package.json", JSON.stringify({ ...manifest, private: true, license: "UNLICENSED" }));
  const { status, stderr } = run("tools/publishable.ts");
  const missing = ["private", "license", "LICENSE", "repository", "bugs", "homepage"];
  expect([status, stderr.trim().split("\n").length]).toEqual([1, missing.length]);
  for (const name of missing) expect([stderr, docs]).toEqual([stderr, docs].map(() => expect.stringContaining(name)));

  const chosen = { license: "MIT", repository: "github:o/n", bugs: "https://o.example", homepage: "https://o.example" };
  write("package.json", JSON.stringify({ ...manifest, ...chosen }));
  write("LICENSE", "MIT");
  expect(run("tools/publishable.ts")).toMatchObject({ status: 0, stdout: "usage-export 1.2.3 can be published\n" });
});

function release(...args: string[]) {
  return run("tools/release.ts", ...args);
}

function run(...args: string[]) {
  return spawnSync(process.execPath, args, { cwd: repository, encoding: "utf8" });
}

function write(file: string, text: string, mode = 0o644): void {
  fs.mkdirSync(path.dirname(path.join(repository, file)), { recursive: true });
  fs.writeFileSync(path.join(repository, file), text, { mode });
}

function commit(): void {
  git("add", "--all");
  git("commit", "--quiet", "--message", "a change");
}

function git(...args: string[]): string {
  return execFileSync("git", args, { cwd: repository, encoding: "utf8" }).trim();
}
