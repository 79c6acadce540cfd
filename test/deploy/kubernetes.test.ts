// Reads the manifests of deploy/kubernetes. The names and numbers in them must fit each other and the program.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { defineCommands } from "../../src/cli/commands.ts";
import { loadConfig, parseConfig } from "../../src/config/config.ts";

const FOLDER = path.join(import.meta.dirname, "../../deploy/kubernetes");
const API_VERSIONS: Readonly<Record<string, string>> = {
  ServiceAccount: "v1",
  Service: "v1",
  Deployment: "apps/v1",
  NetworkPolicy: "networking.k8s.io/v1",
  ServiceMonitor: "monitoring.coreos.com/v1",
};
const NO_RIGHTS = { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } };
const NAME = { "app.kubernetes.io/name": "usage-export" };

const exampleConfig = () => parseConfig(read("jobs.config.json").replaceAll("PROJECT_ID", "p1"), "example", FOLDER);
const kustomization = parse(read("kustomization.yaml"));
const resources = [
  ...kustomization.resources,
  ...parse(read("service-monitor/kustomization.yaml")).resources.map((file: string) => `service-monitor/${file}`),
];
const manifests = resources.map((file: string) => parse(read(file)));
const manifestOf = (kind: string) => manifests.find((manifest: { kind: string }) => manifest.kind === kind);
const deployment = manifestOf("Deployment");
const pod = deployment.spec.template.spec;

test("every file is part of the base or its component", () => {
  const others = fs
    .globSync("**/*.{yaml,json}", { cwd: FOLDER })
    .filter((file) => !/kustomization|config\.json$/.test(file));
  expect(resources.toSorted()).toEqual(others.sort());
});

test("every manifest is of a known kind and version", () => {
  for (const { apiVersion, kind } of manifests)
    expect({ kind, apiVersion }).toEqual({ kind, apiVersion: API_VERSIONS[kind] });
});

test("the pod migrates before it starts", () => {
  const args = [...pod.initContainers, ...pod.containers].map((container) => container.args);
  expect(args).toEqual([["migrate"], ["start"]]);
  const commands = defineCommands("0.0.0", () => {}).commands.map((command) => command.name());
  expect(commands).toEqual(expect.arrayContaining(args.flat()));
});

test("the pod's containers have a memory limit and no privileges", () => {
  const { initContainers, containers, securityContext, serviceAccountName } = pod;
  expect(serviceAccountName).toBe(manifestOf("ServiceAccount").metadata.name);
  expect(securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } });
  for (const { securityContext: own, resources } of [...initContainers, ...containers]) {
    expect(own).toEqual(NO_RIGHTS);
    expect(resources.limits.memory).toBeDefined();
  }
});

test("the pod sets the variables that the configuration names", async () => {
  const file = path.join(FOLDER, "jobs.config.json");
  await expect(loadConfig(file)).rejects.toThrow("PROJECT_ID");
  const [{ env }] = pod.containers;
  const given = env.map(({ name }: { name: string }) => name);
  const needed = read("jobs.config.json").match(/(?<="env": ")\w+/g);
  expect(given).toEqual(expect.arrayContaining([...(needed ?? []), "DATABASE_URL"]));
  expect(exampleConfig().monitor.host).toBe("0.0.0.0");
});

test("the ports, probes, labels and periods of the manifests fit together", async () => {
  const config = exampleConfig();
  const { containers, terminationGracePeriodSeconds, volumes } = pod;
  const [{ ports, startupProbe, livenessProbe, readinessProbe, volumeMounts }] = containers;
  expect(ports).toEqual([{ name: "http", containerPort: config.monitor.port }]);
  const probed = ["/livez", "/livez", "/readyz"].map((path) => ({ path, port: "http" }));
  expect([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet)).toEqual(probed);
  expect(manifestOf("Service").spec).toEqual({
    selector: NAME,
    ports: [{ name: "http", port: config.monitor.port, targetPort: "http" }],
  });
  const { spec } = deployment;
  const selectors = [
    spec.selector,
    manifestOf("NetworkPolicy").spec.podSelector,
    manifestOf("ServiceMonitor").spec.selector,
  ];
  const labels = selectors.map(({ matchLabels }) => matchLabels);
  expect([...labels, spec.template.metadata.labels]).toEqual(Array(4).fill(NAME));
  expect(kustomization.labels[0]).toMatchObject({ pairs: NAME, includeTemplates: true });
  const [{ port, path: metrics, authorization }] = manifestOf("ServiceMonitor").spec.endpoints;
  const [allowed] = manifestOf("NetworkPolicy").spec.ingress[0].ports;
  expect([port, metrics, allowed.port]).toEqual(["http", "/metrics", "http"]);
  expect(authorization.credentials).toEqual({ name: "usage-export", key: "USAGE_EXPORT_MONITOR_TOKEN" });
  expect(terminationGracePeriodSeconds).toBeGreaterThan(config.worker.drainSeconds);
  expect(volumes[0].configMap.name).toBe(kustomization.configMapGenerator[0].name);
  const [mounted, declared] = [volumeMounts, volumes].map((all) => all.map(({ name }: { name: string }) => name));
  expect(mounted).toEqual(declared);
});

function read(file: string): string {
  return fs.readFileSync(path.join(FOLDER, file), "utf8");
}
