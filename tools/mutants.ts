// Runs mutation testing (Stryker) on the pure code and prints the score of each folder. With `--since REVISION` only lines that changed
// since that revision are mutated. Ends with 1 if the score of a folder is too low. A path limits it to one file or folder.

import { spawnSync } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

const ROOT = path.join(import.meta.dirname, "..");
const CONFIG = "test/mutation/stryker.config.json";
const REPORT = path.join(ROOT, "node_modules/.cache/mutation.json");
/** Percent. */
const SCORE_MIN = 85;
/** This many unnoticed mutants are accepted, because all of them may be equivalent: such a mutant changes nothing that a test could see. */
const UNNOTICED_MAX = 2;

const { values, positionals } = parseArgs({ options: { since: { type: "string" } }, allowPositionals: true });
const mutate = values.since === undefined ? positionals.map(globOf) : changedLines(values.since);
if (values.since !== undefined && mutate.length === 0) {
  process.stdout.write("no line of the pure code has changed\n");
  process.exit();
}
const { status } = spawnSync("stryker", ["run", CONFIG, ...(mutate.length > 0 ? ["--mutate", mutate.join(",")] : [])], {
  cwd: ROOT,
  stdio: "inherit",
});
process.exitCode = status === 0 && printScores() ? 0 : 1;

/** The pattern of a folder's files, because Stryker takes only files. */
function globOf(given: string): string {
  const isFolder = statSync(path.join(ROOT, given), { throwIfNoEntry: false })?.isDirectory() ?? false;
  return isFolder ? `${path.normalize(given).replace(/\/$/, "")}/**/*.ts` : given;
}

/** Changed lines of the pure code as Stryker names them, such as `src/usage/days.ts:10-12`. Changes made only on the other branch are left out. */
function changedLines(revision: string): readonly string[] {
  const { mutate: patterns } = JSON.parse(readFileSync(path.join(ROOT, CONFIG), "utf8")) as {
    mutate: readonly string[];
  };
  const diff = spawnSync("git", ["diff", "--merge-base", "--unified=0", "--no-prefix", revision, "--", "src"], {
    cwd: ROOT,
    encoding: "utf8",
  });
  if (diff.status !== 0) throw new Error(diff.stderr);
  let file = "";
  return diff.stdout.split("\n").flatMap((line) => {
    if (line.startsWith("+++ ")) file = line.slice(4);
    const [, first, count = "1"] = /^@@ \S+ \+(\d+)(?:,(\d+))? @@/.exec(line) ?? [];
    if (first === undefined || count === "0" || !patterns.some((glob) => path.matchesGlob(file, glob))) return [];
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
  const byFolder = Map.groupBy(Object.entries(files), ([file]) => path.dirname(file));
  for (const [folder, members] of [...byFolder].sort()) {
    const mutants = members.flatMap(([, one]) => one.mutants);
    const count = (...statuses: string[]) => mutants.filter((mutant) => statuses.includes(mutant.status)).length;
    const [killed, survived, untested] = [count("Killed", "Timeout"), count("Survived"), count("NoCoverage")];
    const all = killed + survived + untested;
    if (all === 0) continue;
    const score = (100 * killed) / all;
    isEnough &&= score >= SCORE_MIN || survived + untested <= UNNOTICED_MAX;
    process.stdout.write(`| ${folder} | ${all} | ${killed} | ${survived} | ${untested} | ${score.toFixed(1)} % |\n`);
  }
  return isEnough;
}
