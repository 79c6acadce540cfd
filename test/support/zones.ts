// A program: runs the tests in a time zone east of Greenwich and in one west of it, where the local day differs from the day in UTC.
// Its arguments are passed to vitest.

import { spawnSync } from "node:child_process";
import path from "node:path";

const ZONES = ["Asia/Tokyo", "America/Los_Angeles"];
const ROOT = path.join(import.meta.dirname, "../..");
const VITEST = path.join(ROOT, "node_modules/vitest/vitest.mjs");

const failed = ZONES.filter((zone) => {
  process.stdout.write(`\nTZ=${zone}\n`);
  const { status } = spawnSync(
    process.execPath,
    [VITEST, "run", "--config", "test/vitest.config.ts", ...process.argv.slice(2)],
    { cwd: ROOT, env: { ...process.env, TZ: zone }, stdio: "inherit" },
  );
  return status !== 0;
});
process.stdout.write(failed.length === 0 ? `passed in ${ZONES.join(", ")}\n` : `failed in ${failed.join(", ")}\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
