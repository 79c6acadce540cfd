import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { createdKeys, events, ledgerRows, type RotationContext, rotationTest, sinkSecret } from "./rotation-context.ts";

const test = await rotationTest();

/** Holds the answers to all creates until the returned function is called. */
function holdCreates({ emulator }: RotationContext): () => void {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  emulator.fault = ({ method }) => (method === "POST" ? { kind: "hold", until: held } : undefined);
  return release;
}

test.for([
  [2, "rotate"],
  [3, "rotate --now"],
] as const)("%i processes that run %s at the same time make one key", async ([count, command], { context }) => {
  const release = holdCreates(context);
  const programs = Array.from({ length: count }, () => context.start(command.split(" ")));
  const waits = programs.map((program) => program.waitFor("waiting for another process that rotates"));
  // All processes but one wait for the one that rotates. Their requests are older than the key that it will make.
  await settledCount(waits, count - 1);
  release();
  const results = await Promise.all(programs.map(({ ended }) => ended));
  expect(results.map(({ status }) => status)).toEqual(programs.map(() => 0));
  expect(context.proxy.creates).toHaveLength(1);
  expect(createdKeys(context)).toHaveLength(1);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "active" }]);
  expect(context.emulator.secretWorks(sinkSecret(context) ?? "")).toBe(true);
});

/** Resolves when `count` of the promises have resolved. */
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

test("if a process is suspended during its create, another takes over, and the first one's key is an orphan", async ({
  context,
}) => {
  const release = holdCreates(context);
  const sleeper = context.start(["rotate"]);
  await waitForCreatedKeys(context, 1);
  sleeper.kill("SIGSTOP");
  context.emulator.fault = undefined;
  const heir = await context.run(["rotate"]);
  expect(heir.status).toBe(0);
  const delivered = sinkSecret(context);

  release();
  sleeper.kill("SIGCONT");
  const { status, stdout } = await sleeper.ended;
  expect(status).toBe(1);
  expect(stdout).toContain("another process has taken over the rotation exporter");
  expect(sinkSecret(context)).toBe(delivered);
  expect(await ledgerRows(context.db)).toMatchObject([{ state: "orphan" }, { state: "active" }]);
  expect(context.proxy.creates).toHaveLength(2);

  // The service has the suspended process's key too. The next rotation finds it and deletes it.
  await context.configure({ retire: "delete" });
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(createdKeys(context)).toHaveLength(1);
  expect((await events(context.db)).slice(-1)).toEqual(["retired"]);
});

async function waitForCreatedKeys({ emulator }: RotationContext, count: number): Promise<void> {
  while (emulator.keys().filter(({ origin }) => origin === "created").length < count) await sleep(20);
}
