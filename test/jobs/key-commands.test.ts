import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { errorText } from "../../src/errors.ts";
import { openStaticKeys } from "../../src/jobs/key-ring.ts";
import { Scrubber } from "../../src/secret.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder(afterAll);

const KEY = "e".repeat(40);
const NEW_KEY = "f".repeat(40);

let vaults = 0;
/** A key command that prints the content of a file as the key and counts its runs, and functions that use it. */
function openVault({ script = 'echo x >> "$1.runs"; cat "$1"', timeoutSeconds = 10, variables = ["VAULT"] } = {}) {
  const file = path.join(folder, `vault-${vaults++}`);
  writeFileSync(file, `${KEY}\n`);
  writeFileSync(`${file}.runs`, "");
  const clock = { nowMs: 0 };
  const scrubber = new Scrubber();
  const stop = new AbortController();
  const env = { VAULT: "https://vault.example", OTHER: "a secret of ours" };
  const commands = openStaticKeys({ env, scrubber, signal: stop.signal }, () => clock.nowMs);
  const sourceOf = (...more: string[]) => {
    const command = ["sh", "-c", script, "sh", file, ...more];
    return { command, timeoutSeconds, variables };
  };
  return {
    ...{ file, clock, scrubber, commands, sourceOf },
    stop: () => stop.abort(new Error("the program stops")),
    read: async (...more: string[]) => (await commands.read(sourceOf(...more))).reveal(),
    reportRefusal: async () => commands.reportRefusal(await commands.read(sourceOf())),
    runs: () => readFileSync(`${file}.runs`, "utf8").split("x").length - 1,
  };
}

const failureOf = (reading: Promise<unknown>) => reading.then(() => "no error", errorText);

test("the key that a command prints is scrubbed from then on", async () => {
  const vault = openVault();
  writeFileSync(vault.file, `  ${KEY}\n\n`);
  expect(await vault.read()).toBe(KEY);
  expect(vault.scrubber.scrub(`the key is ${KEY}`)).toBe("the key is [secret]");
});

test("a command runs once for all projects that share it, even if they read the key at the same time", async () => {
  const vault = openVault();
  await Promise.all(Array.from({ length: 20 }, () => vault.read()));
  vault.clock.nowMs += 24 * 3_600_000;
  await vault.read();
  expect(vault.runs()).toBe(1);
  await vault.read("another project");
  expect(vault.runs()).toBe(2);
});

test("a command whose key the service refuses runs again at most once a minute", async () => {
  const vault = openVault();
  await vault.read();
  writeFileSync(vault.file, NEW_KEY);
  await vault.reportRefusal();
  expect(await vault.read()).toBe(KEY);
  vault.clock.nowMs += 61_000;
  expect(await vault.read()).toBe(NEW_KEY);
  await vault.read();
  expect(vault.runs()).toBe(2);
});

test("a refusal of an older key does not run the command again", async () => {
  const vault = openVault();
  const { commands } = vault;
  const old = await commands.read(vault.sourceOf());
  vault.clock.nowMs += 61_000;
  commands.reportRefusal(old);
  writeFileSync(vault.file, NEW_KEY);
  expect((await commands.read(vault.sourceOf())).reveal()).toBe(NEW_KEY);
  vault.clock.nowMs += 61_000;
  commands.reportRefusal(old);
  await commands.read(vault.sourceOf());
  expect(vault.runs()).toBe(2);
});

test("a command that failed is run again after a minute", async () => {
  const vault = openVault({ script: 'echo x >> "$1.runs"; cat "$1"; cat "$1" >&2; exit 3' });
  const reading = failureOf(vault.read());
  // The minute begins when the command has ended.
  vault.clock.nowMs += 61_000;
  const first = await reading;
  expect(first).toMatch(/^the key command "sh" ended with 3 /);
  expect(first).not.toContain(KEY);
  await failureOf(vault.read());
  expect(vault.runs()).toBe(1);
  vault.clock.nowMs += 61_000;
  await failureOf(vault.read());
  expect(vault.runs()).toBe(2);
});

test("a command that prints nothing counts as a vault that is away for a while", async () => {
  const vault = openVault();
  writeFileSync(vault.file, "\n");
  await expect(vault.read()).rejects.toMatchObject({
    code: "unavailable",
    message: 'the key command "sh" printed nothing: expected the API key',
  });
});

test.each([
  [`${KEY} ${KEY}`, "does not hold the API key alone"],
  [`Token ${KEY}`, "does not hold the API key alone"],
  ["k".repeat(5000), "holds 5000 characters"],
])("output that can't be a key is refused without being shown: %j", async (output, says) => {
  const vault = openVault();
  writeFileSync(vault.file, output);
  const failure = await failureOf(vault.read());
  expect(failure).toContain('the output of the key command "sh" ');
  expect(failure).toContain(says);
  expect(failure).not.toContain(output.slice(-40));
});

test("a process that a command started ends when the program is stopped", async () => {
  const vault = openVault({ script: 'sleep 200 & echo $! > "$1"; wait', timeoutSeconds: 60 });
  writeFileSync(vault.file, "");
  const reading = failureOf(vault.read());
  await expect.poll(() => readFileSync(vault.file, "utf8")).not.toBe("");
  vault.stop();
  expect(await reading).toBe("the program stops");
  await expect.poll(() => isRunning(Number(readFileSync(vault.file, "utf8")))).toBe(false);
});

test("at most four commands run at once", async () => {
  const vault = openVault({ script: 'echo + >> "$1.log"; sleep 0.05; echo - >> "$1.log"; cat "$1"' });
  appendFileSync(`${vault.file}.log`, "");
  await Promise.all(Array.from({ length: 12 }, (_, i) => vault.read(String(i))));
  let running = 0;
  const counts = readFileSync(`${vault.file}.log`, "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      running += line === "+" ? 1 : -1;
      return running;
    });
  expect(counts).toHaveLength(24);
  expect(Math.max(...counts)).toBeLessThanOrEqual(4);
});

function isRunning(pid: number): boolean {
  try {
    // A process that has ended is still listed, in state Z, until its parent reads its status.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}
