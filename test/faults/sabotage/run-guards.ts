// Runs single tests of the suite in a copy of the repository, on an existing database server, and returns how each ended.

import { readFile, rm } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { startScript } from "../../support/program.ts";
import type { Guard } from "./sabotage.ts";

const LIMIT_MS = 600_000;
/** Most of these tests start no program, and would wait for one to be built. */
const FROM_SOURCES = { TEST_PROGRAM: "src/main.ts" };

const Report = z.object({
  testResults: z.array(
    z.object({
      name: z.string(),
      status: z.string(),
      message: z.string(),
      assertionResults: z.array(
        z.object({ fullName: z.string(), status: z.string(), failureMessages: z.array(z.string()) }),
      ),
    }),
  ),
});

export type Outcome = {
  readonly file: string;
  readonly test: string;
  readonly passed: boolean;
  readonly reasons: readonly string[];
};

/** The outcomes of all tests in these files that match one of these names. Throws if a file can't be loaded. */
export async function runGuards(
  folder: string,
  serverUrl: string,
  guards: readonly Guard[],
): Promise<readonly Outcome[]> {
  const report = path.join(folder, "guards.json");
  await rm(report, { force: true });
  const files = [...new Set(guards.map(([file]) => file))];
  const names = guards.map(([, test]) => RegExp.escape(test)).join("|");
  await using vitest = startScript(
    path.join(folder, "node_modules/vitest/vitest.mjs"),
    ["run", "--config", "test/vitest.config.ts", "--reporter=json", `--outputFile=${report}`, ...files, "-t", names],
    { cwd: folder, env: { TEST_ENGINE: "url", TEST_DATABASE_URL: serverUrl, ...FROM_SOURCES }, timeoutMs: LIMIT_MS },
  );
  const { stdout, stderr } = await vitest.ended;
  const text = await readFile(report, "utf8").catch(() => undefined);
  if (text === undefined) throw new Error(`no test could be run:\n${stdout}${stderr}`);
  const { testResults } = Report.parse(JSON.parse(text));
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const file = path.relative(folder, name);
    if (status === "failed" && assertionResults.every((one) => one.status !== "failed")) {
      throw new Error(`${file} could not be run: ${message}`);
    }
    return assertionResults
      .filter((one) => one.status === "passed" || one.status === "failed")
      .map((one) => ({ file, test: one.fullName, passed: one.status === "passed", reasons: one.failureMessages }));
  });
}

export function isOf({ file, test }: Outcome, [guardFile, name]: Guard): boolean {
  return file === guardFile && test.includes(name);
}
