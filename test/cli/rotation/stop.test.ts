// A rotation that is stopped, or loses its database, at the moments that matter: a key that was made is not lost.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { PASS } from "../../faults/fault-decision.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { createdKeys, events, ledgerRows, PROGRAM, rotationTest, sinkSecret } from "./rotation-context.ts";

const test = await rotationTest();

test("a signal does not interrupt a create, and the next rotation continues with its key", async ({ context }) => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  context.emulator.fault = ({ method }) => {
    if (method !== "POST") return undefined;
    ask();
    return { kind: "hold", until: held };
  };
  const program = context.start(["rotate"]);
  await asked;
  program.kill("SIGTERM");
  release();
  expect(await program.ended).toMatchObject({ status: 1, stderr: expect.stringContaining("stopped by SIGTERM") });
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "pending", step: "stored" }]);

  expect((await context.run(["rotate"])).status).toBe(0);
  expect(context.proxy.creates).toHaveLength(1);
  expect(await events(context.db)).toEqual(["intent", "stored", "verified", "delivered", "active"]);
});

test("a signal does not interrupt a delivery, and the next rotation continues", async ({ context }) => {
  const script = `cd '${context.folder}'; while [ ! -e go ]; do sleep 0.05; done; cat > exporter.key`;
  await context.configure({ deliver: [{ command: ["sh", "-c", script] }] });
  const program = context.start(["rotate"]);
  await program.waitFor('"change":"verified"');
  program.kill("SIGTERM");
  await writeFile(path.join(context.folder, "go"), "");
  expect(await program.ended).toMatchObject({ status: 1, stderr: expect.stringContaining("stopped by SIGTERM") });
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(context.emulator.secretWorks((sinkSecret(context) ?? "").trim())).toBe(true);
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
    startPostgresFront(url, {
      who: PROGRAM,
      decideFault: () => {
        if (refusalsLeft === 0) return PASS;
        refusalsLeft--;
        return { kind: "cut" };
      },
    }),
});

testWithCuts(
  "if the database is unavailable when a key was made, the key is stored as soon as it is back",
  async ({ context }) => {
    const { status, stderr } = await context.run(["rotate"]);
    expect(status).toBe(0);
    expect(stderr).toContain("new key not stored yet");
    expect(await ledgerRows(context.db)).toMatchObject([{ state: "active" }]);
    expect(createdKeys(context)).toHaveLength(1);
  },
);
