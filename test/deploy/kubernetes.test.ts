// Reads every manifest of deploy/kubernetes, and compares what they name: with each other, and with the program.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { defineCommands } from "../../src/cli/command-line.ts";
import { loadConfig, parseConfig } from "../../src/config/config.ts";

const FOLDER = path.join(import.meta.dirname, "../../deploy/kubernetes");
const KINDS: Readonly<Record<string, string>> = {
  ServiceAccount: "v1",
  Service: "v1",
  Job: "batch/v1",
  Deployment: "apps/v1",
};
const NAME = { "app.kubernetes.io/name": "usage-export" };

const exampleConfig = () =>
  parseConfig(read("jobs.config.json").replaceAll("PROJECT_ID", "p1"), { source: "example", baseDir: FOLDER });
const kustomization = parse(read("kustomization.yaml"));
const manifests = kustomization.resources.map((file: string) => parse(read(file)));
const of = (kind: string) => manifests.find((manifest: { kind: string }) => manifest.kind === kind);
const deployment = of("Deployment");
const pods = ["Deployment", "Job"].map((kind) => of(kind).spec.template.spec);

test("every file is part of the base, and is of a kind and version that the cluster knows", () => {
  const others = fs.readdirSync(FOLDER).filter((file) => !["kustomization.yaml", "jobs.config.json"].includes(file));
  expect(kustomization.resources.toSorted()).toEqual(others.sort());
  for (const { apiVersion, kind } of manifests) expect({ kind, apiVersion }).toEqual({ kind, apiVersion: KINDS[kind] });
});

test("the pods run a command of the program, without rights and within limits", () => {
  const commands = defineCommands("0.0.0", () => {}).commands.map((command) => command.name());
  for (const { containers, securityContext, serviceAccountName } of pods) {
    expect(serviceAccountName).toBe(of("ServiceAccount").metadata.name);
    expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
    for (const { args, securityContext: own, resources } of containers) {
      expect(commands).toContain(args[0]);
      expect(own).toEqual({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
      expect(resources.limits.memory).toBeDefined();
    }
  }
});

test("the configuration is one that the program takes, once it has a project", async () => {
  const file = path.join(FOLDER, "jobs.config.json");
  await expect(loadConfig(file)).rejects.toThrow("PROJECT_ID");
  const config = exampleConfig();
  const [{ env }] = deployment.spec.template.spec.containers;
  const given = env.map(({ name }: { name: string }) => name);
  const needed = read("jobs.config.json").match(/(?<="env": ")\w+/g);
  expect(given).toEqual(expect.arrayContaining([...(needed ?? []), "DATABASE_URL"]));
  expect(config.monitor.host).toBe("0.0.0.0");
});

test("ports, probes and labels fit together, and the pod outlives the draining of the worker", async () => {
  const config = exampleConfig();
  const { containers, terminationGracePeriodSeconds, volumes } = deployment.spec.template.spec;
  const [{ ports, startupProbe, livenessProbe, readinessProbe, volumeMounts }] = containers;
  expect(ports).toEqual([{ name: "http", containerPort: config.monitor.port }]);
  expect([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet)).toEqual([
    { path: "/livez", port: "http" },
    { path: "/livez", port: "http" },
    { path: "/readyz", port: "http" },
  ]);
  expect(of("Service").spec).toEqual({
    selector: NAME,
    ports: [{ name: "http", port: config.monitor.port, targetPort: "http" }],
  });
  expect([deployment.spec.selector.matchLabels, deployment.spec.template.metadata.labels]).toEqual([NAME, NAME]);
  expect(terminationGracePeriodSeconds).toBeGreaterThan(config.worker.drainSeconds);
  expect(volumes[0].configMap.name).toBe(kustomization.configMapGenerator[0].name);
  expect(volumeMounts.map(({ name }: { name: string }) => name)).toEqual(
    volumes.map(({ name }: { name: string }) => name),
  );
});

function read(file: string): string {
  return fs.readFileSync(path.join(FOLDER, file), "utf8");
}
