// Rotations that run at the same time, are suspended or stopped, or lose their database, at the moments that matter: one key is made, and
// none that was made is lost.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { PASS } from "../../faults/fault-decision.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { hold } from "../evidence.ts";
import { PROGRAM, type RotationContext, rotationTest } from "./rotation-context.ts";

const test = await rotationTest();
const STOPPED = { status: 1, stderr: expect.stringContaining("stopped by SIGTERM") };

const works = (context: RotationContext) => context.emulator.secretWorks(context.sinkSecret()?.trim() ?? "");

const isCreate = ({ method }: { method: string }) => method === "POST";

test.for([
  [2, "rotate"],
  [3, "rotate --now"],
] as const)("%i processes that run %s at the same time make one key", async ([count, command], { context }) => {
  const { release } = hold(context.emulator, isCreate);
  const programs = Array.from({ length: count }, () => context.start(command.split(" ")));
  const waiting = () => programs.filter((one) => one.count("waiting for another process that rotates") > 0).length;
  // All processes but one wait for the one that rotates. Their requests are older than the key that it will make.
  await expect.poll(waiting).toBe(count - 1);
  release();
  for (const { ended } of programs) expect(await ended).toMatchObject({ status: 0 });
  expect(context.proxy.creates).toHaveLength(1);
  expect(context.createdKeys()).toHaveLength(1);
  expect(await context.states()).toEqual(["active"]);
  expect(works(context)).toBe(true);
});

test("two concurrent rollbacks together go back one key", async ({ context }) => {
  const secrets: (string | undefined)[] = [];
  for (let i = 0; i < 3; i++) {
    await context.prepare("--now");
    secrets.push(context.sinkSecret());
  }
  const { release } = hold(context.emulator, ({ path }) => path === "/v1/auth/token");
  const programs = [1, 2].map(() => context.start(["rotate", "--rollback"]));
  await Promise.any(programs.map((program) => program.waitFor("waiting for another process")));
  release();
  for (const { ended } of programs) expect(await ended).toMatchObject({ status: 0 });
  expect(context.sinkSecret()).toBe(secrets[1]);
});

test("if a process is suspended during its create, its key is an orphan", async ({ context }) => {
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

test("a signal does not interrupt a create, and the next rotation continues with its key", async ({ context }) => {
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

test("a signal does not interrupt a delivery, and the next rotation continues", async ({ context }) => {
  const script = `cd '${context.folder}'; while [ ! -e go ]; do sleep 0.05; done; cat > exporter.key`;
  await context.configure({ deliver: [{ command: ["sh", "-c", script] }] });
  const program = context.start(["rotate"]);
  await program.waitFor('"change":"verified"');
  program.kill("SIGTERM");
  await writeFile(path.join(context.folder, "go"), "");
  expect(await program.ended).toMatchObject(STOPPED);
  expect(await context.run(["rotate"])).toMatchObject({ status: 0 });
  expect(works(context)).toBe(true);
  expect(context.proxy.creates).toHaveLength(1);
});

/** How many more statements lose their connection to the database. */
let refusalsLeft = 0;

const testWithCuts = await rotationTest({
  decideFault: ({ side, name }) => {
    if (name.startsWith("POST") && side === "back") refusalsLeft = 6;
    return PASS;
  },
  databaseVia: (url) =>
    startPostgresFront(url, { who: PROGRAM, decideFault: () => (refusalsLeft-- > 0 ? { kind: "cut" } : PASS) }),
});

testWithCuts(
  "if the database is unavailable when a key was made, the key is stored as soon as it is back",
  async ({ context }) => {
    const { status, stderr } = await context.run(["rotate"]);
    expect(status).toBe(0);
    expect(stderr).toContain("new key not stored yet");
    expect(await context.states()).toEqual(["active"]);
    expect(context.createdKeys()).toHaveLength(1);
  },
);
