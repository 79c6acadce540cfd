// The script of the pages. In the installed package it is a file of the build; run from the sources, the program bundles it at the first request.

import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { memoizeAsync } from "../async.ts";
import { ASSETS_FOLDER, PACKAGE_FOLDER } from "../package-files.ts";
import type { Page } from "./page.ts";

let scriptFile: string | undefined;
const readOnce = memoizeAsync<Page>();

/** "assets/app-HASH.js", relative to the root of the worker's HTTP server. */
export function scriptPath(): string {
  // The sources may have changed since the last start: a new name keeps a browser from using its cached script.
  scriptFile ??= ASSETS_FOLDER
    ? readdirSync(ASSETS_FOLDER).find((name) => name.endsWith(".js"))
    : `app-${Date.now().toString(36)}.js`;
  if (scriptFile === undefined) throw new Error(`expected a script in ${ASSETS_FOLDER}`);
  return `assets/${scriptFile}`;
}

export function scriptPage(): Promise<Page> {
  return readOnce("script", async () => {
    const file = path.basename(scriptPath());
    const body = ASSETS_FOLDER ? await readFile(path.join(ASSETS_FOLDER, file), "utf8") : await bundleSources();
    // The name of the file changes with its content.
    const headers = { "cache-control": "public, max-age=31536000, immutable" };
    return { status: 200, contentType: "text/javascript; charset=utf-8", body, headers };
  });
}

/** Every copy of the sources has the bundler. It is imported by a computed path, so that the build leaves it out. */
async function bundleSources(): Promise<string> {
  const bundler = pathToFileURL(path.join(PACKAGE_FOLDER, "tools/client-bundle.ts")).href;
  const { clientBundle } = await import(bundler);
  return (await clientBundle()).code;
}
