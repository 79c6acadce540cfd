import { chmod, readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import {
  age,
  createdKeys,
  events,
  ledgerRows,
  type RotationWorld,
  rotationTest,
  sinkSecret,
} from "./rotation-world.ts";

const test = rotationTest();

/** A program that stores what it reads, in a file that may hold a key. */
async function storingCommand(
  world: RotationWorld,
  script = "",
): Promise<{ readonly program: string; readonly file: string }> {
  const program = path.join(world.folder, "store-key");
  const file = path.join(world.folder, "stored.key");
  world.sinks.push(file);
  await writeFile(program, `#!/bin/sh\ncd '${world.folder}'\n${script}\ncat > stored.key\n`);
  await chmod(program, 0o700);
  return { program, file };
}

const stored = async (file: string) => (await readFile(file, "utf8")).trim();

async function sinksOf({ db }: RotationWorld): Promise<readonly string[]> {
  const rows = await db.selectFrom("usage_export.key_delivery").select("sink").orderBy("sink").execute();
  return rows.map(({ sink }) => sink.split(" ")[0] ?? "");
}

test("every sink gets the same key before it is taken into use", async ({ world }) => {
  const { program, file } = await storingCommand(world);
  await world.configure({ deliver: [{ file: world.sink }, { command: [program] }] });
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(await stored(file)).toBe(sinkSecret(world));
  expect(await events(world.db)).toEqual(["intent", "stored", "verified", "delivered", "delivered", "active"]);
});

test("a sink that fails three times and then works gets the one key that was made", async ({ world }) => {
  const script = 'echo x >> tries; [ "$(wc -l < tries)" -le 3 ] && { echo "vault is sealed"; exit 1; }';
  const { program, file } = await storingCommand(world, script);
  await world.configure({ deliver: [{ file: world.sink }, { command: [program] }] });
  for (let i = 0; i < 3; i++) {
    const { status, stdout } = await world.run(["rotate"]);
    expect(status).toBe(1);
    expect(stdout).toContain("ended with 1: vault is sealed");
    expect(await ledgerRows(world.db)).toMatchObject([{ state: "pending", step: "verified" }]);
    expect(await sinksOf(world)).toEqual(["file"]);
  }
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(world.proxy.creates).toHaveLength(1);
  expect(await stored(file)).toBe(sinkSecret(world));
  expect((await events(world.db)).filter((event) => event === "delivered")).toHaveLength(2);
});

test("while a sink fails the current key stays in use, and the other sinks have a key that works", async ({
  world,
}) => {
  await world.prepare();
  await age(world.db, 30);
  await world.configure({ deliver: [{ command: ["false"] }, { file: world.sink }] });
  expect((await world.run(["rotate"])).status).toBe(1);
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "active" }, { state: "pending" }]);
  expect(await sinksOf(world)).toEqual(["file"]);
  expect(world.emulator.secretWorks(sinkSecret(world) ?? "")).toBe(true);
});

test("a sink that is added gets the key in use, and none is made for it", async ({ world }) => {
  await world.prepare();
  const { program, file } = await storingCommand(world);
  await world.configure({ deliver: [{ file: world.sink }, { command: [program] }] });
  const { status, stdout } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stdout).toContain("a sink does not have the key in use");
  expect(await stored(file)).toBe(sinkSecret(world));
  expect(createdKeys(world)).toHaveLength(1);
});

test("without any sink the key is in the keystore alone", async ({ world }) => {
  await world.configure({ deliver: [] });
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "active" }]);
  expect((await world.run(["export"], { USAGE_EXPORT_KEY: undefined })).status).toBe(0);
});

test("a command that says the key and shows its environment gives nothing away", async ({ world }) => {
  const { program } = await storingCommand(world, 'k=$(cat); env; echo "refused: $k"; exit 1');
  await world.configure({ deliver: [{ command: [program] }] });
  const { status, stdout } = await world.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toContain("refused: [secret]");
});

test("a command that prints the key in base64 gives nothing away", async ({ world }) => {
  await world.configure({ deliver: [{ command: ["sh", "-c", "echo refused:; base64; exit 7"] }] });
  const { status, stdout } = await world.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toContain('the command "sh" ended with 7; its last line is not shown, as it may hold the key');
  await world.run(["status"]);
  await world.run(["keys"]);
});

test("a command that takes too long is ended, and the delivery is tried again by the next rotation", async ({
  world,
}) => {
  const { program, file } = await storingCommand(world, "[ -e slow ] || { touch slow; sleep 30; }");
  await world.configure({ deliver: [{ command: [program], timeoutSeconds: 1 }] });
  const late = await world.run(["rotate"]);
  expect(late).toMatchObject({ status: 1, stdout: expect.stringContaining("took longer than 1 s") });
  expect(late.durationMs).toBeLessThan(15_000);
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(world.emulator.secretWorks(await stored(file))).toBe(true);
  expect(world.proxy.creates).toHaveLength(1);
});
