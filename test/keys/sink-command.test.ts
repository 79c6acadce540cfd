import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { runKeyCommand, testKeyCommand } from "../../src/keys/sinks.ts";
import { Secret } from "../../src/secret.ts";
import { ENCODINGS } from "../support/encodings.ts";
import { findSecrets } from "../support/leak-search.ts";

const folder = await mkdtemp(path.join(tmpdir(), "usage-export-key-command-"));
afterAll(() => rm(folder, { recursive: true }));

const KEY = new Secret("c".repeat(40));
const OTHER = "d".repeat(40);

function run(script: string, timeoutSeconds = 10): Promise<void> {
  const sink = { kind: "command", command: ["sh", "-c", script, "sh", folder], timeoutSeconds } as const;
  return runKeyCommand(sink, KEY, "id-of-the-key", (text) => text.replaceAll(OTHER, "[secret]"));
}

const written = (name: string) => readFile(path.join(folder, name), "utf8");

test("the key comes on standard input, on a line of its own, and its id in the environment", async () => {
  await run('cat > "$1/input"; echo "$USAGE_EXPORT_API_KEY_ID" > "$1/id"');
  expect(await written("input")).toBe(`${KEY.reveal()}\n`);
  expect(await written("id")).toBe("id-of-the-key\n");
});

test("of this process's environment the command gets only PATH and HOME", async () => {
  process.env.A_SECRET_OF_OURS = "secret";
  onTestFinished(() => {
    delete process.env.A_SECRET_OF_OURS;
  });
  await run('env | cut -d= -f1 | sort > "$1/names"');
  // The shell adds these variables itself.
  const own = ["OLDPWD", "PWD", "SHLVL", "_"];
  const names = (await written("names")).trim().split("\n");
  expect(names.filter((name) => !own.includes(name))).toEqual(["HOME", "PATH", "USAGE_EXPORT_API_KEY_ID"]);
});

test("the key is neither among the command's arguments nor in its environment, where others could see it", async () => {
  await run('echo "$0" "$@" > "$1/arguments"; env > "$1/environment"');
  expect(await written("arguments")).toBe(`sh ${folder}\n`);
  expect(await written("environment")).not.toContain(KEY.reveal());
});

test("a command that succeeds without reading the key is a success", async () => {
  await expect(run("exit 0")).resolves.toBeUndefined();
});

test("the error of a failed command has its exit status and its last line", async () => {
  await expect(run("echo first; echo no room left >&2; exit 3")).rejects.toMatchObject({
    code: "delivery",
    message: 'the command "sh" ended with 3: no room left',
  });
});

test("the error of a command that failed without output has only its exit status", async () => {
  await expect(run("exit 1")).rejects.toThrow(/^the command "sh" ended with 1$/);
});

test("the error of a command that a signal ended names the signal", async () => {
  await expect(run("kill -TERM $$")).rejects.toThrow('the command "sh" ended with SIGTERM');
});

test("the key and other secrets in a command's output are hidden, even where the output is cut", async () => {
  const error = await run(`k=$(cat); i=0; while [ $i -lt 40 ]; do echo "$k ${OTHER}"; i=$((i+1)); done; exit 1`).catch(
    String,
  );
  expect(error).toContain("[secret] [secret]");
  expect(error).not.toMatch(/c{8}|d{8}/);
  expect(String(error).length).toBeLessThan(400);
});

test.each(Object.keys(ENCODINGS))("a key that a command prints is hidden, %s", async (encoding) => {
  const key = new Secret(randomBytes(20).toString("hex"));
  const echo = path.join(import.meta.dirname, "../support/echo-key.ts");
  const sink = { kind: "command", command: [process.execPath, echo, encoding], timeoutSeconds: 30 } as const;
  const { message } = await runKeyCommand(sink, key, "id", (text) => text).catch((error) => error);
  expect(message).toMatch(/ended with 1(: |; its last line is not shown, as it may hold the key$)/);
  expect(findSecrets(message, [key.reveal()])).toEqual([]);
});

test("a hash that a command prints is hidden, and the words around it are shown", async () => {
  const error = await run('echo "no room for $(sha256sum | cut -d" " -f1) on disk 12" >&2; exit 1').catch(String);
  expect(error).toContain("ended with 1: no room for [hidden] on disk 12");
});

test("control characters that a command prints are removed", async () => {
  const error = await run("printf 'no \\033[2Jroom\\a\\302\\2332J left'; exit 1").catch(String);
  expect(error).toContain("ended with 1: no [2Jroom 2J left");
});

test("a command with much output succeeds", async () => {
  await expect(run("head -c 300000 /dev/zero | tr '\\0' x")).resolves.toBeUndefined();
});

test("at the time limit the command and the processes that it started are ended", async () => {
  const startedMs = performance.now();
  await expect(run('echo waiting; (sleep 60; echo late > "$1/late"); true', 1)).rejects.toThrow(
    'the command "sh" took longer than 1 s: waiting',
  );
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

test("a command that ignores signals is ended at the time limit too", async () => {
  const startedMs = performance.now();
  await expect(run("trap '' TERM INT; while true; do sleep 1; done", 1)).rejects.toThrow("took longer than 1 s");
  expect(performance.now() - startedMs).toBeLessThan(30_000);
});

test("a process that a command leaves running does not delay the delivery", async () => {
  const startedMs = performance.now();
  await expect(run('sleep 60 & echo $! > "$1/pid"; exit 0')).resolves.toBeUndefined();
  expect(performance.now() - startedMs).toBeLessThan(30_000);
  process.kill(Number(await written("pid")));
});

test("a missing program fails the test of the sink, and the delivery", async () => {
  const program = "no-such-program-anywhere";
  await expect(testKeyCommand(program)).rejects.toMatchObject({
    code: "delivery",
    message: `the command "${program}" does not exist, or may not be run`,
  });
  const sink = { kind: "command", command: [program], timeoutSeconds: 1 } as const;
  await expect(runKeyCommand(sink, KEY, "id", (text) => text)).rejects.toMatchObject({
    code: "delivery",
    message: `the command "${program}" could not be run (ENOENT)`,
  });
});

test.each([
  ["by its name", "sh"],
  ["by its path", "/bin/sh"],
])("a program that can be found %s passes the test of the sink, and is not run", async (_, program) => {
  await expect(testKeyCommand(program)).resolves.toBeUndefined();
});

test("a file that may not be run, and a folder, fail the test of the sink", async () => {
  const file = path.join(folder, "not-a-program");
  await writeFile(file, "#!/bin/sh\n", { mode: 0o600 });
  await expect(testKeyCommand(file)).rejects.toMatchObject({ code: "delivery" });
  await expect(testKeyCommand(folder)).rejects.toMatchObject({ code: "delivery" });
});
