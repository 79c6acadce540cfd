import { expect } from "vitest";
import { ledgerRows, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();

test("after five failed attempts nothing is created until a person asks for it", async ({ context }) => {
  context.emulator.fault = ({ method }) => (method === "POST" ? { kind: "answer", status: 409 } : undefined);
  for (let i = 0; i < 5; i++) expect((await context.run(["rotate"])).status).toBe(1);
  expect(context.proxy.creates).toHaveLength(5);

  context.emulator.fault = undefined;
  const blocked = await context.run(["rotate"]);
  expect(blocked.status).toBe(1);
  expect(blocked.stdout).toMatch(
    /failed: needs attention: 5 attempts failed, the last with: .*409.*nothing is created until rotate --now/,
  );
  expect((await context.run(["rotate", "--dry-run"])).status).toBe(1);
  expect(context.proxy.creates).toHaveLength(5);
  expect(JSON.parse((await context.run(["rotate", "--json"])).stdout)).toMatchObject([
    { did: [], errors: [expect.stringContaining("needs attention: 5 attempts failed")] },
  ]);

  for (const command of ["keys", "status"]) {
    const { status, stdout } = await context.run([command]);
    expect(stdout).toMatch(/5 failed attempts, the last: .*409/);
    expect(stdout).toContain("needs attention: nothing is created until rotate --now");
    expect(status).toBe(1);
  }

  expect((await context.run(["rotate", "--now"])).status).toBe(0);
  expect(context.proxy.creates).toHaveLength(6);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "active" }]);
  expect(await context.run(["keys"])).toMatchObject({ status: 0, stdout: expect.not.stringContaining("attention") });
});

test("a process that dies at every create makes no more than five keys", async ({ context }) => {
  // The state that a process leaves if it dies between recording the intent and getting the answer.
  await context.db.insertInto("usage_export.rotation").values({ name: "exporter", failed_attempts: 4 }).execute();
  const intent = { intent_id: "ue-0", rotation: "exporter", project_id: "project-1", project: "production" } as const;
  const values = {
    ...intent,
    state: "pending",
    step: "intent",
    comment: "usage exporter [ue-0]",
    scopes_asked: ["member"],
  } as const;
  await context.db.insertInto("usage_export.api_key").values(values).execute();
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toContain("needs attention: 5 attempts failed");
  expect(context.proxy.creates).toEqual([]);
});
