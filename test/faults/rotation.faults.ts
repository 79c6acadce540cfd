// Interrupts a rotation at every request, answer and database message of it, and lets one ordinary rotation follow. Every key the
// service made must be known or flagged in the end, and what the sinks hold must work at every moment.

import { readFileSync } from "node:fs";
import path from "node:path";
import { test } from "vitest";
import { age, createdKeys, ledgerRows, openRotationWorld, type RotationWorld } from "../cli/rotation-world.ts";
import { arm } from "./arm.ts";
import { faultOf, nameOf, ofDatabase, planOf, VICTIM } from "./case-plan.ts";
import { keyViolations } from "./check-keys.ts";
import { type FaultEvent, type Gate, PASS } from "./gate.ts";
import { placeOf } from "./interrupt.ts";
import { type Running, shorterLimits } from "./lab.ts";
import { type PostgresFront, startPostgresFront } from "./postgres-front.ts";
import { every, LIMIT, SQLSTATES, sweep } from "./sweep.ts";

const FILE = "rotation.faults.ts";
const POLL_MS = 20;
/** A limit of a statement, and what follows from it. */
const PROGRAM_MS_MAX = 150_000;

type RotationCase = RotationWorld & {
  /** What the command among the sinks writes to. */
  readonly stored: string;
  readonly database: PostgresFront;
};

/** A key that is due, and the one before it past its grace, to be deleted; a file and a command as sinks. */
async function openCase(gate: Gate): Promise<RotationCase> {
  const ofService = (name: string) => {
    const side = name.endsWith("goes out") ? "out" : "back";
    return gate({ who: VICTIM, peer: "service", side, name }).kind === "pass";
  };
  let database: PostgresFront | undefined;
  const databaseVia = async (url: string) => {
    database = await startPostgresFront(url, { who: VICTIM, gate, rewrite: shorterLimits });
    return database;
  };
  const world = await openRotationWorld({ gate: ofService, databaseVia, timeoutMs: PROGRAM_MS_MAX });
  if (!database) throw new Error("the world of a rotation has not asked for a front");
  const stored = path.join(world.folder, "stored.key");
  world.sinks.push(stored);
  const store = ["sh", "-c", 'umask 077; cat > "$1.next" && mv "$1.next" "$1"', "sh", stored];
  await world.configure({ retire: "delete", deliver: [{ file: world.sink }, { command: store }] });
  await world.prepare();
  await age(world.db, 1);
  await world.prepare({ now: true });
  await age(world.db, 30);
  return { ...world, stored, database };
}

/** All events of a rotation that nothing happens to. */
async function calibrate(): Promise<readonly FaultEvent[]> {
  const events: FaultEvent[] = [];
  let isCounting = false;
  await using world = await openCase((event) => {
    if (isCounting) events.push(event);
    return PASS;
  });
  isCounting = true;
  const { status, stderr } = await world.run(["rotate"]);
  if (status !== 0) throw new Error(`the rotation that nothing happens to failed: ${stderr}`);
  return events;
}

let calibrated: Promise<readonly FaultEvent[]> | undefined;

async function points(fits: (event: FaultEvent) => boolean): Promise<readonly number[]> {
  calibrated ??= calibrate();
  return (await calibrated).flatMap((event, index) => (fits(event) ? [index + 1] : []));
}

async function runCase(name: string): Promise<readonly string[]> {
  const { kind, point } = planOf(name);
  let victim: Pick<Running, "program" | "database"> | undefined;
  const fault = arm({ who: VICTIM, point, ...faultOf(kind, () => victim) });
  await using world = await openCase((event) => (victim ? fault.gate(event) : PASS));
  using watch = watchSinks(world);
  const program = world.start(["rotate"]);
  victim = { program, database: world.database };
  const { stderr: said } = await program.ended;
  victim = undefined;
  const { status, stdout, stderr } = await world.run(["rotate"]);
  const leaks = await world.leaks({ server: point % 20 === 1 });
  const found = [
    ...(/^ {4}at /m.test(said) ? [`I9: the rotation took a fault for a mistake of the program: ${said}`] : []),
    ...(status === 0 ? [] : [`I8: the next rotation ended with ${status}: ${stdout}${stderr}`]),
    ...leaks.map((leak) => `I6: a secret leaked: ${JSON.stringify(leak)}`),
    ...watch.violations,
    ...(await ledgerViolations(world)),
  ];
  return found.map((one) => `${one} [${name}; ${placeOf(fault)}]`);
}

/** Looks all the time whether what each sink holds is a key that works. */
function watchSinks({ sink, stored, emulator }: RotationCase) {
  const violations = new Set<string>();
  const timer = setInterval(() => {
    for (const file of [sink, stored]) {
      const secret = readFileSync(file, "utf8").trim();
      if (!emulator.secretWorks(secret)) violations.add(`I7: ${path.basename(file)} held a key that does not work`);
    }
  }, POLL_MS);
  return { violations, [Symbol.dispose]: () => clearInterval(timer) };
}

/** What must be so when the rotation has come to its end. */
async function ledgerViolations(world: RotationCase): Promise<readonly string[]> {
  const rows = await ledgerRows(world.db);
  const found = keyViolations({
    ledger: rows.map(({ api_key_id, intent_id, state }) => ({ apiKeyId: api_key_id, intentId: intent_id, state })),
    existing: createdKeys(world),
    creates: world.proxy.creates.map(({ comment }) => comment),
    sinks: [world.sink, world.stored].map((file) => readFileSync(file, "utf8").trim()),
  });
  return rows[0]?.state === "retired" ? found : [...found, "I7: the key past its grace was not deleted"];
}

test.each([
  { kind: "kill", stride: 32 },
  { kind: "cut", stride: 48 },
  { kind: "hole", stride: 96, fits: ofDatabase },
])("rotation: $kind", LIMIT, async ({ kind, stride, fits = () => true }) => {
  const cases = async () => every(stride, await points(fits)).map((point) => nameOf({ replicas: 1, kind, point }));
  // They mostly wait, for the lease of the rotation that was killed.
  await sweep({ part: `rotation, ${kind}`, file: FILE, test: `rotation: ${kind}`, cases, atOnce: 12, run: runCase });
});

test("rotation: SQL errors", LIMIT, async () => {
  const cases = async () => {
    const all = await points(ofDatabase);
    return SQLSTATES.flatMap((sqlstate, index) =>
      every(300, all.slice(7 * index)).map((point) => nameOf({ replicas: 1, kind: `error ${sqlstate}`, point })),
    );
  };
  await sweep({
    part: "rotation, SQL errors",
    file: FILE,
    test: "rotation: SQL errors",
    cases,
    atOnce: 6,
    run: runCase,
  });
});
