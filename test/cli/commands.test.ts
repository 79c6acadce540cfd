// Commands that need neither a service nor a database.

import { readFile } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { expect } from "vitest";
import { defineCommands } from "../../src/cli/commands.ts";
import { PROJECT_ID, programTest } from "./program-context.ts";

const test = programTest();

const PROGRAM = defineCommands("0.0.0", () => {});

test("--help lists every command and the environment variables", async ({ context }) => {
  const { status, stdout } = await context.run(["--help"]);
  expect(stdout).toMatch(/\nEnvironment:\n {2}DATABASE_URL /);
  expect({ status, commands: stdout.match(/(?<=^ {2})[a-z]+(?= \[options\])/gm) }).toEqual({
    status: 0,
    commands: PROGRAM.commands.map((command) => command.name()),
  });
});

test("help COMMAND prints the same as COMMAND --help: what it does, its options and examples", async ({ context }) => {
  const [help, asked] = await Promise.all([context.run(["help", "export"]), context.run(["export", "--help"])]);
  expect(help).toMatchObject({ status: 0, stdout: asked.stdout });
  expect(asked).toMatchObject({ status: 0, stderr: "" });
  expect(asked.stdout).toMatch(
    /^Usage: usage-export export .*\n\n\w.*\n\nOptions:\n.*--config <file>.*\n\nExamples:\n {2}usage-export export/s,
  );
});

test("help for an unknown command ends with status 2", async ({ context }) => {
  expect(await context.run(["help", "exprot"])).toMatchObject({ status: 2, stdout: "" });
});

const commandsIn = ({ commands }: Command): Command[] => commands.flatMap((one) => [one, ...commandsIn(one)]);

test("the examples of each command are valid command lines", () => {
  for (const command of commandsIn(PROGRAM)) {
    const help: string[] = [];
    command.configureOutput({ writeOut: (text) => help.push(text) }).outputHelp();
    const examples = help.join("").match(/(?<=^ {2}usage-export ).*/gm) ?? [];
    expect(examples.length).toBeGreaterThan(0);
    for (const example of examples) {
      const words = (example.match(/"[^"]*"|\S+/g) ?? []).map((word) => word.replaceAll('"', ""));
      expect(words).toContain(command.name());
      const chosen: string[] = [];
      defineCommands("0.0.0", (configPath) => chosen.push(configPath)).parse(words, { from: "user" });
      expect(chosen).toHaveLength(1);
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

test("emulator serves until it is stopped, and does not print the given key", async ({ context }) => {
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
