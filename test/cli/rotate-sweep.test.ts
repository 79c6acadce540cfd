// Interrupts a rotation from outside at every request, answer and database message of it, and lets one ordinary rotation
// follow. By default every few points; SWEEP=all takes all of them, POINT=n one.

import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import type { Program } from "../support/program.ts";
import type { Gate } from "./rotation-http-proxy.ts";
import { startPostgresProxy } from "./rotation-postgres-proxy.ts";
import { age, createdKeys, ledgerRows, openRotationWorld, type RotationWorld } from "./rotation-world.ts";

/** They mostly wait, for the lease of the rotation that was killed. */
const CASES_AT_ONCE = 16;
const STRIDE = 8;
const POLL_MS = 20;
const SWEEP_MS_MAX = 20 * 60_000;

const FILE = "test/cli/rotate-sweep.test.ts";

/** The process is killed, or it lives and loses the connection: of a request or of the database. */
type Interruption = "killed" | "cut off";

test.each<Interruption>(["killed", "cut off"])(
  "a rotation that is %s at any moment is brought to its end by the next",
  { timeout: SWEEP_MS_MAX },
  async (interruption) => {
    // Each program that is started listens for the end of this process.
    process.setMaxListeners(4 * CASES_AT_ONCE);
    const names = await calibrate();
    const points = chosenPoints(names.length);
    const startedMs = performance.now();
    const violations: string[] = [];
    const waiting = points.values();
    const work = async () => {
      for (const point of waiting) {
        const repeat = `POINT=${point} npx vitest run --config test/vitest.config.ts ${FILE} -t "${interruption}"`;
        const where = `${interruption} at ${point} of ${names.length} (${names[point - 1]}), repeat with: ${repeat}`;
        violations.push(...(await interruptedAt(point, interruption)).map((violation) => `${violation}; ${where}`));
      }
    };
    await Promise.all(Array.from({ length: CASES_AT_ONCE }, work));
    const seconds = Math.round((performance.now() - startedMs) / 1000);
    process.stdout.write(`${interruption} at ${points.length} of ${names.length} points in ${seconds} s\n`);
    expect(violations).toEqual([]);
  },
);

function chosenPoints(count: number): readonly number[] {
  const { SWEEP, POINT } = process.env;
  if (POINT) return [Number(POINT)];
  const all = Array.from({ length: count }, (_, i) => i + 1);
  return SWEEP === "all" ? all : all.filter((point) => point % STRIDE === 1);
}

/** A key that is due, and the one before it past its grace, to be deleted; a file and a command as sinks. */
async function openCase(gate: Gate): Promise<RotationWorld & { readonly stored: string }> {
  const world = await openRotationWorld({ gate, databaseVia: (url) => startPostgresProxy(url, gate) });
  const stored = path.join(world.folder, "stored.key");
  world.sinks.push(stored);
  const store = ["sh", "-c", 'umask 077; cat > "$1.next" && mv "$1.next" "$1"', "sh", stored];
  await world.configure({ retire: "delete", deliver: [{ file: world.sink }, { command: store }] });
  await world.prepare();
  await age(world.db, 1);
  await world.prepare({ now: true });
  await age(world.db, 30);
  return { ...world, stored };
}

/** The names of all events of a rotation that nothing happens to. */
async function calibrate(): Promise<readonly string[]> {
  const names: string[] = [];
  let isCounting = false;
  await using world = await openCase((event) => {
    if (isCounting) names.push(event);
    return true;
  });
  isCounting = true;
  const { status, stderr } = await world.run(["rotate"]);
  if (status !== 0) throw new Error(`the rotation that nothing happens to failed: ${stderr}`);
  return names;
}

async function interruptedAt(point: number, interruption: Interruption): Promise<readonly string[]> {
  let events = 0;
  let victim: Program | undefined;
  await using world = await openCase(() => {
    if (!victim) return true;
    events++;
    if (interruption === "cut off") return events !== point;
    if (events >= point) victim.kill("SIGKILL");
    return events < point;
  });
  using watch = watchSinks(world);
  victim = world.start(["rotate"]);
  const { stderr: said } = await victim.ended;
  victim = undefined;
  const { status, stdout, stderr } = await world.run(["rotate"]);
  const leaks = await world.leaks({ server: point % 20 === 1 });
  return [
    ...(said.includes("    at ") ? [`the rotation took it for a mistake of the program: ${said}`] : []),
    ...(status === 0 ? [] : [`the next rotation ended with ${status}: ${stdout}${stderr}`]),
    ...leaks.map((leak) => `a secret leaked: ${JSON.stringify(leak)}`),
    ...watch.violations,
    ...(await ledgerViolations(world)),
  ];
}

/** Looks all the time whether what each sink holds is a key that works. */
function watchSinks({ sink, stored, emulator }: RotationWorld & { readonly stored: string }) {
  const violations = new Set<string>();
  const timer = setInterval(() => {
    for (const file of [sink, stored]) {
      const secret = readFileSync(file, "utf8").trim();
      if (!emulator.secretWorks(secret)) violations.add(`${path.basename(file)} held a key that does not work`);
    }
  }, POLL_MS);
  return { violations, [Symbol.dispose]: () => clearInterval(timer) };
}

/** What must be so when the rotation has come to its end. */
async function ledgerViolations(world: RotationWorld & { readonly stored: string }): Promise<readonly string[]> {
  const rows = await ledgerRows(world.db);
  const comments = world.proxy.creates.map(({ comment }) => comment);
  const known = rows
    .filter(({ state }) => state === "active" || state === "draining")
    .map(({ api_key_id }) => api_key_id);
  const exists = createdKeys(world);
  const checks: readonly (readonly [boolean, string])[] = [
    [new Set(comments).size === comments.length, "a create was sent twice for one intent"],
    [rows.filter(({ state }) => state === "active").length === 1, "there is not one key in use"],
    [rows.every(({ state }) => state !== "pending"), "a key is still on its way"],
    [rows[0]?.state === "retired", "the key past its grace was not deleted"],
    [exists.every((id) => known.includes(id)), "the service has a key that the ledger does not know"],
    [known.every((id) => id !== null && exists.includes(id)), "the ledger has a key that does not exist"],
    [readFileSync(world.sink, "utf8") === readFileSync(world.stored, "utf8"), "the sinks hold different keys"],
  ];
  return checks.filter(([holds]) => !holds).map(([, violation]) => violation);
}
