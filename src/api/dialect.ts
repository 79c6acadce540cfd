// Finds out which of the two dialects a service speaks. The service accepts every request and treats a parameter it does not know
// as a feature, so only its answer shows whether it grouped or filtered as asked.

import { randomBytes } from "node:crypto";
import type { Secret } from "../secret.ts";
import type { Window } from "../usage/day.ts";
import { isObject } from "../usage/json-value.ts";
import type { UsageRequest } from "../usage/plan.ts";
import type { Filter, Project } from "../usage/series.ts";
import { fetchBreakdown } from "./breakdown.ts";
import type { Dialect, Service } from "./service.ts";
import { isStatus } from "./shape.ts";

/** The order of the probes. The public service speaks "2026", so a service that knows both dialects is asked in that one. */
const DIALECTS: readonly Dialect[] = ["2026", "interface"];

export type DialectProbe = {
  readonly service: Service;
  readonly project: Project;
  readonly window: Window | undefined;
  readonly key: Secret;
  readonly signal: AbortSignal;
};

/** Undefined if no answer tells, because the window has no usage. */
export async function probeDialect(probe: DialectProbe): Promise<Dialect | undefined> {
  let total: unknown;
  for (const dialect of DIALECTS) {
    const answer = await ask(probe, dialect, "model", {});
    if (hasModel(answer)) return dialect;
    total ??= answer;
  }
  // No model has usage, so the filter is probed with a tag that nobody has: a service that knows the filter's name answers
  // without rows. If it does so for both names, nothing is proved.
  if (!hasRows(total)) return undefined;
  const tags = `usage_export_probe_${randomBytes(4).toString("hex")}`;
  const narrowing: Dialect[] = [];
  for (const dialect of DIALECTS) {
    const answer = await ask(probe, dialect, "none", { tags });
    if (answer !== undefined && !hasRows(answer)) narrowing.push(dialect);
  }
  return narrowing.length === 1 ? narrowing[0] : undefined;
}

/** Whether some row of an answer by model names one. */
export function hasModel(answer: unknown): boolean {
  return rowsOf(answer).some((row) => {
    const holders = isObject(row.grouping) ? [row.grouping, row] : [row];
    const values = holders.flatMap((holder) => [holder.model, holder.models]).flat();
    return values.some((value) => typeof value === "string" && value !== "");
  });
}

export function hasRows(answer: unknown): boolean {
  return rowsOf(answer).length > 0;
}

/** Undefined if the service refuses the request. A service that treats unknown names as features never does. */
async function ask(
  { service, project, window, key, signal }: DialectProbe,
  dialect: Dialect,
  grouping: "none" | "model",
  dimensions: Filter["dimensions"],
): Promise<unknown> {
  const filter: Filter = { name: "all", features: {}, dimensions };
  const request: UsageRequest = { series: { project, grouping, filter }, window };
  try {
    return await fetchBreakdown(service, request, key, signal, { dialect });
  } catch (error) {
    if (isStatus(error, [400, 422])) return undefined;
    throw error;
  }
}

function rowsOf(answer: unknown) {
  return isObject(answer) && Array.isArray(answer.results) ? answer.results.filter(isObject) : [];
}
