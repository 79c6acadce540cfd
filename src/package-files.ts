// Locates the files of this package, in a checkout and in the bundle that users install.

import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";

const IS_BUNDLE = !import.meta.filename.endsWith(".ts");

/** Found by searching upwards, because a file of the bundle lies at another depth than its source. */
export const PACKAGE_FOLDER = nearestWithPackageJson(import.meta.dirname);

export const MIGRATIONS_FOLDER = path.join(PACKAGE_FOLDER, IS_BUNDLE ? "dist/migrations" : "migrations");

/** The folder of the script that pages load. A checkout has none: web/assets.ts bundles the script when a browser asks for it. */
export const ASSETS_FOLDER = IS_BUNDLE ? path.join(PACKAGE_FOLDER, "dist/assets") : undefined;

/** The configuration's default path, in the working directory. The package contains an example of the same name. */
export const CONFIG_FILE = "jobs.config.json";

const IS_INSTALLED = import.meta.dirname.split(path.sep).includes("node_modules");
// Outside node_modules, as in the container image, the program is on the PATH.
const BUNDLE_COMMAND = IS_INSTALLED ? "npx usage-export" : "usage-export";

/** What users type before a command's name. */
export const COMMAND = IS_BUNDLE ? BUNDLE_COMMAND : "npm run usage-export --";

export async function programVersion(): Promise<string> {
  return String(JSON.parse(await readFile(path.join(PACKAGE_FOLDER, "package.json"), "utf8")).version);
}

function nearestWithPackageJson(folder: string): string {
  return existsSync(path.join(folder, "package.json")) ? folder : nearestWithPackageJson(path.dirname(folder));
}
