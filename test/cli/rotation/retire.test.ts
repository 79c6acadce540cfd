// When a replaced key is due for removal, kept or deleted.

import { expect } from "vitest";
import type { UsageSource } from "../../../src/emulator/usage.ts";
import type { FaultPlan } from "../../support/emulator.ts";
import { PRODUCTION } from "../small-config.ts";
import { type RotationContext, rotationTest } from "./rotation-context.ts";

/** The id of the key that made usage, by days ago. On each of these days the other keys of the map have a row without usage. */
let usedAgo: Readonly<Record<number, string>> = {};
const usage: UsageSource = (_project, _day, ageDays) => {
  const used = usedAgo[Math.floor(ageDays)];
  if (used === undefined) return [];
  return Object.values(usedAgo).map((accessor) => ({ accessor, requests: accessor === used ? 1 : 0 }));
};
const test = await rotationTest({ creatorScopes: ["member"], emulator: { usage } });

const OK = { status: 0 };
const DAY_MS = 24 * 60 * 60 * 1000;

/** Makes a key, replaces it by another one, and makes both older by `daysAgo` days. */
async function replaceKey(context: RotationContext, daysAgo: number) {
  usedAgo = {};
  await context.rotateOrThrow();
  const oldSecret = context.sinkSecret();
  await context.rotateOrThrow("--now");
  await context.ageKeys(daysAgo);
  const [old = "", current = ""] = context.createdKeys();
  return { old, oldSecret, current };
}

const noteOf = async (context: RotationContext) => (await context.ledgerRows())[0]?.note;
const deletesOf = ({ emulator }: RotationContext) => emulator.requests.filter(({ method }) => method === "DELETE");
const DUE = "due for removal since";

/** Sets the service's clock this many days ahead of the database's. */
function setServiceClock({ emulator }: RotationContext, daysAhead: number): void {
  const { now } = emulator;
  emulator.now = () => new Date(now().getTime() + daysAhead * DAY_MS);
}

test("after its grace period a key that nobody uses any more is due for removal", async ({ context }) => {
  const { old, oldSecret, current } = await replaceKey(context, 8);
  usedAgo = { 9: old, 1: current };
  // The service tells its time in whole seconds, so eight days may not quite be over.
  const rotated = (await context.run(["rotate"])).stdout;
  expect(rotated).toMatch(new RegExp(`mark-due ${old}: it was replaced [78] days ago, and its grace is 7 days`));
  expect(await noteOf(context)).toContain("the breakdown by accessor shows no usage since");
  const listed = (await context.run(["keys"])).stdout;
  expect(listed).toMatch(/draining \S+, 8 days old, last seen in use unknown, due for removal since/);
  expect(context.emulator.secretWorks(oldSecret)).toBe(true);
});

const isBreakdown = ({ path }: { path: string }) => path.includes("grouping=accessor");

test.for<readonly [string, FaultPlan]>([
  ["can't be read", (request) => (isBreakdown(request) ? { kind: "answer", status: 503 } : undefined)],
  [
    "is of other days than were asked for",
    (request) =>
      isBreakdown(request) ? { kind: "body", change: ({ start: _, end: __, ...json }) => json } : undefined,
  ],
])("while the breakdown %s, a key that is due for removal is not deleted", async ([, fault], { context }) => {
  const { old, oldSecret, current } = await replaceKey(context, 40);
  usedAgo = { 1: current };
  context.emulator.fault = fault;
  await context.configure({ maxAgeDays: 90, retire: "delete" });
  const kept = `kept ${old}: it is due for removal; not deleted: the breakdown by accessor`;
  for (let runs = 0; runs < 2; runs++) {
    expect(await context.run(["rotate"])).toMatchObject({ ...OK, stdout: expect.stringContaining(kept) });
  }
  expect(deletesOf(context)).toEqual([]);
  expect(context.emulator.secretWorks(oldSecret)).toBe(true);
  expect((await context.events()).slice(-2)).toEqual(["due-for-removal", "kept"]);
  const listed = (await context.run(["keys"])).stdout;
  expect(listed).toMatch(/draining .*, due for removal since .*, it is due for removal; not deleted: /);

  context.emulator.fault = undefined;
  expect(await context.run(["rotate"])).toMatchObject(OK);
  expect(await context.states()).toEqual(["retired", "active"]);
});

test.for([
  ["every day of a long grace period is checked, also the first", 60],
  ["the day before is checked even without a grace period", 0],
] as const)("before a key is deleted, %s", async ([, graceDays], { context }) => {
  const { old, current } = await replaceKey(context, graceDays + 1);
  usedAgo = { [Math.max(graceDays, 1)]: old, 0: current };
  await context.configure({ maxAgeDays: 90, graceDays, retire: "delete" });
  expect((await context.run(["rotate"])).stdout).toContain("replaced key still in use");
  expect(deletesOf(context)).toEqual([]);
});

