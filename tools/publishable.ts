// Says what the owner still has to choose before the package can be published. `npm run publishable`; npm runs it before `npm publish`.

import fs from "node:fs";
import path from "node:path";

const ROOT = path.join(import.meta.dirname, "..");
const manifest = JSON.parse(fs.readFileSync(path.join(ROOT, "package.json"), "utf8"));

const missing: string[] = [];
if (manifest.private) missing.push('package.json: remove "private"');
if (manifest.license === "UNLICENSED")
  missing.push('package.json: "license" needs the name of a licence, such as "MIT"');
if (!fs.existsSync(path.join(ROOT, "LICENSE"))) missing.push("LICENSE: expected a file with the text of the licence");
for (const field of ["repository", "bugs", "homepage"]) {
  if (!manifest[field]) missing.push(`package.json: "${field}" needs an address`);
}
for (const line of missing) process.stderr.write(`${line}\n`);
if (missing.length === 0) process.stdout.write(`${manifest.name} ${manifest.version} can be published\n`);
process.exitCode = missing.length === 0 ? 0 : 1;
