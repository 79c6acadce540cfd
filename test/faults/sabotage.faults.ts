// Makes small wrong changes (sabotages) in a copy of the product, one after the other. Each has a test that must fail. A sabotage that
// no test notices shows a gap of the suite.

import path from "node:path";
import { afterAll, expect, inject, test } from "vitest";
import { startScript } from "../support/program.ts";
import { isOf, runGuards } from "./sabotage/run-guards.ts";
import type { Sabotage } from "./sabotage/sabotage.ts";
import { SABOTAGES } from "./sabotage/sabotages.ts";
import { copyTree } from "./sabotage/tree.ts";
import { every, LIMIT, sweep } from "./sweep.ts";

/** In CI every third: each takes some seconds. */
const CHOSEN = every(3, SABOTAGES);

const { url } = inject("postgres");
const tree = await copyTree();
afterAll(() => tree[Symbol.asyncDispose]());

test("without a sabotage, the tests that must notice one pass", LIMIT, async () => {
  const outcomes = await runGuards(
    tree.folder,
    url,
    CHOSEN.map(({ caughtBy }) => caughtBy),
  );
  const unfit = CHOSEN.flatMap(({ name, caughtBy }) => {
    const own = outcomes.filter((one) => isOf(one, caughtBy));
    if (own.length > 0 && own.every(({ passed }) => passed)) return [];
    return [`${name}: ${caughtBy.join(", ")}: ${own.flatMap(({ reasons }) => reasons).join("\n") || "no such test"}`];
  });
  expect(unfit).toEqual([]);
});

test("the product with all sabotages compiles", LIMIT, async () => {
  const tsc = path.join(tree.folder, "node_modules/typescript/bin/tsc");
  const { status, stdout } = await tree.spoil(SABOTAGES, async () => {
    await using checking = startScript(tsc, ["--noUnusedLocals", "false"], { cwd: tree.folder, env: {} });
    return await checking.ended;
  });
  expect({ status, stdout }).toEqual({ status: 0, stdout: "" });
});

test("every sabotage is noticed", LIMIT, async () => {
  await sweep({
    part: "sabotage",
    file: "sabotage",
    test: "every sabotage is noticed",
    cases: async () => CHOSEN.map(({ name }) => name),
    atOnce: 1,
    run: async (name) => {
      const sabotage = SABOTAGES.find((one) => one.name === name);
      if (!sabotage) return [`there is no sabotage "${name}"`];
      return missedBy(sabotage);
    },
  });
});

/** Errors of a program that is broken, not wrong: the test failed before it reached what it checks. */
const BROKEN = /\b(?:SyntaxError|ReferenceError|TypeError)\b|\bsyntax error\b|\btimed out\b/;

async function missedBy(sabotage: Sabotage): Promise<readonly string[]> {
  const { name, caughtBy } = sabotage;
  const outcomes = await tree.spoil([sabotage], () => runGuards(tree.folder, url, [caughtBy]));
  const reasons = outcomes.filter((one) => isOf(one, caughtBy)).flatMap((one) => one.reasons);
  const telling = reasons.find((reason) => !BROKEN.test(reason));
  if (telling === undefined) {
    const how = reasons.length === 0 ? "passes" : `fails by itself: ${reasons.join("\n")}`;
    return [`${name}: not noticed by ${caughtBy.join(", ")}, which ${how}`];
  }
  process.stdout.write(`noticed: ${name}\n  ${telling.split("\n")[0]}\n`);
  return [];
}
