import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { runProgram, startScript } from "./program.ts";

const folder = await mkdtemp(path.join(await realpath(tmpdir()), "usage-export-program-"));
afterAll(() => rm(folder, { recursive: true }));

async function script(code: string): Promise<string> {
  const file = path.join(folder, `${crypto.randomUUID()}.mjs`);
  await writeFile(file, code);
  return file;
}

test("a result has the exit status and both outputs", async () => {
  const file = await script(`console.log(process.argv[2]); console.error("careful"); process.exitCode = 3;`);
  expect(await startScript(file, ["hello"], { env: {} }).ended).toMatchObject({
    status: 3,
    stdout: "hello\n",
    stderr: "careful\n",
  });
});

test("the program gets the given variables, and PATH, HOME and TZ", async () => {
  const file = await script(`console.log(Object.keys(process.env).sort().join(" "))`);
  const { stdout } = await startScript(file, [], { env: { GIVEN: "1" } }).ended;
  expect(
    stdout
      .trim()
      .split(" ")
      .filter((name) => name !== "TZ"),
  ).toEqual(["GIVEN", "HOME", "PATH"]);
});

test("the program reads the input it is given, in the folder it is given", async () => {
  const file = await script(`process.stdin.on("data", (data) => console.log(process.cwd(), String(data)))`);
  const { stdout } = await startScript(file, [], { env: {}, cwd: folder, stdin: "typed" }).ended;
  expect(stdout).toBe(`${folder} typed\n`);
});

test("a program that does not read its input succeeds", async () => {
  const { status } = await startScript(await script(""), [], { env: {}, stdin: "x".repeat(1_000_000) }).ended;
  expect(status).toBe(0);
});

const STAYS = `console.error("ready on port 7"); setInterval(() => {}, 1000);`;

test("a line can be waited for, and a signal ends the program without a status", async () => {
  await using program = startScript(await script(STAYS), [], { env: {} });
  expect(await program.waitFor("ready")).toBe("ready on port 7");
  program.kill("SIGTERM");
  expect(await program.ended).toMatchObject({ status: null });
});

test("waiting for a line rejects when the program ends without it, with the program's output", async () => {
  await using program = startScript(await script(`console.log("other words")`), [], { env: {} });
  await expect(program.waitFor("ready")).rejects.toThrow(/without "ready"; it wrote:\nother words/);
});

test("a program that does not end is killed at its time limit, and `ended` rejects", async () => {
  await using program = startScript(await script(STAYS), [], { env: {}, timeoutMs: 200 });
  await expect(program.ended).rejects.toThrow("killed after 200 ms");
  expect(isAlive(program.pid)).toBe(false);
});

test("a program that still runs at the end of its scope is killed", async () => {
  const file = await script(STAYS);
  const start = async () => {
    await using program = startScript(file, [], { env: {} });
    await program.waitFor("ready");
    return program.pid;
  };
  expect(isAlive(await start())).toBe(false);
});

test("`ended` rejects if the program can't be started", async () => {
  const program = startScript(await script(""), [], { env: {}, cwd: path.join(folder, "absent") });
  await expect(program.ended).rejects.toThrow("ENOENT");
});

function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false;
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test("the program is the one of this working copy", async () => {
  const { status, stdout } = await runProgram(["--help"], { env: {} });
  expect({ status, stdout }).toEqual({ status: 0, stdout: expect.stringContaining("usage-export") });
});
