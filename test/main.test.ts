// main.ts, run with a standard output that can't be written, as on a full disk.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const MAIN = path.join(import.meta.dirname, "../src/main.ts");
const FULL = "/dev/full";

test.skipIf(!existsSync(FULL)).each(["schema", "--help"])(
  "if the answer of %s can't be written, the program fails with one line",
  (command) => {
    const { status, stderr } = spawnSync("sh", ["-c", `exec "$@" > ${FULL}`, "sh", process.execPath, MAIN, command], {
      encoding: "utf8",
    });

    expect(stderr).toBe(
      "usage-export: the answer could not be written to standard output: ENOSPC: no space left on device, write\n",
    );
    expect(status).toBe(1);
  },
);
