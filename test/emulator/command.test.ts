import { expect, test } from "vitest";
import { type EmulatorCommandOptions, runEmulator } from "../../src/cli/emulator.ts";
import { startEmulator } from "../support/emulator.ts";

const OPTIONS = { port: 0, dialect: "interface", project: ["demo"] } satisfies EmulatorCommandOptions;

/** Starts the command and waits for its first output. `ended` resolves when the command has ended. */
async function startCommand(env: Readonly<Record<string, string>>, options: EmulatorCommandOptions = OPTIONS) {
  const stop = new AbortController();
  const firstText = Promise.withResolvers<string>();
  const ended = runEmulator({ env, write: firstText.resolve, signal: stop.signal }, options);
  const text = await Promise.race([firstText.promise, ended.then((status) => `ended with ${status}`)]);
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0] ?? "";
  return { text, url, stop: () => stop.abort(), ended };
}

test("without a key in the environment, the error says what to set", async () => {
  await expect(startCommand({})).rejects.toThrow("USAGE_EXPORT_KEY is not set: set it to any text");
});

test("with several projects the key may use each of them", async () => {
  const command = await startCommand({ USAGE_EXPORT_KEY: "one-key" }, { ...OPTIONS, project: ["berlin", "paris"] });
  const ask = async (path: string) => {
    const headers = { authorization: "Token one-key" };
    const answer = await fetch(`${command.url}/v1/projects/paris/${path}`, { headers });
    expect(answer.status).toBe(200);
    return answer.json();
  };
  await ask("usage/breakdown");
  // The comment of one of the keys to which the made-up usage belongs.
  expect(JSON.stringify(await ask("keys"))).toContain('"comment":"call centre"');
  expect(command.text).toContain("--project berlin");
  command.stop();
  await command.ended;
});

test("a port that is in use is refused with the code config", async () => {
  await using other = await startEmulator({ consoleKeys: [] });
  const options = { ...OPTIONS, port: Number(new URL(other.url).port) };
  await expect(startCommand({ USAGE_EXPORT_KEY: "k" }, options)).rejects.toMatchObject({ code: "config" });
});
