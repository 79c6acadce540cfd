// Programs that share a folder with the embedded database, each in its own PID namespace, as in containers: each has the process id 1,
// and only one may use the database at a time.

import path from "node:path";
import { describe, expect, vi } from "vitest";
import { openEmbedded } from "../../src/db/connection/database.ts";
import { holdAnswersFrom } from "../cli/hold-answers.ts";
import { lastDays, servedNumbers, storedNumbers } from "../cli/numbers.ts";
import { programTest } from "../cli/program-context.ts";
import { smallConfig } from "../cli/small-config.ts";
import { hasPidNamespaces } from "../support/program.ts";
import { TAKES_ALL } from "./scope.ts";

vi.setConfig({ testTimeout: 600_000 });

const RIVALS = TAKES_ALL ? 10 : 3;
const EMBEDDED = { DATABASE_URL: undefined };
const READING = { groupings: ["none", "tags"], window: lastDays(2) };

const test = programTest();

describe.skipIf(!hasPidNamespaces())("containers", () => {
  test("while an export uses the embedded database others are refused, whatever they see of its process", async ({
    context,
  }) => {
    const emulator = await context.serve();
    await context.configure(
      smallConfig(emulator.url, { service: { maxConcurrent: 1 }, exports: [{ groupings: READING.groupings }] }),
    );
    await context.run(["migrate"], EMBEDDED);
    const first = context.start(["export"], EMBEDDED, { pidNamespace: true });
    const releaseAnswers = await holdAnswersFrom(emulator, 2);
    const wrong: string[] = [];
    for (let n = 1; n <= RIVALS; n++) {
      // Every other rival has no namespace of its own, and sees the first program's namespace from outside.
      const rival = context.start(["export"], EMBEDDED, { pidNamespace: n % 2 === 0 });
      const { status, stderr } = await rival.ended;
      if (status !== 1 || !stderr.includes("is in use by process 1 ")) wrong.push(`rival ${n}: ${status}, ${stderr}`);
    }
    releaseAnswers();
    expect(await first.ended).toMatchObject({ status: 0 });
    expect(wrong).toEqual([]);
    await using db = await openEmbedded(path.join(context.folder, "data"));
    expect(await storedNumbers(db, READING)).toEqual(await servedNumbers(emulator, context.key, READING));
  });
});
