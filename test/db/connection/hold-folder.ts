// hold-folder.ts COMMAND FOLDER: prints whether it could lock the folder, and holds it for a minute. The lock names the command of its holder.

import { lockFolder } from "../../../src/db/connection/database.ts";

const HOLD_MS = 60_000;

try {
  const unlock = await lockFolder(process.argv[3] ?? "");
  process.stdout.write("held\n");
  setTimeout(unlock, HOLD_MS);
} catch (error) {
  process.stdout.write(`refused: ${error instanceof Error ? error.message : String(error)}\n`);
}