test("a key that is due for removal is not deleted if it is used again", async ({ context }) => {
  const { old, current } = await replaceKey(context, 8);
  usedAgo = { 1: current };
  await context.run(["rotate"]);
  usedAgo = { 1: current, 0: old };
  await context.configure({ retire: "delete" });
  expect((await context.run(["rotate"])).stdout).toMatch(
    /kept \S+: not deleted: the breakdown by accessor shows usage on/,
  );
  expect(deletesOf(context)).toEqual([]);
  expect((await context.run(["keys"])).stdout).not.toContain(DUE);
});

test.for([
  ["the service's clock is two days behind", 8, -2],
  ["the service's clock is eight days ahead", 1, 8],
] as const)(
  "a key is due for removal only when both clocks say that its grace is over: %s",
  async ([, replacedDaysAgo, daysAhead], { context }) => {
    const { oldSecret, current } = await replaceKey(context, replacedDaysAgo);
    usedAgo = { 1: current };
    await context.configure({ retire: "delete" });
    setServiceClock(context, daysAhead);
    expect(await context.run(["rotate"])).toMatchObject(OK);
    expect(await context.states()).toEqual(["draining", "active"]);
    expect((await context.run(["keys"])).stdout).not.toContain(DUE);
    expect(context.emulator.secretWorks(oldSecret)).toBe(true);
  },
);

test.for([
  ["ahead of", 2, [0, 1]],
  ["behind", -2, [6, 0]],
] as const)(
  "while the service's clock is days %s the database's, a due key is not deleted",
  async ([, daysAhead, [oldAgo, currentAgo]], { context }) => {
    const { old, current } = await replaceKey(context, 20);
    // The old key is in use on a day that a check by the database's clock would miss.
    usedAgo = { [oldAgo]: old, [currentAgo]: current };
    await context.configure({ maxAgeDays: 90, retire: "delete" });
    setServiceClock(context, daysAhead);
    const kept = `kept ${old}: it is due for removal; not deleted: the clocks of`;
    expect(await context.run(["rotate"])).toMatchObject({ ...OK, stdout: expect.stringContaining(kept) });
    expect(deletesOf(context)).toEqual([]);
  },
);

test("with retire delete a due key is deleted at the service", async ({ context }) => {
  const { old, oldSecret, current } = await replaceKey(context, 8);
  usedAgo = { 1: current };
  await context.configure({ retire: "delete" });
  const says = expect.stringMatching(/mark-due .*\n {2}delete \S+: it is due for removal/);
  expect(await context.run(["rotate"])).toMatchObject({ ...OK, stdout: says });
  expect(context.emulator.secretWorks(oldSecret)).toBe(false);
  expect(context.emulator.secretWorks(context.sinkSecret())).toBe(true);
  const row = await context.db
    .selectFrom("usage_export.api_key")
    .select(["state", "sealed", "master_key"])
    .where("api_key_id", "=", old)
    .executeTakeFirst();
  expect(row).toEqual({ state: "retired", sealed: null, master_key: null });
  expect((await context.events()).slice(-2)).toEqual(["due-for-removal", "retired"]);
});

test("a key that somebody has already deleted at the service is retired", async ({ context }) => {
  const { old, current } = await replaceKey(context, 8);
  usedAgo = { 1: current };
  await context.configure({ retire: "delete" });
  await context.deleteKey(old);
  expect(await context.run(["rotate"])).toMatchObject(OK);
  expect(deletesOf(context).at(-1)?.status).toBe(404);
  expect(await noteOf(context)).toMatch(/^it is due for removal; .* shows no usage .*; the service no longer had it$/);
});

test.for(["keep", "delete"])("with retire %s, a key no longer listed is retired", async (retire, { context }) => {
  const { old } = await replaceKey(context, 8);
  await context.configure({ retire });
  await context.run(["rotate"]);
  expect(await context.states()).toEqual(["draining", "active"]);
  await context.deleteKey(old);
  await context.run(["rotate"]);
  expect(await context.states()).toEqual(["retired", "active"]);
});

test("the next run repeats a delete that the service refused", async ({ context }) => {
  const { current } = await replaceKey(context, 8);
  usedAgo = { 1: current };
  await context.configure({ retire: "delete" });
  context.emulator.fault = ({ method }) => (method === "DELETE" ? { kind: "answer", status: 403 } : undefined);
  const says = expect.stringMatching(/failed: delete \S+: it is due for removal: .*403/);
  expect(await context.run(["rotate"])).toMatchObject({ status: 1, stdout: says });
  context.emulator.fault = undefined;
  expect(await context.run(["rotate"])).toMatchObject(OK);
  expect(await context.states()).toEqual(["retired", "active"]);
});

test.for([
  ["rotation calls", {}],
  ["project is read", { createWith: { env: "USAGE_EXPORT_CREATOR_KEY" } }],
] as const)("the key that the %s with is not deleted", async ([, part], { context }) => {
  const { oldSecret, current } = await replaceKey(context, 8);
  usedAgo = { 1: current };
  await context.configure({ retire: "delete", ...part }, { projects: [PRODUCTION] });
  const says = expect.stringContaining("key not deleted: it is the one this rotation calls with");
  expect(await context.run(["rotate"], { USAGE_EXPORT_KEY: oldSecret })).toMatchObject({ ...OK, stderr: says });
  expect(deletesOf(context)).toEqual([]);
});
