// Reads a breakdown of usage or billing (GET /v1/projects/{id}/usage/breakdown or …/billing/breakdown) and finds out which dialect of
// their parameters the service speaks. What the answer must look like is checked by usage/.

import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { Window } from "../usage/days.ts";
import { DIMENSIONS, type Dialect, hasOtherName2026, nameIn, type Source } from "../usage/dimensions.ts";
import { isObject } from "../usage/json-value.ts";
import type { UsageRequest } from "../usage/plan.ts";
import { ALL_USAGE, dimensionsOf, type Grouping, type Project, type Series } from "../usage/series.ts";
import { callAllowingStatuses, hasStatus } from "./answer.ts";
import type { Service, ServiceCall } from "./service.ts";

/** Parameters with a fixed meaning. The service takes any other name for a feature, so no feature may have one of these names. */
const RESERVED_PARAMETERS: ReadonlySet<string> = new Set([
  ...["start", "end", "grouping"],
  ...DIMENSIONS.flatMap((one) => [one, nameIn("2026", "grouping", one), nameIn("2026", "filter", one) ?? one]),
]);

/** The name of a grouping in a request; of several dimensions it is not one name, and has no dialect. */
export function groupingName(grouping: Grouping, dialect: Dialect): string {
  const [dimension] = dimensionsOf(grouping);
  return dimension === grouping ? nameIn(dialect, "grouping", dimension) : grouping;
}

/** What a key needs to read a breakdown. Sources differ on which of the scopes for usage it is. */
const BREAKDOWN_SCOPES: Readonly<Record<Source, readonly string[]>> = {
  usage: ["project:read", "usage:read"],
  billing: ["billing:read"],
};

/** Whether the two dialects write this request differently. */
export function dependsOnDialect({ grouping, filter: { dimensions } }: Series): boolean {
  return (
    dimensionsOf(grouping).some((one) => hasOtherName2026(one, "grouping")) ||
    DIMENSIONS.some((one) => dimensions[one] !== undefined && hasOtherName2026(one, "filter"))
  );
}

export function breakdownQuery({ series, window }: UsageRequest, dialect: Dialect): URLSearchParams {
  const { grouping, filter } = series;
  const query = new URLSearchParams();
  if (window !== undefined) {
    query.set("start", window.start);
    query.set("end", window.end);
  }
  for (const dimension of dimensionsOf(grouping)) query.append("grouping", nameIn(dialect, "grouping", dimension));
  for (const [feature, value] of Object.entries(filter.features)) {
    if (RESERVED_PARAMETERS.has(feature)) {
      throw new AppError(
        "config",
        `the filter "${filter.name}" has "${feature}" as a feature, but the service reads a parameter of that name as something else`,
      );
    }
    query.set(feature, value);
  }
  for (const one of DIMENSIONS) {
    const value = filter.dimensions[one];
    if (value === undefined) continue;
    const name = nameIn(dialect, "filter", one);
    if (name === null) {
      const message = `the filter "${filter.name}" narrows by ${one}, which this service only groups by (its dialect is "${dialect}"): remove it`;
      throw new AppError("rejected", message);
    }
    query.set(name, value);
  }
  return query;
}

export type BreakdownOptions = {
  /** The configured dialect if left out. */
  readonly dialect?: Dialect;
  /** Called and awaited before each attempt. */
  readonly beforeAttempt?: () => Promise<void>;
};

/** Returns the parsed answer; its shape is unchecked. */
export async function fetchBreakdown(
  service: Service,
  request: UsageRequest,
  key: Secret,
  signal: AbortSignal,
  { dialect = configuredDialect(service, request), beforeAttempt }: BreakdownOptions = {},
): Promise<unknown> {
  try {
    return (await service.call(breakdownCall(request, dialect, beforeAttempt), key, signal)).value;
  } catch (error) {
    if (request.series.source === "billing" && hasStatus(error, [404])) throw notOffered(error);
    throw error;
  }
}

/** A service without billing answers 404, and so does any service for a project that it does not know. */
function notOffered(cause: unknown): AppError {
  const message =
    'the service does not offer the billing breakdown for this project: remove the export with "source": "billing", or ask the vendor; if its usage can\'t be read either, check the project id';
  return new AppError("rejected", message, { cause, details: { status: 404 } });
}

function breakdownCall(
  request: UsageRequest,
  dialect: Dialect,
  beforeAttempt?: BreakdownOptions["beforeAttempt"],
): ServiceCall {
  return {
    operation: "breakdown",
    method: "GET",
    path: ["v1", "projects", request.series.project.id, request.series.source, "breakdown"],
    query: breakdownQuery(request, dialect),
    retry: true,
    scopes: BREAKDOWN_SCOPES[request.series.source],
    ...(beforeAttempt && { beforeAttempt }),
  };
}

function configuredDialect({ dialect }: Service, { series }: UsageRequest): Dialect {
  if (dialect !== "auto") return dialect;
  if (dependsOnDialect(series))
    throw new Error("the dialect of this request is not known yet: expected a probe before it");
  return "2026";
}

// Finds out which of the two dialects a service speaks. The service accepts every request and treats a parameter it does not know
// as a feature, so only its answer shows whether it grouped or filtered as asked.

/** The order of the probes. The public service speaks "2026", so a service that knows both dialects is asked in that one. */
const PROBED_DIALECTS: readonly Dialect[] = ["2026", "interface"];

export type DialectProbe = {
  readonly service: Service;
  readonly project: Project;
  readonly window: Window | undefined;
  readonly key: Secret;
  readonly signal: AbortSignal;
};

/** Undefined if the answers do not show it, for example because the window has no usage of a model. */
export async function probeDialect(probe: DialectProbe): Promise<Dialect | undefined> {
  for (const dialect of PROBED_DIALECTS) if (hasModel(await fetchProbe(probe, dialect))) return dialect;
  return undefined;
}

/** Whether some row of an answer by model names one. */
export function hasModel(answer: unknown): boolean {
  return resultsOf(answer).some((row) => {
    if (!isObject(row)) return false;
    const holders = isObject(row.grouping) ? [row.grouping, row] : [row];
    const values = holders.flatMap((holder) => [holder.model, holder.models]).flat();
    return values.some((value) => typeof value === "string" && value !== "");
  });
}

export function hasRows(answer: unknown): boolean {
  return resultsOf(answer).some(isObject);
}

/** Undefined if the service refuses the request. A service that treats unknown names as features never does. */
async function fetchProbe({ service, project, window, key, signal }: DialectProbe, dialect: Dialect): Promise<unknown> {
  const request: UsageRequest = { series: { project, source: "usage", grouping: "model", filter: ALL_USAGE }, window };
  const answer = await callAllowingStatuses(service, [400, 422], breakdownCall(request, dialect), key, signal);
  return answer?.value;
}

function resultsOf(answer: unknown): readonly unknown[] {
  return isObject(answer) && Array.isArray(answer.results) ? answer.results : [];
}
