// When a replaced key is due for removal, kept or deleted.

import { expect } from "vitest";
import type { FaultPlan } from "../../support/emulator.ts";
import {
  ageKeys,
  type DaysUsage,
  events,
  ledgerRows,
  type RotationContext,
  rotationTest,
  sinkSecret,
  usageOf,
} from "./rotation-context.ts";

let usage: readonly DaysUsage[] = [];
const test = await rotationTest({ emulator: { usage: usageOf(() => usage) } });

type Replaced = { readonly old: string; readonly oldSecret: string; readonly current: string };

/** Makes a key that was replaced `daysAgo` days ago, and the one in its place. */
async function replaceKey(context: RotationContext, daysAgo: number): Promise<Replaced> {
  usage = [];
  await context.prepare();
  const oldSecret = sinkSecret(context) ?? "";
  await context.prepare({ now: true });
  await ageKeys(context.db, daysAgo);
  const [old, current] = (await ledgerRows(context.db)).map(({ api_key_id }) => api_key_id ?? "");
  return { old: old ?? "", oldSecret, current: current ?? "" };
}

const statesOf = async ({ db }: RotationContext) => (await ledgerRows(db)).map(({ state }) => state);
const noteOf = async ({ db }: RotationContext) => (await ledgerRows(db))[0]?.note;
const deletesOf = ({ emulator }: RotationContext) => emulator.requests.filter(({ method }) => method === "DELETE");

test("after its grace period a key that nobody uses any more is due for removal, and shown as such", async ({
  context,
}) => {
  const { old, oldSecret, current } = await replaceKey(context, 8);
  usage = [
    { accessor: old, daysAgo: 9 },
    { accessor: current, daysAgo: 1 },
  ];
  // The service tells its time to the second, so that eight days may not quite be over.
  expect((await context.run(["rotate"])).stdout).toMatch(
    new RegExp(`mark-due ${old}: it was replaced [78] days ago, and its grace is 7 days`),
  );
  expect(await noteOf(context)).toContain("the breakdown by accessor shows no usage since");
  expect((await context.run(["keys"])).stdout).toMatch(
    /draining \S+, 8 days old, last seen in use unknown, due for removal since/,
  );
  expect(context.emulator.secretWorks(oldSecret)).toBe(true);
});

type Unproved = readonly [name: string, usage: (keys: Replaced) => readonly DaysUsage[], fault: FaultPlan | undefined];

const isBreakdown = ({ path }: { path: string }) => path.includes("grouping=accessor");
const unknown: readonly Unproved[] = [
  [
    "can't be read",
    ({ current }) => [{ accessor: current, daysAgo: 1 }],
    (request) => (isBreakdown(request) ? { kind: "answer", status: 503 } : undefined),
  ],
  ["shows nothing of the last days", ({ current }) => [{ accessor: current, daysAgo: 5 }], undefined],
  [
    "is of other days than were asked for",
    ({ current }) => [{ accessor: current, daysAgo: 1 }],
    (request) =>
      isBreakdown(request) ? { kind: "body", change: ({ start: _, end: __, ...json }) => json } : undefined,
  ],
];

test.for(unknown)("if the breakdown %s, no key is deleted for its age", async ([, used, fault], { context }) => {
  const keys = await replaceKey(context, 40);
  usage = used(keys);
  context.emulator.fault = fault;
  await context.configure({ maxAgeDays: 90, retire: "delete" });
  for (let runs = 0; runs < 2; runs++) {
    const { status, stdout } = await context.run(["rotate"]);
    expect(status).toBe(0);
    expect(stdout).toContain(`kept ${keys.old}: it is due for removal; not deleted: the breakdown by accessor`);
  }
  expect(deletesOf(context)).toEqual([]);
  expect(context.emulator.secretWorks(keys.oldSecret)).toBe(true);
  expect((await events(context.db)).slice(-2)).toEqual(["due-for-removal", "kept"]);
  expect((await context.run(["keys"])).stdout).toMatch(
    /draining .*, due for removal since .*, it is due for removal; not deleted: /,
  );

  usage = [{ accessor: keys.current, daysAgo: 1 }];
  context.emulator.fault = undefined;
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(await statesOf(context)).toEqual(["retired", "active"]);
});

test("every day of a long grace period is checked before a key is deleted, also the first", async ({ context }) => {
  const { old, current } = await replaceKey(context, 61);
  usage = [
    { accessor: old, daysAgo: 60 },
    { accessor: current, daysAgo: 1 },
  ];
  await context.configure({ maxAgeDays: 90, graceDays: 60, retire: "delete" });
  expect((await context.run(["rotate"])).stdout).toContain("replaced key still in use");
  expect(deletesOf(context)).toEqual([]);
});

