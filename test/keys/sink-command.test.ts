import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { deliverKey, testSink } from "../../src/keys/sinks.ts";
import { Secret } from "../../src/secret.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const folder = temporaryFolder(afterAll);

const KEY = new Secret("c".repeat(40));

const sinkOf = (command: readonly string[], timeoutSeconds = 10) => ({ command: [...command], timeoutSeconds });

function run(script: string, timeoutSeconds?: number): Promise<void> {
  const sink = sinkOf(["sh", "-c", script, "sh", folder], timeoutSeconds);
  return deliverKey(sink, { key: KEY, apiKeyId: "id-of-the-key" });
}

const readWritten = (name: string) => readFile(path.join(folder, name), "utf8");

test("a command gets the key only on standard input", async () => {
  await run(
    'cat > "$1/input"; echo "$USAGE_EXPORT_API_KEY_ID" > "$1/id"; echo "$0" "$@" > "$1/arguments"; env > "$1/environment"',
  );
  expect(await readWritten("input")).toBe(`${KEY.reveal()}\n`);
  expect(await readWritten("id")).toBe("id-of-the-key\n");
  expect(await readWritten("arguments")).toBe(`sh ${folder}\n`);
  expect(await readWritten("environment")).not.toContain(KEY.reveal());
});

test("of this process's environment the command gets only PATH and HOME", async () => {
  process.env.A_SECRET_OF_OURS = "secret";
  onTestFinished(() => {
    delete process.env.A_SECRET_OF_OURS;
  });
  await run('env | cut -d= -f1 | sort > "$1/names"');
  const addedByShell = ["OLDPWD", "PWD", "SHLVL", "_"];
  const names = (await readWritten("names")).trim().split("\n");
  expect(names.filter((name) => !addedByShell.includes(name))).toEqual(["HOME", "PATH", "USAGE_EXPORT_API_KEY_ID"]);
});

const OUTPUT_HIDDEN = "its output is not shown, as it may hold the key; run it by hand to see why";

test.each([
  ["exits with 3", "cat; echo no room left >&2; exit 3", "ended with 3"],
  ["is ended by a signal", "echo first; kill -TERM $$", "ended with SIGTERM"],
])("the error about a command that %s hides the command's output", async (_, script, failure) => {
  const message = `the command "sh" ${failure}: ${OUTPUT_HIDDEN}`;
  await expect(run(script)).rejects.toMatchObject({ code: "delivery", message });
});

test("at the time limit the command and the processes that it started are ended", async () => {
  const startedMs = performance.now();
  const delivery = run('echo waiting; (sleep 60; echo late > "$1/late"); true', 1);
  await expect(delivery).rejects.toThrow('the command "sh" took longer than 1 s');
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

test("a missing program fails the test of the sink and the delivery", async () => {
  const sink = sinkOf(["no-such-program"]);
  const failure = (what: string) => ({ code: "delivery", message: `the command "no-such-program" ${what}` });
  await expect(testSink(sink)).rejects.toMatchObject(failure("does not exist, or may not be run"));
  const delivery = deliverKey(sink, { key: KEY, apiKeyId: "id" });
  await expect(delivery).rejects.toMatchObject(failure(`could not be run (ENOENT): ${OUTPUT_HIDDEN}`));
});

test("only a program that may be run passes the test of the sink", async () => {
  const file = path.join(folder, "not-a-program");
  await writeFile(file, "#!/bin/sh\n", { mode: 0o600 });
  await expect(testSink(sinkOf([file]))).rejects.toMatchObject({ code: "delivery" });
  await expect(testSink(sinkOf([folder]))).rejects.toMatchObject({ code: "delivery" });
  await expect(testSink(sinkOf(["sh"]))).resolves.toBeUndefined();
});
