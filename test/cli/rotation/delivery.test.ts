import { chmod, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import {
  ageKeys,
  createdKeys,
  events,
  ledgerRows,
  type RotationContext,
  rotationTest,
  sinkSecret,
} from "./rotation-context.ts";

const test = await rotationTest();

/** A program that writes its input to a file, and that file, which may contain a key. */
async function storingCommand(
  context: RotationContext,
  script = "",
): Promise<{ readonly program: string; readonly file: string }> {
  const program = path.join(context.folder, "store-key");
  const file = path.join(context.folder, "stored.key");
  context.sinks.push(file);
  await writeFile(program, `#!/bin/sh\ncd '${context.folder}'\n${script}\ncat > stored.key\n`);
  await chmod(program, 0o700);
  return { program, file };
}

const stored = async (file: string) => (await readFile(file, "utf8")).trim();

async function sinksOf({ db }: RotationContext): Promise<readonly string[]> {
  const rows = await db.selectFrom("usage_export.key_delivery").select("sink").orderBy("sink").execute();
  return rows.map(({ sink }) => sink.split(" ")[0] ?? "");
}

test("every sink gets the same key before it is active", async ({ context }) => {
  const { program, file } = await storingCommand(context);
  await context.configure({ deliver: [{ file: context.sink }, { command: [program] }] });
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(await stored(file)).toBe(sinkSecret(context));
  expect(await events(context.db)).toEqual(["intent", "stored", "verified", "delivered", "delivered", "active"]);
});

test("a sink that fails three times and then works gets the one key that was made", async ({ context }) => {
  const script = 'echo x >> tries; [ "$(wc -l < tries)" -le 3 ] && { echo "vault is sealed"; exit 1; }';
  const { program, file } = await storingCommand(context, script);
  await context.configure({ deliver: [{ file: context.sink }, { command: [program] }] });
  for (let i = 0; i < 3; i++) {
    const { status, stdout } = await context.run(["rotate"]);
    expect(status).toBe(1);
    expect(stdout).toContain("ended with 1");
    expect(await ledgerRows(context.db)).toMatchObject([{ state: "pending", step: "verified" }]);
    expect(await sinksOf(context)).toEqual(["file"]);
  }
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(context.proxy.creates).toHaveLength(1);
  expect(await stored(file)).toBe(sinkSecret(context));
  expect((await events(context.db)).filter((event) => event === "delivered")).toHaveLength(2);
});

test("while a sink fails the current key stays in use, and the other sinks have a key that works", async ({
  context,
}) => {
  await context.prepare();
  await ageKeys(context.db, 30);
  await context.configure({ deliver: [{ command: ["false"] }, { file: context.sink }] });
  expect((await context.run(["rotate"])).status).toBe(1);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "active" }, { state: "pending" }]);
  expect(await sinksOf(context)).toEqual(["file"]);
  expect(context.emulator.secretWorks(sinkSecret(context) ?? "")).toBe(true);
});

test("a sink that is added gets the key in use, and no key is created for it", async ({ context }) => {
  await context.prepare();
  const { program, file } = await storingCommand(context);
  await context.configure({ deliver: [{ file: context.sink }, { command: [program] }] });
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(0);
  expect(stdout).toContain("a sink does not have the key in use");
  expect(await stored(file)).toBe(sinkSecret(context));
  expect(createdKeys(context)).toHaveLength(1);
});

test("without any sink the key is only in the database, and an export uses it", async ({ context }) => {
  await context.configure({ deliver: [] });
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "active" }]);
  expect((await context.run(["export"], { USAGE_EXPORT_KEY: undefined })).status).toBe(0);
});

test("nothing of the output of a command that prints the key is shown", async ({ context }) => {
  const { program } = await storingCommand(context, 'k=$(cat); env; echo "refused: $k"; exit 7');
  await context.configure({ deliver: [{ command: [program] }] });
  const { status, stdout, stderr } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toContain("ended with 7: its output is not shown, as it may hold the key");
  expect(stdout + stderr).not.toContain("refused");
  expect((await context.run(["status"])).stdout).not.toContain("refused");
});

test("a command that takes too long is ended, and the next rotation delivers again", async ({ context }) => {
  const { program, file } = await storingCommand(context, "[ -e slow ] || { touch slow; sleep 100; }");
  await context.configure({ deliver: [{ command: [program], timeoutSeconds: 1 }] });
  const late = await context.run(["rotate"]);
  expect(late).toMatchObject({ status: 1, stdout: expect.stringContaining("took longer than 1 s") });
  expect(late.durationMs).toBeLessThan(60_000);
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(context.emulator.secretWorks(await stored(file))).toBe(true);
  expect(context.proxy.creates).toHaveLength(1);
});
