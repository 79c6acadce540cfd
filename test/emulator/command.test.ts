import { existsSync, readFileSync, statSync } from "node:fs";
import { expect, test } from "vitest";
import { type EmulatorOptions, runEmulator } from "../../src/cli/emulator.ts";
import { startEmulator } from "../support/emulator.ts";

const OPTIONS = { port: 0, dialect: "interface", seed: 1, project: ["demo"] } satisfies EmulatorOptions;

/** Starts the command, waits for its first output, and returns a function that stops it. */
async function startCommand(env: Readonly<Record<string, string>>, options: EmulatorOptions = OPTIONS) {
  const stop = new AbortController();
  const said = Promise.withResolvers<string>();
  const ended = runEmulator({ env, write: said.resolve, signal: stop.signal }, options);
  const text = await Promise.race([said.promise, ended.then((status) => `ended with ${status}`)]);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0] ?? "";
  return { text, url, stop: () => stop.abort(), ended };
}

const breakdown = (url: string, secret: string) =>
  fetch(`${url}/v1/projects/demo/usage/breakdown`, { headers: { authorization: `Token ${secret}` } });

test("the command takes its first key from the environment, and does not print it", async () => {
  const command = await startCommand({ USAGE_EXPORT_KEY: "key-of-the-environment" });
  expect((await breakdown(command.url, "key-of-the-environment")).status).toBe(200);
  expect(command.text).not.toContain("key-of-the-environment");
  command.stop();
  expect(await command.ended).toBe(0);
});

test("without a key in the environment, a key is made in a file that only the user can read, and removed at the end", async () => {
  const command = await startCommand({});
  const file = /\/\S+first\.key/.exec(command.text)?.[0] ?? "";
  expect(statSync(file).mode & 0o777).toBe(0o600);
  const secret = readFileSync(file, "utf8").trim();
  expect(secret).toMatch(/^[0-9a-f]{40}$/);
  expect(command.text).not.toContain(secret);
  expect((await breakdown(command.url, secret)).status).toBe(200);
  command.stop();
  expect(await command.ended).toBe(0);
  expect(existsSync(file)).toBe(false);
});

test("with several projects the key may use each of them, and the configuration that is printed names each", async () => {
  const command = await startCommand({ USAGE_EXPORT_KEY: "one-key" }, { ...OPTIONS, project: ["berlin", "paris"] });
  const answer = await fetch(`${command.url}/v1/projects/paris/usage/breakdown`, {
    headers: { authorization: "Token one-key" },
  });
  expect(answer.status).toBe(200);
  expect(command.text).toMatch(/"id": "berlin".*"id": "paris"/s);
  command.stop();
  await command.ended;
});

test("a port that is in use is refused with the code config", async () => {
  await using other = await startEmulator({ consoleKeys: [] });
  const options = { ...OPTIONS, port: Number(new URL(other.url).port) };
  const stopped = AbortSignal.timeout(5_000);
  await expect(runEmulator({ env: {}, write: () => {}, signal: stopped }, options)).rejects.toMatchObject({
    code: "config",
  });
});
