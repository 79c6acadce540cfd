import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runStatement } from "./postgres-admin.ts";
import { engineOf, startServer } from "./postgres-server.ts";
import { startScript } from "./program.ts";

/** There is no registry at this port, so that no container starts, with or without a Docker engine. */
const NO_IMAGE = "127.0.0.1:1/postgres:none";

test.each([
  [{}, undefined],
  [{ TEST_DATABASE_URL: "postgres://given" }, "url"],
  [{ TEST_DATABASE_URL: "postgres://given", TEST_ENGINE: "embedded" }, "embedded"],
  [{ TEST_ENGINE: "testcontainers" }, "testcontainers"],
  [{ TEST_ENGINE: "url" }, "url"],
])("with %o the engine is %s", (env, engine) => {
  expect(engineOf(env)).toBe(engine);
});

test("the error for an unknown TEST_ENGINE names the engines", () => {
  expect(() => engineOf({ TEST_ENGINE: "docker" })).toThrow(
    'TEST_ENGINE: expected one of url, testcontainers, embedded, got "docker"',
  );
});

test("TEST_ENGINE=url without TEST_DATABASE_URL is refused", async () => {
  await expect(startServer({ TEST_ENGINE: "url" }, () => {})).rejects.toThrow("set TEST_DATABASE_URL");
});

test("with TEST_ENGINE=testcontainers, a container that does not start is an error", async () => {
  const env = { TEST_ENGINE: "testcontainers", POSTGRES_IMAGE: NO_IMAGE };
  await expect(startServer(env, () => {})).rejects.toThrow(`${NO_IMAGE} did not start in a container: `);
});

test("without TEST_ENGINE, the embedded server replaces a container that does not start, and stop removes it", async () => {
  const server = await startServer({ POSTGRES_IMAGE: NO_IMAGE }, () => {});
  try {
    expect(server.name).toBe("embedded Postgres");
    expect(await runStatement(server.url, "select 1 as one")).toEqual([{ one: 1 }]);
  } finally {
    await server.stop();
  }
  await expect(runStatement(server.url, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  expect(existsSync(server.logFile ?? "")).toBe(false);
});

test("a run that is killed leaves no embedded server behind", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "usage-export-killed-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const script = path.join(folder, "run.ts");
  await writeFile(
    script,
    `import { startEmbedded } from ${JSON.stringify(path.join(import.meta.dirname, "postgres-embedded.ts"))};
    const { url, logFile } = await startEmbedded();
    console.log("started", url, logFile);`,
  );
  await using run = startScript(script, [], { env: {} });
  const [, url = "", logFile = ""] = (await run.waitFor("started")).split(" ");
  expect(await runStatement(url, "select 1 as one")).toEqual([{ one: 1 }]);

  run.kill("SIGKILL");

  await expect.poll(() => existsSync(path.dirname(logFile))).toBe(false);
  await expect(runStatement(url, "select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
