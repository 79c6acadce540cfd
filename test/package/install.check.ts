// The package as a user gets it: packed, installed in an empty folder, and run by npx on each Node that it names.

import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PROJECT_ID, smallConfig } from "../cli/small-config.ts";
import { startEmulator } from "../support/emulator.ts";
import { WAIT_MS_MAX } from "../support/limits.ts";

const run = promisify(execFile);

const ROOT = path.join(import.meta.dirname, "../..");
/** The newest release of the oldest line in package.json's `engines`. */
const OLDEST_NODE = "v22.23.3";
const TOO_OLD_NODE = "v20.20.2";
/** What is in the tarball beside the bundle's chunks, the migrations, the docs and the manifests. */
const PACKED = [
  ...["CHANGELOG.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"],
  ...["compose/bi-reader.sql", "compose/program-role.sql", "dist/THIRD-PARTY-LICENSES.txt", "dist/usage-export.cjs"],
  ...["jobs.config.json", "jobs.config.schema.json", "monitor/alerts.yml", "package.json"],
];

const DAYS = 3;
const GROUPINGS = ["none", "model"];
const MASTER_KEY = Buffer.alloc(32, 1).toString("base64");

/** A user's environment: with it npm finds and trusts its registry. Variables that this project's npm and tests set are left out. */
const userEnv = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^(DATABASE_URL|USAGE_EXPORT_|LOG_LEVEL|NODE_(?!EXTRA_CA_CERTS)|npm_(package|lifecycle))/.test(name),
  ),
);

let temporary: string;
let tarball: { readonly file: string; readonly paths: readonly string[] };

beforeAll(async () => {
  temporary = await mkdtemp(path.join(tmpdir(), "usage-export-package-"));
  const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", temporary], { cwd: ROOT });
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf("[")));
  tarball = {
    file: path.join(temporary, packed.filename),
    paths: packed.files.map((file: { path: string }) => file.path).sort(),
  };
});

afterAll(() => rm(temporary, { recursive: true, force: true }));

