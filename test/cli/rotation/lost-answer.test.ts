// A create whose answer is lost is never sent again, because nobody knows whether the service made a key.

import { sql } from "kysely";
import { expect } from "vitest";
import type { Fault } from "../../support/emulator.ts";
import { type RotationContext, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();

const HOUR = "interval '61 minutes'";

function failCreates({ emulator }: RotationContext, fault: Fault): void {
  emulator.fault = ({ method }) => (method === "POST" ? fault : undefined);
}

/** Makes an active key that is due for rotation. Returns its secret. */
async function prepareDue(context: RotationContext): Promise<string> {
  await context.prepare();
  await context.ageKeys(30);
  return context.sinkSecret();
}

const without = (field: string): Fault => ({
  kind: "body",
  change: (json) => Object.fromEntries(Object.entries(json).filter(([name]) => name !== field)),
});

test.for<readonly [name: string, fault: Fault, made: number]>([
  ["is lost", { kind: "lose" }, 1],
  ["has no key", without("key"), 1],
  ["is 502 from a gateway", { kind: "answer", status: 502 }, 0],
])("an answer that %s leaves an orphan, and the current key in use", async ([, fault, made], { context }) => {
  const before = await prepareDue(context);
  failCreates(context, fault);
  expect(await context.run(["rotate"])).toMatchObject({ status: 1 });
  expect(context.proxy.creates).toHaveLength(2);
  expect(context.createdKeys()).toHaveLength(1 + made);
  expect(context.sinkSecret()).toBe(before);
  expect(context.emulator.secretWorks(before)).toBe(true);
  const rows = await context.ledgerRows();
  expect(rows).toMatchObject([{ state: "active" }, { state: "orphan" }]);
  expect(context.proxy.creates.at(-1)?.comment).toContain(rows[1]?.intent_id);
});

test("the orphan is found by its comment in the same run, and kept if retire is keep", async ({ context }) => {
  await prepareDue(context);
  failCreates(context, { kind: "lose" });
  await context.run(["rotate"]);
  const [, orphan] = await context.ledgerRows();
  expect(context.createdKeys()).toContain(orphan?.api_key_id);

  context.emulator.fault = undefined;
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.ledgerRows()).toMatchObject([{ state: "draining" }, { state: "orphan" }, { state: "active" }]);
  expect((await context.run(["keys"])).stdout).toMatch(/orphan +\S+, 0 days old/);
  expect(context.createdKeys()).toHaveLength(3);
});

test("if retire is delete, the orphan is deleted", async ({ context }) => {
  await context.configure({ retire: "delete" });
  await prepareDue(context);
  failCreates(context, { kind: "lose" });
  const { stdout } = await context.run(["rotate"]);
  expect(stdout).toMatch(/search .*\n {2}delete .*: nobody has its secret/);
  expect(await context.ledgerRows()).toMatchObject([{ state: "active" }, { state: "retired" }]);
  expect(context.createdKeys()).toHaveLength(1);
});

test("an orphan that the service does not list is given up after an hour", async ({ context }) => {
  await prepareDue(context);
  failCreates(context, { kind: "drop" });
  await context.run(["rotate"]);
  context.emulator.fault = undefined;
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.ledgerRows()).toMatchObject([{}, { state: "orphan", api_key_id: null }, {}]);

  await shift(context, HOUR);
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.ledgerRows()).toMatchObject([{}, { state: "retired", api_key_id: null }, {}]);
});

test("an orphan is not given up because of a list that lacks the key in use", async ({ context }) => {
  await prepareDue(context);
  failCreates(context, { kind: "drop" });
  await context.run(["rotate"]);
  await shift(context, HOUR);
  context.emulator.fault = ({ method, path }) =>
    method === "GET" && path.endsWith("/keys") ? { kind: "body", change: () => ({ api_keys: [] }) } : undefined;
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.ledgerRows()).toMatchObject([{}, { state: "orphan" }, {}]);
});

async function shift({ db }: RotationContext, interval: string): Promise<void> {
  await sql`update usage_export.api_key set requested_at = requested_at - ${sql.raw(interval)} where state = 'orphan'`.execute(
    db,
  );
}
