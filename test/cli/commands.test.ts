// Commands that need neither a service nor a database, and mistakes that are found before either is used: DATABASE_URL leads nowhere.
// After each test, all that its programs wrote is searched for its keys.

import { mkdir, readdir, readFile, realpath } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { expect, vi } from "vitest";
import { defineCommands } from "../../src/cli/commands.ts";
import { type Environment, programTest } from "./program-context.ts";
import { PRODUCTION, PROJECT_ID, smallConfig } from "./small-config.ts";

const test = programTest();
/** For tests that run the whole product, which takes long. */
const testInCi = test.runIf(process.env.CI !== undefined);

const PROGRAM = defineCommands("0.0.0", () => {});

test("--help lists every command and the environment variables", async ({ context }) => {
  const { status, stdout } = await context.run(["--help"]);
  expect(stdout).toMatch(/\nEnvironment:\n {2}DATABASE_URL /);
  expect({ status, commands: stdout.match(/(?<=^ {2})[a-z]+(?= \[options\])/gm) }).toEqual({
    status: 0,
    commands: PROGRAM.commands.map((command) => command.name()),
  });
});

test("help COMMAND prints the same as COMMAND --help", async ({ context }) => {
  const [byCommand, byOption] = [await context.run(["help", "export"]), await context.run(["export", "--help"])];
  expect(byCommand).toMatchObject({ status: 0, stdout: byOption.stdout });
  expect(byOption).toMatchObject({ status: 0, stderr: "" });
  expect(byOption.stdout).toMatch(
    /^Usage: usage-export export .*\n\n\w.*\n\nOptions:\n.*--config <file>.*\n\nExamples:\n {2}usage-export export/s,
  );
});

const commandsIn = ({ commands }: Command): Command[] => commands.flatMap((one) => [one, ...commandsIn(one)]);

const WITHOUT_CONFIG = "demo dump emulator explain keys migrate report rewrap schema".split(" ");

test("the help of each command has valid examples and, if it reads the configuration, --config", () => {
  for (const command of commandsIn(PROGRAM)) {
    const help: string[] = [];
    command.configureOutput({ writeOut: (text) => help.push(text) }).outputHelp();
    const examples = help.join("").match(/(?<=^ {2}usage-export ).*/gm) ?? [];
    expect(examples.length).toBeGreaterThan(0);
    expect(help.join("").includes("--config <file>")).toBe(!WITHOUT_CONFIG.includes(command.name()));
    for (const example of examples) {
      const words = (example.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
      expect(words).toContain(command.name());
      const choose = vi.fn();
      defineCommands("0.0.0", choose).parse(words, { from: "user" });
      expect(choose).toHaveBeenCalledOnce();
    }
  }
});

test("--version prints only the version of the package", async ({ context }) => {
  const { version } = JSON.parse(await readFile(path.join(import.meta.dirname, "../../package.json"), "utf8"));
  expect(await context.run(["--version"])).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: "" });
});

test("schema prints jobs.config.schema.json", async ({ context }) => {
  const { status, stdout } = await context.run(["schema"]);
  const file = path.join(import.meta.dirname, "../../jobs.config.schema.json");
  expect({ status, schema: stdout }).toEqual({ status: 0, schema: await readFile(file, "utf8") });
});

test("jobs next prints when a job runs, in UTC and in its timezone", async ({ context }) => {
  const exports = [{ schedule: "30 2 * * *", timezone: "Asia/Tokyo" }];
  await context.configure(smallConfig("https://api.example.com", { exports }));
  const { status, stdout } = await context.run(["jobs", "next", "nightly", "--count", "2"]);
  expect(stdout).toMatch(/^(\d{4}-\d\d-\d\d 17:30 UTC \(\d{4}-\d\d-\d\d 02:30:00 Asia\/Tokyo\)\n){2}$/);
  expect(status).toBe(0);
});

test("emulator serves until it is stopped", async ({ context }) => {
  const program = context.start(["emulator", "--project", PROJECT_ID]);
  const line = await program.waitFor("answers at");
  const [url] = line.match(/http:\/\/127\.0\.0\.1:\d+/) ?? [];
  const response = await fetch(`${url}/v1/projects/${PROJECT_ID}/usage/breakdown`, {
    headers: { authorization: `Token ${context.key}` },
  });
  program.kill("SIGTERM");

  expect(response.status).toBe(200);
  expect(await program.ended).toMatchObject({ status: 0, stderr: "" });
  await expect(fetch(`${url}/v1/projects`)).rejects.toThrow("fetch failed");
});

type Given = { readonly args?: readonly string[]; readonly env?: Environment };

