// Where the files of this package are, whether it runs as the sources of a checkout or as the bundle that users install.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";

const IS_BUNDLE = !import.meta.filename.endsWith(".ts");

/** Chunks of the bundle are in another folder than the sources they were made of, so the depth is not fixed. */
export const PACKAGE_FOLDER = nearestWithPackageJson(import.meta.dirname);

export const MIGRATIONS_FOLDER = path.join(PACKAGE_FOLDER, IS_BUNDLE ? "dist/migrations" : "migrations");

/** Looked for in the folder that a command runs in; the package has one as an example. */
export const CONFIG_FILE = "jobs.config.json";

/** What a user of this package types before the name of a command. */
export const COMMAND = IS_BUNDLE ? "npx usage-export" : "npm run usage-export --";

export async function programVersion(): Promise<string> {
  return String(JSON.parse(await readFile(path.join(PACKAGE_FOLDER, "package.json"), "utf8")).version);
}

function nearestWithPackageJson(folder: string): string {
  return existsSync(path.join(folder, "package.json")) ? folder : nearestWithPackageJson(path.dirname(folder));
}
