// Runs mutation testing (Stryker) on the pure code and prints the score of each folder. With `--since REVISION` only lines that changed
// since that revision are mutated. Ends with 1 if the score of a folder is too low. A path limits it to one file or folder.

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

const ROOT = path.join(import.meta.dirname, "..");
const REPORT = path.join(ROOT, "node_modules/.cache/mutation.json");
/** Percent. */
const SCORE_MIN = 85;
/** So few mutants of changed lines may all be equivalent: the program does the same with them. */
const UNNOTICED_MAX = 2;
const FOLDERS = ["config", "keys", "schedule", "show", "usage"];

const { values, positionals } = parseArgs({ options: { since: { type: "string" } }, allowPositionals: true });
const mutate = values.since === undefined ? positionals : changedLines(values.since);
if (values.since !== undefined && mutate.length === 0) {
  process.stdout.write("no line of the pure code has changed\n");
  process.exit();
}
const { status } = spawnSync(
  "stryker",
  ["run", "test/mutation/stryker.config.json", ...(mutate.length > 0 ? ["--mutate", mutate.join(",")] : [])],
  {
    cwd: ROOT,
    stdio: "inherit",
  },
);
process.exitCode = status === 0 && printScores() ? 0 : 1;

/** Lines as Stryker names them, such as `src/usage/days.ts:10-12`. */
function changedLines(revision: string): readonly string[] {
  const folders = FOLDERS.map((folder) => `src/${folder}`);
  const diff = spawnSync("git", ["diff", "--unified=0", "--no-prefix", revision, "--", ...folders], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (diff.status !== 0) throw new Error(diff.stderr);
  let file = "";
  return diff.stdout.split("\n").flatMap((line) => {
    if (line.startsWith("+++ ")) file = line.slice(4);
    const [, first, count = "1"] = /^@@ \S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (!file.endsWith(".ts") || first === undefined || count === "0") return [];
    return [`${file}:${first}-${Number(first) + Number(count) - 1}`];
  });
}

/** Whether every folder reaches the least score. */
function printScores(): boolean {
  const { files } = JSON.parse(readFileSync(REPORT, "utf8")) as {
    files: Record<string, { mutants: { status: string }[] }>;
  };
  let isEnough = true;
  process.stdout.write(
    "\n| Folder | Mutants | Killed | Survived | Without a test | Score |\n| --- | --- | --- | --- | --- | --- |\n",
  );
  for (const folder of FOLDERS) {
    const mutants = Object.entries(files).flatMap(([file, one]) =>
      file.startsWith(`src/${folder}/`) ? one.mutants : [],
    );
    const count = (...statuses: string[]) => mutants.filter((mutant) => statuses.includes(mutant.status)).length;
    const [killed, survived, untested] = [count("Killed", "Timeout"), count("Survived"), count("NoCoverage")];
    const all = killed + survived + untested;
    if (all === 0) continue;
    const score = (100 * killed) / all;
    isEnough &&= score >= SCORE_MIN || survived + untested <= UNNOTICED_MAX;
    process.stdout.write(
      `| src/${folder} | ${all} | ${killed} | ${survived} | ${untested} | ${score.toFixed(1)} % |\n`,
    );
  }
  return isEnough;
}
