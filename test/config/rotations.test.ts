// Rotations of projects that are discovered later.

import { expect, test } from "vitest";
import { parseConfig, withDiscovered } from "../../src/config/config.ts";

test("projects that are discovered later have rotations, each with deliveries of its own", () => {
  const rotation = {
    ...{ name: "fleet", schedule: "0 4 * * *", projects: ["prod-*"], comment: "exporter", scopes: ["member"] },
    deliver: [{ file: "keys/{id}.key" }],
  };
  const service = { baseUrl: "https://api.example.com" };
  const projects = [{ discover: true, key: { env: "ACCOUNT_KEY" } }];
  const text = JSON.stringify({ service, projects, rotations: [rotation] });
  const config = parseConfig(text, { source: "jobs.config.json", baseDir: "/srv/usage" });
  expect(config.rotations).toEqual([]);
  const seen = { list: "env ACCOUNT_KEY", namedAt: new Date(0), vanishedAt: null };
  const known = [
    { ...seen, id: "a1", name: "prod-eu" },
    { ...seen, id: "a3", name: "other" },
    { ...seen, id: "a4", name: "prod-us", vanishedAt: new Date(1) },
  ];
  const { rotations } = withDiscovered(config, known);
  expect(rotations.map(({ name, deliver }) => [name, deliver[0]])).toEqual([
    ["fleet/a1", { file: "/srv/usage/keys/a1.key" }],
  ]);
});