test("the tarball has only what a user needs", () => {
  const others = tarball.paths.filter(
    (file) => !/^dist\/(assets|chunks|migrations)\/|^compose\/grafana\/|^(docs|deploy)\//.test(file),
  );

  expect(others).toEqual(PACKED);
  expect(tarball.paths.filter((file) => /\.(ts|map)$|(^|\/)test\//.test(file))).toEqual([]);
});

test("a link of a packed page leads to a packed file", async () => {
  for (const page of tarball.paths.filter((file) => file.endsWith(".md"))) {
    const links = (await readFile(path.join(ROOT, page), "utf8")).matchAll(/\]\(([^)#:]+)[^):]*\)/g);
    const targets = [...links].map(([, target = ""]) => path.posix.join(path.posix.dirname(page), target));
    expect(tarball.paths, page).toEqual(expect.arrayContaining(targets));
  }
});

/** The suite runs the same bundle on the Node that the project is developed on, so there the demo is enough. */
describe.each([
  ["the Node that the project is developed on", process.version],
  ["the oldest Node that the package names", OLDEST_NODE],
])("on %s", (_name, version) => {
  const testOnOldest = test.runIf(version === OLDEST_NODE);
  let folder: string;
  let env: NodeJS.ProcessEnv;

  beforeAll(async () => {
    folder = await mkdtemp(path.join(temporary, "user-"));
    const bin = version === process.version ? path.dirname(process.execPath) : await installNode(version);
    env = { ...userEnv, PATH: `${bin}${path.delimiter}${userEnv.PATH}` };
    expect((await run("node", ["--version"], { env })).stdout.trim()).toBe(version);
    await run("npm", ["init", "--yes"], { cwd: folder, env });
    await run("npm", ["install", "--no-audit", "--no-fund", tarball.file], { cwd: folder, env });
  });

  test("demo shows the whole product, in an empty folder", async () => {
    const { stdout, stderr } = await run("npx", ["--no", "usage-export", "demo"], { cwd: folder, env });

    expect(stderr).not.toContain("Warning");
    expect(stdout).toContain("usage-report-demo.html");
    expect(stdout).toContain("npx usage-export init");
    expect(await readFile(path.join(folder, "usage-report-demo.html"), "utf8")).toContain("<svg");
  });

  testOnOldest("the commands from init to report work on the embedded database", async () => {
    const key = randomBytes(20).toString("hex");
    await using emulator = await startEmulator({
      consoleKeys: [{ secret: key, projectId: PROJECT_ID, scopes: ["member"] }],
    });
    const keys = { USAGE_EXPORT_KEY: key, USAGE_EXPORT_MASTER_KEY: MASTER_KEY };
    await writeFile(path.join(folder, "jobs.config.json"), JSON.stringify(configOf(emulator.url)));
    // The file that npx would run.
    const program = path.join(folder, "node_modules/.bin/usage-export");
    /** Returns the output. Rejects if the exit status is not 0. */
    const command = async (...args: string[]) =>
      (await run(program, args, { cwd: folder, env: { ...env, ...keys } })).stdout;

    await command("init", "--yes", "--base-url", emulator.url, "--config", "made.json");
    const made = JSON.parse(await readFile(path.join(folder, "made.json"), "utf8"));
    expect(made.$schema).toBe("./node_modules/usage-export/jobs.config.schema.json");
    await command("check", "--offline");
    await command("migrate");
    await command("check");
    expect(await command("export")).toContain(`${DAYS * GROUPINGS.length} slices complete`);
    expect(await command("export")).toContain(" 0 rows changed");
    await command("rotate", "--now");
    const delivered = (await readFile(path.join(folder, "exporter.key"), "utf8")).trim();
    expect(emulator.secretWorks(delivered)).toBe(true);
    await command("dump", "--view", "usage_by_model", "--out", "usage.csv");
    expect((await readFile(path.join(folder, "usage.csv"), "utf8")).split("\r\n").length).toBeGreaterThan(4);
    await command("report", "--out", "usage.html");
    expect(await readFile(path.join(folder, "usage.html"), "utf8")).toContain("<svg");
    await command("status");
  });

  testOnOldest("the worker serves its pages and their script", async () => {
    const keys = { USAGE_EXPORT_KEY: randomBytes(20).toString("hex"), USAGE_EXPORT_MASTER_KEY: MASTER_KEY };
    await writeFile(path.join(folder, "served.json"), JSON.stringify(configOf("http://127.0.0.1:1")));
    const program = path.join(folder, "node_modules/usage-export/dist/usage-export.cjs");
    const options = { cwd: folder, env: { ...env, ...keys } };
    await run("node", [program, "migrate", "--config", "served.json"], options);
    const worker = spawn("node", [program, "start", "--embedded", "--config", "served.json"], {
      ...options,
      stdio: ["ignore", "pipe", "pipe"],
    });
    const ended = once(worker, "exit");
    let lines = "";
    for (const output of [worker.stdout, worker.stderr]) {
      output.on("data", (chunk) => {
        lines += chunk;
      });
    }
    try {
      await expect
        .poll(() => lines + (worker.exitCode ?? ""), { timeout: WAIT_MS_MAX })
        .toMatch(/http:\/\/127\.0\.0\.1:[1-9]\d+/);
      const [url = ""] = /http:\/\/127\.0\.0\.1:[1-9]\d+/.exec(lines) ?? [];
      // A machine under load may take long for the first page, which then has no script.
      let script = "";
      const askPage = async () => {
        const page = await (await fetch(url)).text();
        [, script = ""] = /<script type="module" src="(assets\/app-[^"]+\.js)">/.exec(page) ?? [];
        return script;
      };
      await expect.poll(askPage, { timeout: WAIT_MS_MAX }).not.toBe("");
      expect(tarball.paths).toContain(`dist/${script}`);
      // The embedded database can hold up the worker's thread for seconds. Then the worker may close an idle connection just when a request
      // comes on it. A browser would repeat the request, too.
      const askScript = async () => {
        const response = await fetch(`${url}/${script}`);
        return [response.status, response.headers.get("content-type"), (await response.text()).length > 100_000];
      };
      await expect.poll(askScript, { timeout: WAIT_MS_MAX }).toEqual([200, "text/javascript; charset=utf-8", true]);
    } finally {
      worker.kill("SIGTERM");
      await ended;
    }
  });
});

test("a Node that is too old gets an error of one sentence", async () => {
  const bin = await installNode(TOO_OLD_NODE);
  const program = path.join(ROOT, "dist/usage-export.cjs");

  const refused = run(path.join(bin, "node"), [program, "--help"]);

  await expect(refused).rejects.toMatchObject({
    code: 1,
    stderr: `usage-export: needs Node 22.15 or later, and this is ${TOO_OLD_NODE}\n`,
  });
});

/** Returns the folder that holds `node`. */
async function installNode(version: string): Promise<string> {
  const folder = path.join(temporary, `node-${version}`);
  const name = `node-${process.platform}-${process.arch}`;
  const bin = path.join(folder, "node_modules", name, "bin");
  await mkdir(folder, { recursive: true });
  await run("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, `${name}@${version.slice(1)}`], {
    cwd: folder,
  });
  return bin;
}

function configOf(baseUrl: string) {
  const rotation = { name: "exporter", schedule: "0 4 * * *", project: "production", comment: "usage exporter" };
  return {
    ...smallConfig(baseUrl, { exports: [{ window: { days: DAYS }, groupings: GROUPINGS }] }),
    rotations: [{ ...rotation, scopes: ["member"], deliver: [{ file: "exporter.key" }] }],
    monitor: { port: 0 },
  };
}
