// Wrong configurations, given to the whole program: each is refused before the service or the database is called, and the error names
// the place and the fix.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, expect, test } from "vitest";
import { MISTAKES } from "../config/mistakes.ts";
import { SAMPLE, sampleWith } from "../config/sample-config.ts";
import { runProgram } from "../support/program.ts";
import { rawServer } from "../support/scripted-server.ts";
import { TAKES_ALL } from "./scope.ts";

/** CI takes every eighth: the tests of the configuration check the message of every one, where a case costs nothing. */
const STEP = TAKES_ALL ? 1 : 8;
const AT_ONCE = 2;

const folder = await mkdtemp(path.join(tmpdir(), "usage-export-faults-"));
afterAll(() => rm(folder, { recursive: true }));

test("a configuration with one wrong value ends the program before it calls the service or the database", {
  timeout: 300_000,
}, async () => {
  await using service = await rawServer(() => undefined);
  await using database = await rawServer(() => undefined);
  const env = {
    DATABASE_URL: `${database.origin.replace("http:", "postgres:")}/usage`,
    PRODUCTION_KEY: "0123456789abcdef",
    LAB_KEY: "0123456789abcdef",
  };
  const cases = MISTAKES.filter((_, n) => n % STEP === 0).values();
  let count = 0;
  const wrong: string[] = [];
  const work = async () => {
    for (const [place, value, says, faultPlace] of cases) {
      const number = count++;
      const name = `${place} as ${JSON.stringify(value)}`;
      const file = path.join(folder, `${number}.json`);
      await writeFile(file, sampleWith(place, value).replace(`"${SAMPLE.service.baseUrl}"`, `"${service.origin}"`));
      const command = number % 2 === 0 ? ["export"] : ["check", "--offline"];
      const { status, stdout, stderr } = await runProgram([...command, "--config", file], { env, cwd: folder });
      if (status !== 2 || stdout !== "") wrong.push(`${name}: ${status}, ${stdout}`);
      if (!stderr.includes(`- ${faultPlace} (line `) || !stderr.includes(says)) wrong.push(`${name}: ${stderr}`);
      if (/\n\s+at /.test(stderr)) wrong.push(`${name}: ends with a stack`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));

  expect(wrong).toEqual([]);
  expect({ service: service.connections(), database: database.connections() }).toEqual({ service: 0, database: 0 });
});
