import { expect } from "vitest";
import { age, events, ledgerRows, type RotationWorld, rotationTest, sinkSecret } from "./rotation-world.ts";

const test = rotationTest();

/** Makes so many keys, one after the other, and returns what the sink held of each. */
async function makeKeys(world: RotationWorld, count: number): Promise<readonly string[]> {
  const secrets: string[] = [];
  for (let i = 0; i < count; i++) {
    await world.prepare({ now: true });
    secrets.push(sinkSecret(world) ?? "");
  }
  return secrets;
}

const statesOf = async ({ db }: RotationWorld) => (await ledgerRows(db)).map(({ state }) => state);

test("--rollback tries the previous key, delivers it and takes it into use", async ({ world }) => {
  const [first] = await makeKeys(world, 2);
  const { status, stdout } = await world.run(["rotate", "--rollback"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/recall .*\n.*deliver .*\n.*promote .*\n.*due in 30 days/);
  expect(sinkSecret(world)).toBe(first);
  expect(await statesOf(world)).toEqual(["active", "draining"]);
  expect((await events(world.db)).slice(-3)).toEqual(["rollback", "delivered", "active"]);
});

test("an old key that was put back is not replaced at once", async ({ world }) => {
  const [first] = await makeKeys(world, 1);
  await age(world.db, 30);
  await world.prepare();
  await world.run(["rotate", "--rollback"]);
  expect(sinkSecret(world)).toBe(first);
  expect((await world.run(["rotate"])).stdout).toContain("the active key is 0 days old; due in 30 days");
  expect(await statesOf(world)).toEqual(["active", "draining"]);
});

test("asked for twice it goes back twice, and then says that there is nothing before", async ({ world }) => {
  const [first, second] = await makeKeys(world, 3);
  await world.run(["rotate", "--rollback"]);
  expect(sinkSecret(world)).toBe(second);
  await world.run(["rotate", "--rollback"]);
  expect(sinkSecret(world)).toBe(first);
  const { status, stdout } = await world.run(["rotate", "--rollback"]);
  expect({ status, stdout }).toEqual({
    status: 1,
    stdout: "exporter\n  failed: there is no previous key to put back\n",
  });
  expect(await statesOf(world)).toEqual(["active", "draining", "draining"]);
});

test("a previous key that does not work any more is not put back", async ({ world }) => {
  const [first, second] = await makeKeys(world, 2);
  const [row] = await ledgerRows(world.db);
  const url = `${world.emulator.url}/v1/projects/project-1/keys/${row?.api_key_id}`;
  await fetch(url, { method: "DELETE", headers: { authorization: `Token ${world.firstKey}` } });
  const { status, stdout } = await world.run(["rotate", "--rollback"]);
  expect(status).toBe(1);
  expect(stdout).toContain("does not accept the key");
  expect(sinkSecret(world)).toBe(second);
  expect(second).not.toBe(first);
  expect(await statesOf(world)).toEqual(["draining", "active"]);
});

test("a key on its way is given up for the previous one", async ({ world }) => {
  const [first] = await makeKeys(world, 2);
  await world.configure({ deliver: [{ file: world.sink }, { command: ["false"] }] });
  await world.run(["rotate", "--now"]);
  expect(await statesOf(world)).toEqual(["draining", "active", "pending"]);
  await world.configure();
  expect((await world.run(["rotate", "--rollback"])).status).toBe(0);
  expect(sinkSecret(world)).toBe(first);
  expect(await statesOf(world)).toEqual(["active", "draining", "draining"]);
});

test("two processes that are asked to roll back go back once", async ({ world }) => {
  const [, second] = await makeKeys(world, 3);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  world.emulator.fault = ({ path }) => (path === "/v1/auth/token" ? { kind: "hold", until: held } : undefined);
  const one = world.start(["rotate", "--rollback"]);
  const other = world.start(["rotate", "--rollback"]);
  await Promise.any([one, other].map((program) => program.waitFor("waiting for another process")));
  release();
  expect([(await one.ended).status, (await other.ended).status]).toEqual([0, 0]);
  expect(sinkSecret(world)).toBe(second);
});

test("--rollback needs a rotation where there are several, and excludes --now", async ({ world }) => {
  const common = { schedule: "0 4 * * *", project: "production", comment: "exporter", scopes: ["member"] };
  await world.configure(
    {},
    {
      rotations: [
        { ...common, name: "exporter" },
        { ...common, name: "other" },
      ],
    },
  );
  const several = await world.run(["rotate", "--rollback"]);
  expect(several).toMatchObject({ status: 2, stderr: expect.stringContaining("--rollback needs --job") });
  const both = await world.run(["rotate", "--rollback", "--now"]);
  expect(both).toMatchObject({ status: 2, stderr: expect.stringContaining("exclude each other") });
});
