// A temporary folder with a configuration file, deleted when it is disposed of.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

export type ConfigFolder = AsyncDisposable & { readonly folder: string; readonly file: string };

export async function openConfigFolder(config: object): Promise<ConfigFolder> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "usage-export-bench-"));
  const file = path.join(folder, "jobs.config.json");
  await writeFile(file, JSON.stringify(config));
  return { folder, file, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) };
}
