import { chmod, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { ageKeys, events, ledgerRows, type RotationContext, rotationTest, sinkSecret } from "./rotation-context.ts";

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

test("a sink that fails three times and then works gets the one key that was made; until then the current key stays in use", async ({
  context,
}) => {
  await context.prepare();
  await ageKeys(context.db, 30);
  const script = 'echo x >> tries; [ "$(wc -l < tries)" -le 3 ] && { echo "vault is sealed"; exit 1; }';
  const { program, file } = await storingCommand(context, script);
  await context.configure({ deliver: [{ command: [program] }, { file: context.sink }] });
  for (let i = 0; i < 3; i++) {
    const { status, stdout } = await context.run(["rotate"]);
    expect(status).toBe(1);
    expect(stdout).toContain("ended with 1");
    expect(await ledgerRows(context.db)).toMatchObject([{ state: "active" }, { state: "pending", step: "verified" }]);
    expect(await sinksOf(context)).toEqual(["file"]);
    expect(context.emulator.secretWorks(sinkSecret(context) ?? "")).toBe(true);
  }
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(context.proxy.creates).toHaveLength(2);
  expect(await stored(file)).toBe(sinkSecret(context));
  expect((await events(context.db)).filter((event) => event === "delivered")).toHaveLength(3);
});
