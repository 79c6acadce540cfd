// The command `init` makes a configuration from a person's answers or from options, and checks it with the service.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { COMMAND, MAIN } from "../support/program.ts";
import { databaseTest, type Environment } from "./program-context.ts";
import { PROJECT_ID } from "./small-config.ts";

const { test } = await databaseTest();

const EXISTS = { status: 2, stderr: expect.stringContaining("jobs.config.json exists") };

test("init --yes writes a configuration of the key's only project", async ({ context }) => {
  const { url } = await context.serve({ dialect: "2026" });
  const made = await context.run(["init", "--yes", "--base-url", url, "--grouping", "none", "model", "--days", "2"]);
  expect(made).toMatchObject({ status: 0, stdout: expect.stringContaining(`${COMMAND} export\n`) });
  const config = JSON.parse(await readFile(path.join(context.folder, "jobs.config.json"), "utf8"));
  expect(config).toMatchObject({
    service: { baseUrl: url },
    projects: [{ id: PROJECT_ID, key: { env: "USAGE_EXPORT_KEY" } }],
    exports: [{ window: { days: 2 }, groupings: ["none", "model"] }],
  });
  expect(await context.run(["export", "--json"])).toMatchObject({ status: 0 });
});

test("init does not replace a configuration that appears while it runs", async ({ context }) => {
  const emulator = await context.serve();
  const file = path.join(context.folder, "jobs.config.json");
  emulator.fault = () => {
    if (!existsSync(file)) writeFileSync(file, "of somebody else");
    return undefined;
  };
  expect(await context.run(["init", "--yes", "--base-url", emulator.url])).toMatchObject(EXISTS);
  expect(await readFile(file, "utf8")).toBe("of somebody else");
});

test.for([
  [20_000, /expected a project that the key can read \(p0, .{0,200} and 19980 more\); choose one with --project\n/],
  [0, /the key lists no project: give the id with --project\n/],
] as const)("init --yes with %i projects asks for --project in one line", async ([count, says], { context }) => {
  const account = context.newSecret();
  const { url } = await context.serve({
    consoleKeys: [{ secret: account, projectId: PROJECT_ID, scopes: ["member"], isAccountKey: true }],
    projects: () => Array.from({ length: count }, (_, i) => ({ id: `p${i}`, name: `p${i}` })),
  });
  const env = { LOG_LEVEL: "warn", USAGE_EXPORT_KEY: account };
  const { status, stderr } = await context.run(["init", "--yes", "--base-url", url], env);
  expect({ status, stderr }).toEqual({ status: 2, stderr: expect.stringMatching(says) });
  expect(stderr.length).toBeLessThan(1_000);
});

type Given = { readonly args?: readonly string[]; readonly env?: Environment; readonly window?: "ignored" };

test.for<readonly [what: string, status: number, says: string, given: Given]>([
  ["a key that is not set", 2, "USAGE_EXPORT_KEY is not set", { env: { USAGE_EXPORT_KEY: undefined } }],
  ["a key that the service refuses", 1, "401", { env: { USAGE_EXPORT_KEY: "0".repeat(40) } }],
  ["a project of somebody else", 2, `(${PROJECT_ID}), got "other"`, { args: ["--project", "other"] }],
  ["a check that fails", 1, "nothing was written", { window: "ignored" }],
])("init --yes with %s writes nothing", async ([, status, says, { args = [], env, window }], { context }) => {
  const { url } = await context.serve(window ? { window } : {});
  const failed = await context.run(["init", "--yes", "--base-url", url, ...args], env);
  expect(failed).toMatchObject({ status, stderr: expect.stringContaining(says) });
  if (window) expect(failed.stdout).toMatch(/FAIL .*window: /);
  expect(await readdir(context.folder)).toEqual([]);
});

test("init refuses a literal key, an existing configuration, and questions without a terminal", async ({ context }) => {
  // The search for secrets after the test would find the key if it was shown.
  expect(await context.run(["init", "--yes", "--key-variable", context.key])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("the name of an environment variable"),
  });
  expect(await context.run(["init"])).toMatchObject({ status: 2, stderr: expect.stringContaining("give --yes") });
  await context.configure({});
  expect(await context.run(["init", "--yes"])).toMatchObject(EXISTS);
});

test("at a terminal a question is repeated after a wrong answer, not after an empty one", async ({ context, skip }) => {
  skip(process.platform !== "linux", "needs util-linux's script");
  const { url } = await context.serve();
  const { terminal, output, ended } = startAtTerminal(context);
  const answers: [string, string][] = [
    ["address [", "not an address"],
    ["expected", url],
    ["API key [", ""],
    [`(${PROJECT_ID})\r\nThe id of the project [`, "9"],
    ['got "9"', ""],
    ["Groupings", "none, model"],
    ["again each night [", "3"],
  ];
  for (const [asked, answer] of answers) {
    await expect.poll(() => output.screen).toContain(asked);
    // The next question is searched for only in what follows, as both may use the same words.
    output.screen = output.screen.slice(output.screen.indexOf(asked) + asked.length);
    terminal.stdin.write(`${answer}\n`);
  }
  const [status] = await ended;
  expect({ status, ...output }).toEqual({ status: 0, screen: expect.stringContaining("wrote jobs.config.json") });
  const config = JSON.parse(await readFile(path.join(context.folder, "jobs.config.json"), "utf8"));
  expect(config.exports[0]).toMatchObject({ groupings: ["none", "model"], window: { days: 3 } });
});

test.for([
  ["Ctrl-C", "\u0003", "stopped by SIGINT"],
  ["Ctrl-D", "\u0004", "the input ended before the last answer"],
] as const)("%s at a question ends init without a file", async ([_key, typed, says], { context, skip }) => {
  skip(process.platform !== "linux", "needs util-linux's script");
  const { terminal, output, ended } = startAtTerminal(context);
  await expect.poll(() => output.screen).toContain("address [");
  terminal.stdin.write(typed);

  const [status] = await ended;
  expect({ status, ...output }).toEqual({ status: 1, screen: expect.stringContaining(says) });
  expect(existsSync(path.join(context.folder, "jobs.config.json"))).toBe(false);
});

/** Runs `init` at a terminal. `output.screen` is what it has shown. */
function startAtTerminal({ key, folder }: { readonly key: string; readonly folder: string }) {
  const env = { PATH: process.env.PATH, HOME: process.env.HOME, USAGE_EXPORT_KEY: key, TERM: "dumb" };
  // `script` gives the program a pseudo-terminal.
  const command = `${process.execPath} ${MAIN} init`;
  const terminal = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], { cwd: folder, env });
  const output = { screen: "" };
  terminal.stdout.setEncoding("utf8").on("data", (text: string) => {
    output.screen += text;
  });
  return { terminal, output, ended: once(terminal, "exit") };
}
