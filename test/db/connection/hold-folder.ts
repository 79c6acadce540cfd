// A program that locks a folder (its second argument; the first stands for a command), prints whether it could, and ends after a minute.

import { lockFolder } from "../../../src/db/connection/database.ts";

const HOLD_MS = 60_000;

try {
  const unlock = await lockFolder(process.argv[3] ?? "");
  process.stdout.write("held\n");
  setTimeout(unlock, HOLD_MS);
} catch (error) {
  process.stdout.write(`refused: ${error instanceof Error ? error.message : String(error)}\n`);
}
