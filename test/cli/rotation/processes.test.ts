// Rotations that run at the same time, are suspended or stopped, or lose their database at a critical moment. Each time one key is made,
// and no key that was made is lost. A create whose answer is lost is never sent again.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { sql } from "kysely";
import { expect } from "vitest";
import { PASS } from "../../faults/fault-decision.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import type { Fault } from "../../support/emulator.ts";
import { hold } from "../evidence.ts";
import { type RotationContext, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();
const STOPPED = { status: 1, stderr: expect.stringContaining("stopped by SIGTERM") };

const isCreate = ({ method }: { method: string }) => method === "POST";

test.for([
  [2, "rotate"],
  [3, "rotate --now"],
] as const)("%i processes that run %s at the same time make one key", async ([count, command], { context }) => {
  const { release } = hold(context.emulator, isCreate);
  const programs = Array.from({ length: count }, () => context.start(command.split(" ")));
  const waitingCount = () => programs.filter((one) => one.count("waiting for another process that rotates") > 0).length;
  // All processes but one wait. They asked for a key before the rotating process made one, so they make no other.
  await expect.poll(waitingCount).toBe(count - 1);
  release();
  for (const { ended } of programs) expect(await ended).toMatchObject({ status: 0 });
  expect(context.proxy.creates).toHaveLength(1);
  expect(context.createdKeys()).toHaveLength(1);
  expect(await context.states()).toEqual(["active"]);
  expect(context.sinkKeyWorks()).toBe(true);
});

test("the key of a process that is suspended during its create becomes an orphan", async ({ context }) => {
  const { release } = hold(context.emulator, isCreate);
  const sleeper = context.start(["rotate"]);
  await expect.poll(() => context.createdKeys()).toHaveLength(1);
  sleeper.kill("SIGSTOP");
  context.emulator.fault = undefined;
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  const delivered = context.sinkSecret();

  release();
  sleeper.kill("SIGCONT");
  expect(await sleeper.ended).toMatchObject({
    status: 1,
    stdout: expect.stringContaining("another process has taken over the rotation exporter"),
  });
  expect(context.sinkSecret()).toBe(delivered);
  expect(await context.states()).toEqual(["orphan", "active"]);
  expect(context.proxy.creates).toHaveLength(2);

  // The service has the suspended process's key too. The next rotation finds it and deletes it.
  await context.configure({ retire: "delete" });
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(context.createdKeys()).toHaveLength(1);
  expect((await context.events()).at(-1)).toBe("retired");
});

test("a signal does not interrupt a create", async ({ context }) => {
  const { begun, release } = hold(context.emulator, isCreate);
  const program = context.start(["rotate"]);
  await begun;
  program.kill("SIGTERM");
  release();
  expect(await program.ended).toMatchObject(STOPPED);
  expect(await context.ledgerRows()).toMatchObject([{ state: "pending", step: "stored" }]);

  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(context.proxy.creates).toHaveLength(1);
  expect(await context.events()).toEqual(["intent", "stored", "verified", "delivered", "active"]);
});

test("a signal does not interrupt a delivery", async ({ context }) => {
  const script = `cd '${context.folder}'; while [ ! -e go ]; do sleep 0.05; done; cat > exporter.key`;
  await context.configure({ deliver: [{ command: ["sh", "-c", script] }] });
  const program = context.start(["rotate"]);
  await program.waitFor('"change":"verified"');
  program.kill("SIGTERM");
  await writeFile(path.join(context.folder, "go"), "");
  expect(await program.ended).toMatchObject(STOPPED);
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(context.sinkKeyWorks()).toBe(true);
  expect(context.proxy.creates).toHaveLength(1);
});

/** How many more changes of the ledger lose their connection to the database. */
let cutsLeft = 0;

const testWithCuts = await rotationTest({
  decideFault: ({ side, name }) => {
    // The answer to a create is on its way back.
    if (name.startsWith("POST") && side === "back") cutsLeft = 6;
    return PASS;
  },
  databaseVia: (url) =>
    startPostgresFront(url, {
      decideFault: ({ name }) => (name.includes("key_event") && cutsLeft-- > 0 ? { kind: "cut" } : PASS),
    }),
});

testWithCuts("a key that is made while the database is away is stored afterwards", async ({ context }) => {
  const { status, stderr } = await context.run(["rotate"]);
  expect(status).toBe(0);
  expect(stderr).toContain("new key not stored yet");
  expect(await context.states()).toEqual(["active"]);
  expect(context.createdKeys()).toHaveLength(1);
});

function failCreates({ emulator }: RotationContext, fault: Fault): void {
  emulator.fault = ({ method }) => (method === "POST" ? fault : undefined);
}

/** Makes an active key that is due for rotation. */
async function prepareDue(context: RotationContext): Promise<void> {
  await context.rotateOrThrow();
  await context.ageKeys(30);
}

test("an orphan is found by its comment in the same run", async ({ context }) => {
  await prepareDue(context);
  failCreates(context, { kind: "lose" });
  expect(await context.run(["rotate"])).toMatchObject({ status: 1 });
  expect(context.sinkKeyWorks()).toBe(true);
  const [, orphan] = await context.ledgerRows();
  expect(context.createdKeys()).toContain(orphan?.api_key_id);

  context.emulator.fault = undefined;
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.ledgerRows()).toMatchObject([{ state: "draining" }, { state: "orphan" }, { state: "active" }]);
  expect((await context.run(["keys"])).stdout).toMatch(/orphan +\S+, 0 days old/);
  expect(context.createdKeys()).toHaveLength(3);
});

test("if retire is delete, an orphan is deleted", async ({ context }) => {
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
  // The create has no effect at the service.
  failCreates(context, { kind: "drop" });
  await context.run(["rotate"]);
  context.emulator.fault = undefined;
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.ledgerRows()).toMatchObject([{}, { state: "orphan", api_key_id: null }, {}]);

  await ageOrphans(context);
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.ledgerRows()).toMatchObject([{}, { state: "retired", api_key_id: null }, {}]);
});

test("an orphan is not given up because of a list that lacks the key in use", async ({ context }) => {
  await prepareDue(context);
  failCreates(context, { kind: "drop" });
  await context.run(["rotate"]);
  await ageOrphans(context);
  context.emulator.fault = ({ method, path }) =>
    method === "GET" && path.endsWith("/keys") ? { kind: "body", change: () => ({ api_keys: [] }) } : undefined;
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(await context.ledgerRows()).toMatchObject([{}, { state: "orphan" }, {}]);
});

/** Makes every orphan more than an hour older. */
async function ageOrphans({ db }: RotationContext): Promise<void> {
  const age = sql`update usage_export.api_key set requested_at = requested_at - interval '61 minutes' where state = 'orphan'`;
  await age.execute(db);
}
