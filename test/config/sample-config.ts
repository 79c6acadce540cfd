// A valid configuration that uses every field, if not every form of it, and functions that change one field of it.

import { type Config, parseConfig } from "../../src/config/config.ts";
import { errorCode } from "../../src/errors.ts";

export const SAMPLE = {
  $schema: "./jobs.config.schema.json",
  service: {
    ...{ baseUrl: "https://api.example.com", authScheme: "Token", dialect: "interface" },
    ...{ requestsPerSecond: 5, maxConcurrent: 4, timeoutSeconds: 30 },
  },
  projects: [
    { id: "11111111-2222-3333-4444-555555555555", name: "production", key: { env: "PRODUCTION_KEY" } },
    { id: "project_b", name: "staging", key: { file: "secrets/staging.key" } },
    { id: "project_c", name: "lab", key: { rotation: "lab-key", first: { env: "LAB_KEY" } } },
  ],
  exports: [
    {
      ...{ name: "nightly", schedule: "15 2 * * *", timezone: "Europe/Vienna" },
      ...{ projects: ["production", "staging"], window: { days: 7, today: true } },
      groupings: ["none", "accessor", "model"],
      filters: [
        { name: "all" },
        { name: "diarized", features: { diarize: true }, dimensions: { endpoint: "listen", feature_set: "a" } },
        { each: "accessor", atMost: 20 },
      ],
      ...{ checkFeatures: "warn", emptyGuard: "off", cliffGuard: "off", undated: "day" },
    },
    { name: "weekly", schedule: "0 5 * * mon", projects: ["lab"], groupings: ["tags"] },
    {
      ...{ name: "bills", source: "billing", schedule: "45 2 * * *", projects: ["production"], window: { days: 7 } },
      groupings: ["none", "line_item", ["tags", "line_item"], "tags"],
      filters: [{ name: "all" }, { name: "aura", dimensions: { line_item: "sync::aura-2", deployment: "dedicated" } }],
    },
  ],
  rotations: [
    {
      ...{ name: "lab-key", schedule: "0 4 * * *", timezone: "Asia/Tokyo", project: "lab", comment: "lab exporter" },
      ...{ scopes: ["member", "usage:read"], tags: ["exporter"], maxAgeDays: 20, graceDays: 5, expiresInDays: 26 },
      deliver: [{ file: "secrets/lab.key" }, { command: ["vault-put", "lab"], timeoutSeconds: 10 }],
      retire: "delete",
    },
    { name: "production-key", schedule: "@daily", project: "production", comment: "exporter", scopes: ["member"] },
    {
      ...{ name: "fleet", schedule: "0 4 * * *", projects: ["stag*"], comment: "exporter", scopes: ["member"] },
      createWith: { file: "creators/{id}" },
      deliver: [{ file: "keys/{id}.key" }, { command: ["vault", "put", "usage/{id}"] }],
    },
  ],
  prices: [
    {
      ...{ metric: "hours", model: "nova-*", endpoint: "listen", method: "streaming", deployment: "hosted" },
      ...{ currency: "USD", price: "0.0077", per: "minute", from: "2026-01-01", until: "2026-12-31" },
      tiers: [{ above: 10_000, price: 0.0065 }],
    },
    { metric: "requests", model: "*", currency: "EUR", price: null, from: "2026-02-01" },
  ],
  budgets: [
    { name: "limit", metric: "hours", amount: 100, project: "production", thresholds: ["12.50", 100] },
    {
      ...{ name: "daily", metric: "cost", currency: "USD", amount: 9, project: "production", tag: "batch" },
      ...{ period: "day", from: "2026-02-03" },
    },
    { name: "lab", metric: "requests", amount: 1, project: "staging", key: "lab-key" },
    { name: "nova", metric: "requests", amount: 1, project: "staging", model: "nova-3" },
  ],
  anomalies: { sensitivity: "high" },
  runs: { keepDays: 90 },
  worker: { drainSeconds: 45 },
  monitor: {
    ...{ host: "0.0.0.0", port: 0, publicUrl: "https://usage.example.com" },
    access: { basic: { username: "ops", password: { file: "secrets/monitor.password" } } },
  },
  notify: { webhook: { env: "NOTICES_URL" }, deadMan: { file: "secrets/dead-man.url" }, report: "0 8 * * 1" },
};

export function parseText(text: string, baseDir = "/srv/usage"): Config {
  return parseConfig(text, "jobs.config.json", baseDir);
}

export function parse(config: unknown): Config {
  return parseText(JSON.stringify(config));
}

/** The sample as JSON with another value at the path `place`; undefined leaves the field out. */
export function sampleWith(place: string, value: unknown): string {
  const path = place.match(/[^.[\]]+/g) ?? [];
  return JSON.stringify(changed(SAMPLE, path, value), null, 2);
}

function changed(whole: unknown, [segment, ...rest]: readonly string[], value: unknown): unknown {
  if (segment === undefined) return value;
  if (Array.isArray(whole)) {
    const list: unknown[] = [...whole];
    list[Number(segment)] = changed(list[Number(segment)], rest, value);
    return list;
  }
  const fields = new Map(Object.entries(whole ?? {}));
  fields.set(segment, changed(fields.get(segment), rest, value));
  return Object.fromEntries(fields);
}

/** The message of the error that parseConfig throws for the text; empty if it throws none. */
export function messageFor(text: string): string {
  try {
    parseText(text);
    return "";
  } catch (error) {
    if (errorCode(error) !== "config" || !(error instanceof Error)) throw error;
    return error.message;
  }
}

/** The lines of the message, one for each error, without its first line. */
export function errorsFor(text: string): string[] {
  return messageFor(text).split("\n").slice(1);
}
