// Reads a breakdown: GET /v1/projects/{id}/usage/breakdown or …/billing/breakdown. `usage/normalise.ts` checks the shape of the answer.

import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { DIMENSIONS, type Dialect, differsIn2026, filterIn, groupingIn, type Source } from "../usage/dimensions.ts";
import type { UsageRequest } from "../usage/export-plan.ts";
import { dimensionsOf, type Series } from "../usage/series.ts";
import { hasStatus } from "./answer.ts";
import type { Service, ServiceCall } from "./client-types.ts";

/** A key needs one of these scopes to read a breakdown. The service's documents differ on which scope usage needs. */
export const BREAKDOWN_SCOPES: Readonly<Record<Source, readonly string[]>> = {
  usage: ["project:read", "usage:read"],
  billing: ["billing:read"],
};

/** Whether the two dialects write this request differently. */
export function dependsOnDialect({ grouping, filter: { dimensions } }: Series): boolean {
  if (dimensionsOf(grouping).some((name) => differsIn2026(name, "grouping"))) return true;
  return DIMENSIONS.some((name) => dimensions[name] !== undefined && differsIn2026(name, "filter"));
}

export function breakdownQuery({ series, window }: UsageRequest, dialect: Dialect): URLSearchParams {
  const { grouping, filter } = series;
  const query = new URLSearchParams(window && { start: window.start, end: window.end });
  for (const dimension of dimensionsOf(grouping)) query.append("grouping", groupingIn(dialect, dimension));
  for (const [feature, value] of Object.entries(filter.features)) query.set(feature, value);
  for (const dimension of DIMENSIONS) {
    const value = filter.dimensions[dimension];
    if (value === undefined) continue;
    const name = filterIn(dialect, dimension);
    if (name === null) {
      const message = `the filter "${filter.name}" narrows by ${dimension}, which this service only groups by (its dialect is "${dialect}"): remove it`;
      throw new AppError("rejected", message);
    }
    query.set(name, value);
  }
  return query;
}

/** Used until usage shows which dialect the service speaks. The public service speaks this one today. */
export const DEFAULT_DIALECT: Dialect = "2026";

/** `dialect` may be left out only if `dependsOnDialect` is false for the request. */
type BreakdownOptions = Pick<ServiceCall, "beforeAttempt"> & { readonly dialect?: Dialect };

export async function fetchBreakdown(
  service: Service,
  request: UsageRequest,
  key: Secret,
  signal: AbortSignal,
  { dialect = service.dialect === "auto" ? DEFAULT_DIALECT : service.dialect, beforeAttempt }: BreakdownOptions = {},
): Promise<unknown> {
  const { project, source } = request.series;
  const call: ServiceCall = {
    operation: "breakdown",
    method: "GET",
    path: ["v1", "projects", project.id, source, "breakdown"],
    query: breakdownQuery(request, dialect),
    scopes: BREAKDOWN_SCOPES[source],
    beforeAttempt,
  };
  try {
    return (await service.call(call, key, signal)).value;
  } catch (cause) {
    // A service without billing answers 404, and so does any service for a project that it does not know.
    if (source !== "billing" || !hasStatus(cause, 404)) throw cause;
    const message =
      'the service does not offer the billing breakdown for this project: remove the export with "source": "billing", or ask the vendor; if its usage can\'t be read either, check the project id';
    throw new AppError("rejected", message, { cause, details: { status: 404 } });
  }
}
