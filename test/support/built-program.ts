// Builds the program for the tests, which run it as users install it: bundled, it starts in a tenth of the time that the sources take.

import { execFile } from "node:child_process";
import { mkdir, readFile, symlink } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";

const ROOT = path.join(import.meta.dirname, "../..");
const BUNDLE = "dist";
/** The one package that is not bundled. */
const EMBEDDED_DATABASE = "node_modules/@electric-sql";

/**
 * Makes a package in this empty folder, with a bundle of the present sources, and returns the path of its program. The checkout's own
 * `dist` is not touched, because it may be in use.
 */
export async function buildPackage(folder: string): Promise<string> {
  const { files } = JSON.parse(await readFile(path.join(ROOT, "package.json"), "utf8"));
  for (const file of ["package.json", EMBEDDED_DATABASE, ...files.filter((file: string) => file !== BUNDLE)]) {
    const link = path.join(folder, file);
    await mkdir(path.dirname(link), { recursive: true });
    await symlink(path.join(ROOT, file), link);
  }
  const bundle = path.join(folder, BUNDLE);
  await promisify(execFile)(process.execPath, [path.join(ROOT, "tools/build.ts"), bundle, "src/cli/command-line.ts"]);
  return path.join(bundle, "usage-export.cjs");
}
