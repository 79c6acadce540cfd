import { expect } from "vitest";
import { events, ledgerRows, type RotationContext, rotationTest, sinkSecret } from "./rotation-context.ts";

const test = await rotationTest();

/** Makes `count` keys, one after the other, and returns their secrets. */
async function makeKeys(context: RotationContext, count: number): Promise<readonly string[]> {
  const secrets: string[] = [];
  for (let i = 0; i < count; i++) {
    await context.prepare({ now: true });
    secrets.push(sinkSecret(context) ?? "");
  }
  return secrets;
}

const statesOf = async ({ db }: RotationContext) => (await ledgerRows(db)).map(({ state }) => state);

test("--rollback verifies the previous key, delivers it and makes it active", async ({ context }) => {
  const [first] = await makeKeys(context, 2);
  const { status, stdout } = await context.run(["rotate", "--rollback"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/rollback .*\n.*deliver .*\n.*promote .*\n.*due in 30 days/);
  expect(sinkSecret(context)).toBe(first);
  expect(await statesOf(context)).toEqual(["active", "draining"]);
  expect((await events(context.db)).slice(-3)).toEqual(["rollback", "delivered", "active"]);
});

test("a previous key that does not work any more is not put back", async ({ context }) => {
  const [first, second] = await makeKeys(context, 2);
  const [row] = await ledgerRows(context.db);
  const url = `${context.emulator.url}/v1/projects/project-1/keys/${row?.api_key_id}`;
  await fetch(url, { method: "DELETE", headers: { authorization: `Token ${context.firstKey}` } });
  const { status, stdout } = await context.run(["rotate", "--rollback"]);
  expect(status).toBe(1);
  expect(stdout).toContain("does not accept the key");
  expect(sinkSecret(context)).toBe(second);
  expect(second).not.toBe(first);
  expect(await statesOf(context)).toEqual(["draining", "active"]);
});

test("two concurrent rollbacks together go back one key", async ({ context }) => {
  const [, second] = await makeKeys(context, 3);
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  context.emulator.fault = ({ path }) => (path === "/v1/auth/token" ? { kind: "hold", until: held } : undefined);
  const one = context.start(["rotate", "--rollback"]);
  const other = context.start(["rotate", "--rollback"]);
  await Promise.any([one, other].map((program) => program.waitFor("waiting for another process")));
  release();
  expect([(await one.ended).status, (await other.ended).status]).toEqual([0, 0]);
  expect(sinkSecret(context)).toBe(second);
});

test("--rollback needs --job if there are several rotations, and excludes --now", async ({ context }) => {
  const common = { schedule: "0 4 * * *", project: "production", comment: "exporter", scopes: ["member"] };
  await context.configure(
    {},
    {
      rotations: [
        { ...common, name: "exporter" },
        { ...common, name: "other" },
      ],
    },
  );
  const several = await context.run(["rotate", "--rollback"]);
  expect(several).toMatchObject({ status: 2, stderr: expect.stringContaining("--rollback needs --job") });
  const both = await context.run(["rotate", "--rollback", "--now"]);
  expect(both).toMatchObject({ status: 2, stderr: expect.stringContaining("exclude each other") });
});
