// The limits of keys: of each key those that any entry of the configuration gives it.

import { createHash } from "node:crypto";
import type { KeyLimit } from "../rate-share.ts";
import type { KeyReference } from "./key-source.ts";
import { type ConfigIssue, formatPath, type Path } from "./messages.ts";

/** What a key is called in logs and in the database. Entries that find it in the same place have the same key. */
export function keyName(key: KeyReference): string {
  switch (key.kind) {
    case "env":
      return `env ${key.name}`;
    case "file":
      return `file ${key.path}`;
    case "rotation":
      return rotationKeyName(key.rotation);
    case "command": {
      // The arguments may be long.
      const digest = createHash("sha256").update(JSON.stringify(key.command)).digest("hex");
      return `command ${key.command[0]} ${digest.slice(0, 16)}`;
    }
  }
}

export function rotationKeyName(rotation: string): string {
  return `rotation ${rotation}`;
}

/**
 * By the key. Empty if all keys are one without limits: a pause that the service asks for is then one for all calls, and nothing is to be
 * looked up at each call.
 */
export function limitsOfKeys(keys: readonly KeyReference[]): ReadonlyMap<KeyReference, KeyLimit> {
  const byName = Map.groupBy(new Set(keys), keyName);
  const limits = [...byName].map(([name, same]) => {
    const { requestsPerSecond, maxConcurrent } = givenLimits(same);
    const given = {
      ...(requestsPerSecond !== undefined && { requestsPerSecond }),
      ...(maxConcurrent !== undefined && { maxConcurrent }),
    };
    return [same, { name, ...given }] as const;
  });
  const isSimple = limits.length === 1 && limits.every(([, limit]) => Object.keys(limit).length === 1);
  return new Map(isSimple ? [] : limits.flatMap(([same, limit]) => same.map((key) => [key, limit] as const)));
}

const LIMIT_NAMES = ["requestsPerSecond", "maxConcurrent"] as const;

function givenLimits(same: readonly KeyReference[]) {
  const [requestsPerSecond, maxConcurrent] = LIMIT_NAMES.map(
    (limit) => same.find((key) => key[limit] !== undefined)?.[limit],
  );
  return { requestsPerSecond, maxConcurrent };
}

/** Two entries that find a key in the same place must not give it different limits. */
export function limitIssues(keys: readonly { readonly key: KeyReference; readonly path: Path }[]): ConfigIssue[] {
  const first = new Map<string, { readonly value: number; readonly path: Path }>();
  return keys.flatMap(({ key, path }) =>
    LIMIT_NAMES.flatMap((limit) => {
      const value = key[limit];
      if (value === undefined) return [];
      const id = `${limit} ${keyName(key)}`;
      const known = first.get(id) ?? { value, path };
      first.set(id, known);
      if (known.value === value) return [];
      const message = `expected ${known.value}, as at ${formatPath(known.path)}, which names the same key; got ${value}; one of the two is enough`;
      return [{ path: [...path, limit], message }];
    }),
  );
}