test("a key that is due for removal and is used again is not due any more, and not deleted", async ({ context }) => {
  const { old, current } = await replaceKey(context, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  await context.run(["rotate"]);
  usage = [...usage, { accessor: old, daysAgo: 0 }];
  await context.configure({ retire: "delete" });
  expect((await context.run(["rotate"])).stdout).toMatch(
    /kept \S+: not deleted: the breakdown by accessor shows usage on/,
  );
  expect(deletesOf(context)).toEqual([]);
  expect((await context.run(["keys"])).stdout).not.toContain("due for removal since");
});

test.for([
  ["is two days ahead of the service's", "before the service's clock says that its grace is over", 8, 2],
  ["is days behind the service's", "before the database's clock says so", 1, -8],
] as const)(
  "while the database's clock %s, no key is due for removal %s",
  async ([, , replacedDaysAgo, days], { context }) => {
    const { oldSecret, current } = await replaceKey(context, replacedDaysAgo);
    usage = [{ accessor: current, daysAgo: 1 }];
    await context.configure({ retire: "delete" });
    const { now } = context.emulator;
    context.emulator.now = () => new Date(now().getTime() - days * 24 * 60 * 60 * 1000);
    expect((await context.run(["rotate"])).status).toBe(0);
    expect(await statesOf(context)).toEqual(["draining", "active"]);
    expect((await context.run(["keys"])).stdout).not.toContain("due for removal since");
    expect(context.emulator.secretWorks(oldSecret)).toBe(true);
  },
);

test.for([
  ["behind", 2, { old: 0, current: 1 }],
  ["ahead of", -2, { old: 6, current: 0 }],
] as const)(
  "while the database's clock is days %s the service's, a due key is not deleted, as other days would be read",
  async ([, days, daysAgo], { context }) => {
    const { old, current } = await replaceKey(context, 20);
    usage = [
      { accessor: old, daysAgo: daysAgo.old },
      { accessor: current, daysAgo: daysAgo.current },
    ];
    await context.configure({ maxAgeDays: 90, retire: "delete" });
    const { now } = context.emulator;
    context.emulator.now = () => new Date(now().getTime() + days * 24 * 60 * 60 * 1000);
    const { status, stdout } = await context.run(["rotate"]);
    expect(status).toBe(0);
    expect(stdout).toContain(`kept ${old}: it is due for removal; not deleted: the clocks of`);
    expect(deletesOf(context)).toEqual([]);
  },
);

test("with retire delete a due key is deleted at the service, and its sealed secret is not kept", async ({
  context,
}) => {
  const { old, oldSecret, current } = await replaceKey(context, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  await context.configure({ retire: "delete" });
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(0);
  expect(stdout).toMatch(/mark-due .*\n {2}delete \S+: it is due for removal/);
  expect(context.emulator.secretWorks(oldSecret)).toBe(false);
  expect(context.emulator.secretWorks(sinkSecret(context) ?? "")).toBe(true);
  const row = await context.db
    .selectFrom("usage_export.api_key")
    .select(["state", "sealed", "master_key"])
    .where("api_key_id", "=", old)
    .executeTakeFirst();
  expect(row).toEqual({ state: "retired", sealed: null, master_key: null });
  expect((await events(context.db)).slice(-2)).toEqual(["due-for-removal", "retired"]);
});

test("a key that somebody has already deleted at the service is retired", async ({ context }) => {
  const { old, current } = await replaceKey(context, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  await context.configure({ retire: "delete" });
  await deleteAtService(context, old);
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(deletesOf(context).at(-1)?.status).toBe(404);
  expect(await noteOf(context)).toMatch(/^it is due for removal; .* shows no usage .*; the service no longer had it$/);
});

test("with retire keep, a key that somebody deletes is retired when the service no longer lists it", async ({
  context,
}) => {
  const { old } = await replaceKey(context, 8);
  await context.run(["rotate"]);
  expect(await statesOf(context)).toEqual(["draining", "active"]);
  await deleteAtService(context, old);
  await context.run(["rotate"]);
  expect(await statesOf(context)).toEqual(["retired", "active"]);
});

test("a delete that fails fails the run, and is repeated by the next", async ({ context }) => {
  usage = [{ accessor: (await replaceKey(context, 8)).current, daysAgo: 1 }];
  await context.configure({ retire: "delete" });
  context.emulator.fault = ({ method }) => (method === "DELETE" ? { kind: "answer", status: 403 } : undefined);
  const { status, stdout } = await context.run(["rotate"]);
  expect(status).toBe(1);
  expect(stdout).toMatch(/failed: delete \S+: it is due for removal: .*403/);
  context.emulator.fault = undefined;
  expect((await context.run(["rotate"])).status).toBe(0);
  expect(await statesOf(context)).toEqual(["retired", "active"]);
});

test("the key that the rotation calls with is not deleted", async ({ context }) => {
  const { oldSecret, current } = await replaceKey(context, 8);
  usage = [{ accessor: current, daysAgo: 1 }];
  const project = { id: "project-1", name: "production", key: { env: "USAGE_EXPORT_KEY" } };
  await context.configure({ retire: "delete" }, { projects: [project] });
  const { status, stderr } = await context.run(["rotate"], { USAGE_EXPORT_KEY: oldSecret });
  expect(status).toBe(0);
  expect(stderr).toContain("key not deleted: it is the one this rotation calls with");
  expect(deletesOf(context)).toEqual([]);
});

async function deleteAtService({ emulator, firstKey }: RotationContext, apiKeyId: string): Promise<void> {
  const url = `${emulator.url}/v1/projects/project-1/keys/${apiKeyId}`;
  const { status } = await fetch(url, { method: "DELETE", headers: { authorization: `Token ${firstKey}` } });
  expect(status).toBe(200);
}
