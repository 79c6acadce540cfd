// Makes a release of what is committed: checks, the tarball with its bill of materials, and the tag. `npm run release -- FOLDER`.
// With `--tagged TAG` it makes only the files, for a tag that exists and was checked: .github/workflows/release.yml calls it like that.
// The steps before and after it are in docs/releasing.md.

import { execFileSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";

const ROOT = path.join(import.meta.dirname, "..");

const { values, positionals } = parseArgs({ options: { tagged: { type: "string" } }, allowPositionals: true });
const [folder] = positionals;
const isTagged = values.tagged !== undefined;
if (folder === undefined) refuse("expected a folder for the tarball: npm run release -- FOLDER");
const { name, version } = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));
const tag = `v${version}`;

if (run("git", ["status", "--porcelain"]) !== "") refuse("there are changes that are not committed");
if (isTagged && values.tagged !== tag)
  refuse(`the tag is ${values.tagged}, but package.json has the version ${version}`);
if (!isTagged && run("git", ["tag", "--list", tag]) !== "")
  refuse(`the tag ${tag} exists: raise the version in package.json`);
const heading = new RegExp(`^## \\[${version.replaceAll(".", "\\.")}\\] - \\d{4}-\\d\\d-\\d\\d$`, "m");
if (!heading.test(fs.readFileSync(path.join(ROOT, "CHANGELOG.md"), "utf8"))) {
  refuse(`CHANGELOG.md has no section "## [${version}] - YYYY-MM-DD"`);
}

const output = path.resolve(folder);
fs.mkdirSync(output, { recursive: true });
if (!isTagged) {
  // With so much time .ci/run leaves no step out, even on a slow machine.
  const env = { ...process.env, CI_SECONDS_MAX: "86400" };
  execFileSync(path.join(ROOT, ".ci/run"), { cwd: ROOT, stdio: "inherit", env });
}
run("npm", ["pack", "--pack-destination", output]);
// Includes the development packages, because the bundle contains them.
fs.writeFileSync(path.join(output, `${name}-${version}.cdx.json`), run("npm", ["sbom", "--sbom-format", "cyclonedx"]));
if (!isTagged) run("git", ["tag", "--annotate", tag, "--message", `${name} ${version}`]);
process.stdout.write(
  `${name} ${version} is in ${output}${isTagged ? "" : `; publish the tag with: git push origin ${tag}`}\n`,
);

function run(command: string, args: readonly string[]): string {
  return execFileSync(command, args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"] }).trim();
}

function refuse(reason: string): never {
  process.stderr.write(`not released: ${reason}\n`);
  process.exit(1);
}
