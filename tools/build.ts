// Builds what users install: the sources as JavaScript, with every package but the embedded database bundled in. Each command's
// part is a chunk of its own, loaded when used, so that `--help` does not pay for charts or the queue. Builds into `dist`, or into the
// folder given as an argument; a second one is a module of the sources that the tests load beside the program.

import fs from "node:fs";
import path from "node:path";
import { type OutputChunk, rolldown } from "rolldown";
import { clientBundle } from "./client-bundle.ts";
import { lessOfPackages } from "./less-of-packages.ts";

const ROOT = path.join(import.meta.dirname, "..");
const DIST = path.resolve(process.argv[2] ?? path.join(ROOT, "dist"));
/** The oldest supported Node. Newer syntax, such as `using`, is rewritten for it. */
const OLDEST_NODE = "node22.15";
/** Not bundled: PGlite reads its WebAssembly from beside itself; pg asks for pg-native and does without. */
const EXTERNAL = ["@electric-sql/pglite", "pg-native"];

const migrations = fs.globSync("migrations/*.ts", { cwd: ROOT }).sort();
const bundle = await rolldown({
  cwd: ROOT,
  input: {
    "usage-export": "src/main.ts",
    ...(process.argv[3] && { [path.basename(process.argv[3], ".ts")]: process.argv[3] }),
    ...Object.fromEntries(migrations.map((file) => [file.replace(/\.ts$/, ""), file])),
  },
  platform: "node",
  resolve: {
    // Its main module is UMD, whose inner modules no bundler finds.
    alias: { "jsonc-parser": path.join(ROOT, "node_modules/jsonc-parser/lib/esm/main.js") },
    // If node_modules is a link, as in a git worktree, less-of-packages.ts would add second copies of modules under their real paths.
    symlinks: false,
  },
  external: EXTERNAL,
  plugins: [lessOfPackages],
  transform: { target: OLDEST_NODE },
  onLog(level, log) {
    if (level === "warn") throw new Error(`the bundler warns: ${log.message}`);
  },
});
const { output } = await bundle.write({
  dir: DIST,
  cleanDir: true,
  // Loads faster than ES modules: an import of node:fs reads all that it exports, and so loads what is behind.
  format: "cjs",
  entryFileNames: "[name].cjs",
  chunkFileNames: "chunks/[name]-[hash].cjs",
  // Names and lines stay, so that a stack trace can be read without a source map; comments cost size only.
  comments: { legal: true, annotation: false, jsdoc: false },
});
fs.chmodSync(path.join(DIST, "usage-export.cjs"), 0o755);
for (const part of ["migrations/tables", "migrations/views", "migrations/columns.json"]) {
  fs.cpSync(path.join(ROOT, part), path.join(DIST, part), { recursive: true });
}
const script = await clientBundle();
fs.mkdirSync(path.join(DIST, "assets"));
fs.writeFileSync(path.join(DIST, "assets", script.fileName), script.code);
const chunks = [...output.filter((file): file is OutputChunk => file.type === "chunk"), script];
fs.writeFileSync(path.join(DIST, "THIRD-PARTY-LICENSES.txt"), licenses(chunks));

/** The licence of every package of which code is in the bundle, as those licences ask for. */
function licenses(chunks: readonly OutputChunk[]): string {
  const folders = new Set(
    chunks
      .flatMap((chunk) => chunk.moduleIds)
      .flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
  );
  return [...folders]
    .map((folder) => {
      const { name, version, license } = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
      const texts = fs
        .readdirSync(folder)
        .filter((file) => /^(licen[cs]e|notice|copying)/i.test(file) && fs.statSync(path.join(folder, file)).isFile())
        .map((file) => fs.readFileSync(path.join(folder, file), "utf8").trim());
      return [`${name} ${version} (${license})`, ...texts].join("\n\n");
    })
    .sort()
    .join(`\n\n${"-".repeat(80)}\n\n`)
    .concat("\n");
}
