// A copy of the repository for sabotages: the original is not touched, and programs that are started in the copy run its code.

import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { applySabotage, type Sabotage } from "./sabotage.ts";

const ROOT = path.join(import.meta.dirname, "../../..");
const LEFT_OUT = new Set(["node_modules", ".git"]);

export type Tree = AsyncDisposable & {
  readonly folder: string;
  /** Makes these changes, runs `work`, and undoes them. */
  readonly spoil: <T>(sabotages: readonly Sabotage[], work: () => Promise<T>) => Promise<T>;
};

export async function copyTree(): Promise<Tree> {
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-sabotage-"));
  await cp(ROOT, folder, { recursive: true, filter: (source) => !LEFT_OUT.has(path.basename(source)) });
  await symlink(path.join(ROOT, "node_modules"), path.join(folder, "node_modules"));
  return {
    folder,
    async spoil(sabotages, work) {
      const originals = new Map<string, string>();
      try {
        for (const sabotage of sabotages) {
          const file = path.join(folder, sabotage.file);
          const text = await readFile(file, "utf8");
          if (!originals.has(file)) originals.set(file, text);
          await writeFile(file, applySabotage(text, sabotage));
        }
        return await work();
      } finally {
        for (const [file, text] of originals) await writeFile(file, text);
      }
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true }),
  };
}
