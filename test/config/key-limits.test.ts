import { expect, test } from "vitest";
import { parseConfig } from "../../src/config/config.ts";
import { limitsOfKeys } from "../../src/config/key-limits.ts";
import { errorsFor } from "./sample-config.ts";

const configWith = (keys: readonly object[]) =>
  JSON.stringify({
    service: { baseUrl: "https://api.example.com" },
    projects: keys.map((key, i) => ({ id: `p${i}`, name: `project ${i}`, key })),
  });

function limitsWith(...keys: readonly object[]) {
  const { projects } = parseConfig(configWith(keys), { source: "jobs.config.json", baseDir: "/srv" });
  const limits = limitsOfKeys(projects.map(({ key }) => key));
  return projects.map(({ key }) => limits.get(key));
}

test("projects whose key is found in the same place share its limits, wherever they are given", () => {
  const limit = { name: "env A", requestsPerSecond: 0.5, maxConcurrent: 2 };
  const key = { env: "A", requestsPerSecond: 0.5 };
  expect(limitsWith({ env: "A", maxConcurrent: 2 }, key, { env: "A" }, { file: "b" })).toEqual([
    ...[limit, limit, limit],
    { name: "file /srv/b" },
  ]);
});

test("a pattern has its limits for the key of each project", () => {
  expect(limitsWith(...[1, 2].map(() => ({ file: "keys/{id}", requestsPerSecond: 2 })))).toEqual([
    { name: "file /srv/keys/p0", requestsPerSecond: 2 },
    { name: "file /srv/keys/p1", requestsPerSecond: 2 },
  ]);
});

test("a single key without limits has none of its own", () => {
  expect(limitsWith({ env: "A" }, { env: "A" })).toEqual([undefined, undefined]);
});

test("two entries that give one key different limits are refused with both places", () => {
  const [issue, ...others] = errorsFor(
    configWith([
      { env: "A", maxConcurrent: 2 },
      { env: "A", maxConcurrent: 3 },
    ]),
  );
  expect(issue).toMatch(
    /projects\[1\]\.key\.maxConcurrent .*expected 2, as at projects\[0\]\.key, which names the same key; got 3/,
  );
  expect(others).toEqual([]);
});