test.for<readonly [what: string, message: RegExp, given: Given]>([
  [
    "a key variable that is not set",
    /projects\[0\]\.key.*USAGE_EXPORT_KEY is not set/,
    { env: { USAGE_EXPORT_KEY: undefined } },
  ],
  [
    "a configuration file that does not exist",
    /nowhere\.json does not exist.*--config/,
    { args: ["export", "--config", "nowhere.json"] },
  ],
  ["an unknown command", /unknown command 'exprot'.*Did you mean export\?/s, { args: ["exprot"] }],
  [
    "an unknown option",
    /unknown option '--projcet'.*Did you mean --project\?/s,
    { args: ["export", "--projcet", "x"] },
  ],
  ["a job that is not configured", /no job "nighly".*"nightly"/, { args: ["jobs", "next", "nighly"] }],
  ["an unknown grouping", /expected none, .*line_item/, { args: ["export", "--grouping", "modell"] }],
  ["a backfill without its first day", /--from/, { args: ["backfill", "--to", "2026-01-31"] }],
  ["a backfill without its last day", /--to/, { args: ["backfill", "--from", "2026-01-01"] }],
  ["a backfill of an unknown kind of days", /missing, failed, all/, { args: ["backfill", "--only", "new"] }],
  ["a pause without a reason", /expected a reason/, { args: ["jobs", "pause", "nightly", "--why", " "] }],
  [
    "a variable that turns off the checks of certificates",
    /NODE_TLS_REJECT_UNAUTHORIZED=0.*NODE_EXTRA_CA_CERTS/s,
    { env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" } },
  ],
])("%s is refused", async ([, message, { args = ["export"], env }], { context }) => {
  const emulator = await context.setUp();
  const { status, stdout, stderr } = await context.run(args, env);
  expect({ status, stdout, requests: emulator.requests }).toEqual({ status: 2, stdout: "", requests: [] });
  expect(stderr).toMatch(message);
  expect(stderr).not.toMatch(/\n\s+at /);
});

test("a key written into the configuration is refused", async ({ context }) => {
  const keyInFile = context.newSecret({ allowedIn: "jobs.config.json" });
  await context.setUp({ projects: [{ ...PRODUCTION, key: keyInFile }] });
  const says = expect.stringMatching(/projects\[0\]\.key.*"env"/);
  expect(await context.run(["export"])).toMatchObject({ status: 2, stderr: says });
});

test.for<[args: readonly string[]]>([[[]], [["help", "exprot"]]])(
  "the error for the arguments %j lists the commands",
  async ([args], { context }) => {
    const list = expect.stringMatching(/export .*runs export jobs now/);
    expect(await context.run(args)).toMatchObject({ status: 2, stdout: "", stderr: list });
  },
);

// `.ci/run` and the test of the package run the demo without --serve.
testInCi("demo --serve uses nothing that is configured", async ({ context }) => {
  // A key, a service and a database are configured, so that the test would notice if the demo used them.
  const emulator = await context.setUp();
  const temporary = path.join(context.folder, "tmp");
  await mkdir(temporary);

  const demo = context.start(["demo", "--serve"], { TMPDIR: temporary, LOG_LEVEL: undefined });
  const [url = ""] = (await demo.waitFor("dashboard: ")).match(/http:\/\/127\.0\.0\.1:\d+\//) ?? [];
  const page = await fetch(url);
  expect([page.status, await page.text()]).toEqual([
    200,
    expect.stringContaining("<title>All is well: Overview, usage-export</title>"),
  ]);
  demo.kill("SIGINT");
  const { status, stdout, stderr } = await demo.ended;
  await expect(fetch(url)).rejects.toThrow("fetch failed");

  // The demo exports 30 days: 16 series of the packaged example, and two of billing.
  expect(stdout).toMatch(/the last 30 days: 1[67] calls, 480 slices complete, 0 failed, \d+ rows written/);
  expect(stdout).toMatch(/the export again, nothing has changed: .* 0 rows written/);
  expect(stdout).toMatch(/what it costs, by line item: \d+ calls, 60 slices complete, 0 failed/);
  expect(stdout).toMatch(/cost_total +\d{4}-\d\d-\d\d: \d+\.\d+ USD/);
  expect(stdout).toMatch(/coverage +540 of 540 slices complete, 0 gaps/);
  expect(stdout).toMatch(/restatements +[1-9]\d* stored numbers changed later/);
  expect(stdout).toMatch(/reconciliation +0 days/);
  expect(stderr).toBe("");
  expect({ status, requests: emulator.requests }).toEqual({ status: 0, requests: [] });
  expect(await readdir(temporary)).toEqual([]);
  expect(await readdir(context.folder)).toEqual(["jobs.config.json", "tmp", "usage-report-demo.html"]);
  const report = await realpath(path.join(context.folder, "usage-report-demo.html"));
  expect(stdout).toContain(`\nreport: ${report}\n`);
  expect(stdout).toMatch(/\n {2}\S.* init --config my-jobs\.json\ndashboard: .*\n$/);
  expect(await readFile(report, "utf8")).toMatch(/^<!doctype html>\n[\s\S]*<\/html>\n$/);
});
