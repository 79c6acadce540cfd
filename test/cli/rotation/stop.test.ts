// A rotation that is stopped, or loses its database, at the moments that matter: a key that was made is not lost.

import { writeFile } from "node:fs/promises";
import path from "node:path";
import { expect } from "vitest";
import { PASS } from "../../faults/gate.ts";
import { startPostgresFront } from "../../faults/postgres-front.ts";
import { createdKeys, events, ledgerRows, PROGRAM, rotationTest, sinkSecret } from "./rotation-world.ts";

const test = rotationTest();

test("a signal while the create is under way does not cut it, and the next rotation goes on with its key", async ({
  world,
}) => {
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  world.emulator.fault = ({ method }) => {
    if (method !== "POST") return undefined;
    ask();
    return { kind: "hold", until: held };
  };
  const program = world.start(["rotate"]);
  await asked;
  program.kill("SIGTERM");
  release();
  expect(await program.ended).toMatchObject({ status: 1, stderr: expect.stringContaining("stopped by SIGTERM") });
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "pending", step: "stored" }]);

  expect((await world.run(["rotate"])).status).toBe(0);
  expect(world.proxy.creates).toHaveLength(1);
  expect(await events(world.db)).toEqual(["intent", "stored", "verified", "delivered", "active"]);
});

test("a signal during a delivery does not cut it, and the next rotation goes on", async ({ world }) => {
  const script = `cd '${world.folder}'; while [ ! -e go ]; do sleep 0.05; done; cat > exporter.key`;
  await world.configure({ deliver: [{ command: ["sh", "-c", script] }] });
  const program = world.start(["rotate"]);
  await program.waitFor('"change":"verified"');
  program.kill("SIGTERM");
  await writeFile(path.join(world.folder, "go"), "");
  expect(await program.ended).toMatchObject({ status: 1, stderr: expect.stringContaining("stopped by SIGTERM") });
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(world.emulator.secretWorks((sinkSecret(world) ?? "").trim())).toBe(true);
  expect(world.proxy.creates).toHaveLength(1);
});

/** How many more statements meet a database that is away. */
let refusalsLeft = 0;

const awayTest = rotationTest({
  gate: ({ side, name }) => {
    if (name.startsWith("POST") && side === "back") refusalsLeft = 6;
    return PASS;
  },
  databaseVia: (url) =>
    startPostgresFront(url, {
      who: PROGRAM,
      gate: () => {
        if (refusalsLeft === 0) return PASS;
        refusalsLeft--;
        return { kind: "cut" };
      },
    }),
});

awayTest("a database that is away when the key was made gets it as soon as it is back", async ({ world }) => {
  const { status, stderr } = await world.run(["rotate"]);
  expect(status).toBe(0);
  expect(stderr).toContain("new key not stored yet");
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "active" }]);
  expect(createdKeys(world)).toHaveLength(1);
});
