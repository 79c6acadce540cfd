// Thousands of answers that are cut, changed or made up. Each must be stored exactly, or be refused so that the last good numbers
// stay; the program must not crash. A second implementation of the rules for answers (answer-verdict.ts) tells what is expected.

import { expect, test } from "vitest";
import { FIXTURES, type Fixture, type Window } from "./answer-fixtures.ts";
import { type AnswerCase, askedSeries } from "./asked-series.ts";
import { HAND_MADE } from "./hand-made-answers.ts";
import { HOSTILE_NUMBERS } from "./hostile-numbers.ts";
import { mutated } from "./mutate.ts";
import { IS_LONG_RUN, ONLY_CASE, SEED } from "./sweep.ts";

const TIME_LIMIT = { timeout: 30 * 60_000 };
const CHANGED_COUNT = Number(process.env.FAULTS_COUNT ?? (IS_LONG_RUN ? 20_000 : 500));
/** Answers are cut after each multiple of this many bytes. */
const CUT_STEP = IS_LONG_RUN ? 1 : 13;
/** How many series each fixture has. One run of the program reads one case in each of them. */
const SLOTS = 200;

/** Any days will do: all dates are equally long, so the changes to an answer do not depend on them. */
const SOME_DAYS = { start: "2026-01-01", end: "2026-01-02" };

test(`${CHANGED_COUNT} answers changed at random are stored exactly, or refused as a whole`, TIME_LIMIT, async () => {
  const numbers = ONLY_CASE === undefined ? Array.from({ length: CHANGED_COUNT }, (_, n) => n) : [Number(ONLY_CASE)];
  const cases = numbers.map((n) => {
    const again = `FAULTS_SEED=${SEED} FAULTS_CASE=${n} npx vitest run --config test/faults/vitest.config.ts answers -t random`;
    const fixture = FIXTURES[n % FIXTURES.length] ?? expect.fail("expected fixtures");
    const { how } = mutated(fixture.body(SOME_DAYS), SEED, n);
    return caseOf(fixture, `${how} (again: ${again})`, (valid) => mutated(valid, SEED, n).body);
  });
  expect(await violations(`answers changed at random (seed ${SEED})`, cases)).toEqual([]);
});

test("an answer that is cut anywhere is refused", TIME_LIMIT, async () => {
  const cases = FIXTURES.flatMap((fixture) => {
    const length = Buffer.byteLength(fixture.body(SOME_DAYS));
    const ends = Array.from({ length: Math.ceil(length / CUT_STEP) }, (_, n) => n * CUT_STEP);
    return ends.map((end) => caseOf(fixture, `its first ${end} bytes`, (valid) => Buffer.from(valid).subarray(0, end)));
  });
  expect(await violations("answers cut short", cases)).toEqual([]);
});

test("a number is stored with every digit, or refused if it is not an amount", async () => {
  const cases = FIXTURES.flatMap((fixture) =>
    HOSTILE_NUMBERS.map(([digits]) =>
      caseOf(fixture, `requests ${digits.slice(0, 50)}`, (valid) =>
        Buffer.from(valid.replace(/"requests":[\d.]+/, `"requests":${digits}`)),
      ),
    ),
  );
  expect(await violations("answers with hostile numbers", cases)).toEqual([]);
});

test("an answer made by hand is stored exactly, or refused", async () => {
  const cases = Object.entries(HAND_MADE).flatMap(([name, { body, headers }]) =>
    FIXTURES.map((fixture) => ({ ...caseOf(fixture, name, body), ...(headers && { headers }) })),
  );
  expect(await violations("answers made by hand", cases)).toEqual([]);
});

function caseOf(fixture: Fixture, what: string, change: (valid: string) => Uint8Array): AnswerCase {
  const body = (window: Window | undefined) => change(fixture.body(window));
  return { name: `${fixture.name}: ${what}`, fixture, body };
}

async function violations(part: string, cases: readonly AnswerCase[]): Promise<readonly string[]> {
  const startedMs = performance.now();
  const found = await Promise.all([inRounds(cases, "interface"), inRounds(cases, "2026")]);
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  process.stdout.write(`${part}: ${cases.length} cases, ${found.flat().length} violations, ${seconds} s\n`);
  return found.flat();
}

/** Runs the program repeatedly on one database. A fixture has `slots` series, each of which gets one of its cases in a run. */
async function inRounds(cases: readonly AnswerCase[], dialect: Fixture["dialect"]): Promise<readonly string[]> {
  const queues = FIXTURES.filter((fixture) => fixture.dialect === dialect).map((fixture) =>
    cases.filter((one) => one.fixture === fixture),
  );
  const longest = Math.max(...queues.map((queue) => queue.length));
  if (longest === 0) return [];
  const slots = Math.min(longest, SLOTS);
  await using asked = await askedSeries(dialect, slots);
  const found = [...(await asked.run([]))];
  for (let from = 0; from < longest; from += slots) {
    found.push(...(await asked.run(queues.flatMap((queue) => queue.slice(from, from + slots)))));
  }
  return found;
}
