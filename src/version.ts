// The version of this program.

import { readFile } from "node:fs/promises";
import path from "node:path";

const PACKAGE = path.join(import.meta.dirname, "../package.json");

export async function programVersion(): Promise<string> {
  return String(JSON.parse(await readFile(PACKAGE, "utf8")).version);
}
