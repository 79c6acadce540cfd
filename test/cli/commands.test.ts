// Commands that need neither a service nor a database.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { PROJECT_ID, worldTest } from "./world.ts";

const test = worldTest();

const COMMANDS = [
  "demo",
  "check",
  "migrate",
  "export",
  "rotate",
  "keys",
  "status",
  "report",
  "dump",
  "schema",
  "emulator",
];

test("--help lists every command", async ({ world }) => {
  const { status, stdout } = await world.run(["--help"]);
  expect({ status, commands: stdout.match(/(?<=^ {2})[a-z]+(?= \[options\])/gm) }).toEqual({
    status: 0,
    commands: expect.arrayContaining(COMMANDS),
  });
});

test.for(COMMANDS)("%s --help says what it does and which options it has", async (command, { world }) => {
  const { status, stdout, stderr } = await world.run([command, "--help"]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout).toMatch(new RegExp(`^Usage: usage-export ${command} .*\n\n\\w[^]*\n\nOptions:\n[^]*--config <file>`));
});

test("schema prints the schema that the repository has", async ({ world }) => {
  const { status, stdout } = await world.run(["schema"]);
  const file = path.join(import.meta.dirname, "../../jobs.config.schema.json");
  expect({ status, schema: stdout }).toEqual({ status: 0, schema: await readFile(file, "utf8") });
});

test("emulator serves until it is told to end, with a key that it does not show", async ({ world }) => {
  const program = world.start(["emulator", "--project", PROJECT_ID]);
  const line = await program.waitFor("answers at");
  const [url] = line.match(/http:\/\/127\.0\.0\.1:\d+/) ?? [];
  const response = await fetch(`${url}/v1/projects/${PROJECT_ID}/usage/breakdown`, {
    headers: { authorization: `Token ${world.key}` },
  });
  program.kill("SIGTERM");

  expect(response.status).toBe(200);
  expect(await program.ended).toMatchObject({ status: 0, stderr: "" });
  await expect(fetch(`${url}/v1/projects`)).rejects.toThrow("fetch failed");
});
