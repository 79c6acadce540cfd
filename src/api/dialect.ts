// Finds out which of the two dialects a service speaks. It answers whatever it is asked, and takes a name it does not know for
// a feature: what tells is whether an answer is grouped, or narrowed, as it was asked for.

import { randomBytes } from "node:crypto";
import type { Secret } from "../secret.ts";
import type { Window } from "../usage/day.ts";
import { isObject } from "../usage/json-value.ts";
import type { UsageRequest } from "../usage/plan.ts";
import type { Filter, Project } from "../usage/series.ts";
import { fetchBreakdown } from "./breakdown.ts";
import type { Dialect, Service } from "./service.ts";
import { isStatus } from "./shape.ts";

/** Today's first: the public service speaks it, and a service that knows both is asked as it will be tomorrow. */
const DIALECTS: readonly Dialect[] = ["2026", "interface"];

export type DialectProbe = {
  readonly service: Service;
  readonly project: Project;
  readonly window: Window | undefined;
  readonly key: Secret;
  readonly signal: AbortSignal;
};

/** Undefined where no answer tells: there is no usage in the window. */
export async function probeDialect(probe: DialectProbe): Promise<Dialect | undefined> {
  let total: unknown;
  for (const dialect of DIALECTS) {
    const answer = await ask(probe, dialect, "model", {});
    if (hasModel(answer)) return dialect;
    total ??= answer;
  }
  // No usage of any model. A tag that nobody has leaves nothing over where the filter is known by its name; a service where
  // both names leave nothing over does not tell.
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

/** Undefined where the service refuses to be asked like this, which no service does that takes unknown names for features. */
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
