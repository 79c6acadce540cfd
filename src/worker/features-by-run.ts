// Each run asks anew which features the service knows, and tries anew what the service refused in the run before.

import type { ExportWorld } from "../jobs/export-deps.ts";
import { type FeatureCheck, openFeatureCheck } from "../jobs/feature-check.ts";
import type { FeaturesOfRun } from "./work-request.ts";

/** Runs that overlap are few. */
const RUNS_MAX = 16;

export function featuresByRun(world: ExportWorld, onNewRun: () => void): FeaturesOfRun {
  const checks = new Map<string, FeatureCheck>();
  return (runId) => {
    const known = checks.get(runId);
    if (known) return known;
    onNewRun();
    const check = openFeatureCheck(world);
    checks.set(runId, check);
    const [oldest] = checks.keys();
    if (checks.size > RUNS_MAX && oldest !== undefined) checks.delete(oldest);
    return check;
  };
}
