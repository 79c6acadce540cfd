// Reads docker-compose.yml: what holds for each of its services. test/containers runs it.

import fs from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";

const TEXT = fs.readFileSync(path.join(import.meta.dirname, "../../docker-compose.yml"), "utf8");
const { services }: { services: Record<string, Record<string, unknown>> } = parse(TEXT, { merge: true });

test("every service has a memory limit and keeps little of its log", () => {
  for (const [name, service] of Object.entries(services)) {
    expect([name, service]).toEqual([
      name,
      expect.objectContaining({
        mem_limit: expect.any(String),
        logging: { driver: "json-file", options: { "max-size": "10m", "max-file": "3" } },
      }),
    ]);
  }
});

test("no default of a password is a name, which the log would then leave out, and each password has one default", () => {
  const defaults = [...TEXT.matchAll(/\$\{(\w+_PASSWORD):-(\w+)\}/g)].map(([, name, value]) => [name, value] as const);
  const values = new Map(defaults);
  expect(new Set(defaults.map(String)).size).toBe(values.size);
  expect(values.size).toBe(5);
  for (const value of values.values()) {
    expect(TEXT.replaceAll(/\$\{\w+_PASSWORD:-\w+\}|^#.*$/gm, "")).not.toContain(value);
    // Of "access", which demands 16 characters, and of a URL, which can't have every character.
    expect(value).toMatch(/^[A-Za-z]{10,}$/);
  }
});
