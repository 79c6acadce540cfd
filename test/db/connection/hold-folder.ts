// A program that locks the folder given as its second argument, prints whether it did, and holds the lock until the program is killed.

import { lockFolder } from "../../../src/db/connection/database.ts";

const HOLD_MS = 60_000;

try {
  const unlock = await lockFolder(process.argv[3] ?? "");
  process.stdout.write("held\n");
  setTimeout(unlock, HOLD_MS);
} catch (error) {
  process.stdout.write(`refused: ${error instanceof Error ? error.message : String(error)}\n`);
}
