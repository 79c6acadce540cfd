// Reads GitHub's workflows, and checks that the scripts, files and jobs they name exist and that actions are pinned.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";

const ROOT = path.join(import.meta.dirname, "../..");
const FILES = fs.globSync(".github/**/*.yml", { cwd: ROOT });
const WORKFLOWS = FILES.filter((file) => file.startsWith(".github/workflows/"));
const SCRIPTS = Object.keys(JSON.parse(read("package.json")).scripts);

type Step = { readonly uses?: string; readonly run?: string };
type Job = Step & { readonly needs?: string; readonly "timeout-minutes"?: number; readonly steps?: readonly Step[] };

const jobsOf = (file: string): [string, Job][] => Object.entries(parse(read(file)).jobs);
const stepsOf = (file: string): readonly Step[] => {
  const { jobs, runs } = parse(read(file));
  return jobs ? jobsOf(file).flatMap(([, job]) => [job, ...(job.steps ?? [])]) : (runs?.steps ?? []);
};

test("every action is pinned to a commit, the same one in all files, with its version in a comment", () => {
  const pins = new Map<string, string>();
  for (const file of FILES) {
    for (const [line, action = "", pin = ""] of read(file).matchAll(/^.*\buses: ([^@\s]+)(.*)$/gm)) {
      if (action.startsWith("./")) {
        expect([action, fs.existsSync(path.join(ROOT, action))]).toEqual([action, true]);
      } else {
        expect(line).toMatch(/uses: [\w.-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
        expect([action, pins.get(action) ?? pin]).toEqual([action, pin]);
        pins.set(action, pin);
      }
    }
  }
  expect(pins.size).toBeGreaterThan(5);
});

test("the scripts that workflows run exist", () => {
  for (const file of FILES) {
    for (const { run = "" } of stepsOf(file)) {
      const scripts = [...run.matchAll(/npm run ([\w:]+)/g)].map(([, script]) => script);
      expect(SCRIPTS, `${file}: ${run}`).toEqual(expect.arrayContaining(scripts));
    }
  }
});

test("the tests that workflows and scripts name exist", () => {
  const named = [...FILES, "package.json", ".ci/run"].flatMap(
    (file) => read(file).match(/(?<=[ "])test\/[\w./-]+/g) ?? [],
  );
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((part) => fs.globSync(`${part}{,*}`, { cwd: ROOT }).length === 0)).toEqual([]);
});

test("every workflow can only read the repository", () => {
  for (const file of WORKFLOWS) expect(parse(read(file)).permissions).toEqual({ contents: "read" });
});

test("every job has a time limit", () => {
  for (const file of WORKFLOWS) {
    const jobs = jobsOf(file);
    for (const [name, { uses, needs, "timeout-minutes": minutes }] of jobs) {
      expect([name, uses !== undefined || minutes !== undefined]).toEqual([name, true]);
      if (needs !== undefined) expect(jobs.map(([other]) => other)).toContain(needs);
    }
  }
});

test("GitHub runs every script that .ci/run runs", () => {
  const scripts = (text: string) => new Set(text.match(/npm (run [\w:]+|test)/g));
  const github = scripts(read(".github/workflows/ci.yml"));
  expect([...scripts(read(".ci/run").replaceAll(/^#.*$/gm, ""))].filter((script) => !github.has(script))).toEqual([]);
});

function read(file: string): string {
  return fs.readFileSync(path.join(ROOT, file), "utf8");
}
