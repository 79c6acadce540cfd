import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { createdKeys, events, ledgerRows, type RotationWorld, rotationTest, sinkSecret } from "./rotation-world.ts";

const test = rotationTest();

/** Keeps every create from being answered until the test lets it. */
function holdCreates({ emulator }: RotationWorld): () => void {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  emulator.fault = ({ method }) => (method === "POST" ? { kind: "hold", until: held } : undefined);
  return release;
}

test.for([
  [2, "rotate"],
  [3, "rotate"],
  [2, "rotate --now"],
  [3, "rotate --now"],
] as const)("%i processes that run %s at the same time make one key", async ([count, command], { world }) => {
  const release = holdCreates(world);
  const programs = Array.from({ length: count }, () => world.start(command.split(" ")));
  const waits = programs.map((program) => program.waitFor("waiting for another process that rotates"));
  // All but one have seen that another is at it, and what they were asked for is older than the key to come.
  await settledCount(waits, count - 1);
  release();
  const results = await Promise.all(programs.map(({ ended }) => ended));
  expect(results.map(({ status }) => status)).toEqual(programs.map(() => 0));
  expect(world.proxy.creates).toHaveLength(1);
  expect(createdKeys(world)).toHaveLength(1);
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "active" }]);
  expect(world.emulator.secretWorks(sinkSecret(world) ?? "")).toBe(true);
});

/** Resolves when so many of them have. */
async function settledCount(promises: readonly Promise<unknown>[], count: number): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  let settled = 0;
  for (const each of promises) {
    each.then(
      () => {
        settled++;
        if (settled === count) resolve();
      },
      () => {},
    );
  }
  await promise;
}

test("a process that is stopped while it creates is taken over, and what it wakes up with is an orphan", async ({
  world,
}) => {
  const release = holdCreates(world);
  const sleeper = world.start(["rotate"]);
  await created(world, 1);
  sleeper.kill("SIGSTOP");
  world.emulator.fault = undefined;
  const heir = await world.run(["rotate"]);
  expect(heir.status).toBe(0);
  const delivered = sinkSecret(world);

  release();
  sleeper.kill("SIGCONT");
  const { status, stdout } = await sleeper.ended;
  expect(status).toBe(1);
  expect(stdout).toContain("another process has taken over the rotation exporter");
  expect(sinkSecret(world)).toBe(delivered);
  expect(await ledgerRows(world.db)).toMatchObject([{ state: "orphan" }, { state: "active" }]);
  expect(world.proxy.creates).toHaveLength(2);

  // The service has the sleeper's key as well, and the next rotation knows which it is.
  await world.configure({ retire: "delete" });
  expect((await world.run(["rotate"])).status).toBe(0);
  expect(createdKeys(world)).toHaveLength(1);
  expect((await events(world.db)).slice(-1)).toEqual(["retired"]);
});

async function created({ emulator }: RotationWorld, count: number): Promise<void> {
  while (emulator.keys().filter(({ origin }) => origin === "created").length < count) await sleep(20);
}
