// The data of a dashboard on which all is well, except for the parts that a test sets.

import type { KeyStatus } from "../../../src/db/keys/status.ts";
import type { HealthState, Operations } from "../../../src/health/state.ts";
import { healthState, rotationLine, runLine } from "../../health/sample-health-state.ts";

type Part = Partial<Omit<Operations, "health"> & Omit<HealthState, "rotations">>;

export function operations({ runs = [runLine()], rotations, ...part }: Part = {}): Operations {
  const shown = rotations ?? [{ rotation: "exporter", maxAgeDays: 30, warnings: [], keys: [keyLine()] }];
  const health = shown.map(({ rotation, warnings }) => rotationLine({ rotation, warnings }));
  return { health: healthState({ ...part, rotations: health }), runs, rotations: shown };
}

export function keyLine(part: Partial<KeyStatus> = {}): KeyStatus {
  return {
    rotation: "exporter",
    project: "production",
    apiKeyId: "11111111-2222-3333-4444-555555555555",
    intentId: "a1b2c3",
    state: "active",
    ageDays: 12,
    lastSeenInUse: "2026-03-09",
    dueForRemovalAt: null,
    comment: "usage exporter [a1b2c3]",
    note: null,
    ...part,
  };
}
