// What only the program's entry does: it is run with an output that takes nothing, as on a full disk.

import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";

const MAIN = path.join(import.meta.dirname, "../src/main.ts");
const FULL = "/dev/full";

test.skipIf(!existsSync(FULL)).each(["schema", "--help"])(
  "an answer of %s that can't be written is a failure in one line",
  (command) => {
    const { status, stderr } = spawnSync("sh", ["-c", `exec "$@" > ${FULL}`, "sh", process.execPath, MAIN, command], {
      encoding: "utf8",
    });

    expect(stderr).toBe(
      "usage-export: standard output takes no more of the answer: ENOSPC: no space left on device, write\n",
    );
    expect(status).toBe(1);
  },
);
