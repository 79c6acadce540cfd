// Reads a breakdown of usage or billing (GET /v1/projects/{id}/usage/breakdown or …/billing/breakdown) and finds out which dialect of
// their parameters the service speaks. What the answer must look like is checked by usage/.

import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import type { Window } from "../usage/days.ts";
import { DIMENSIONS, type Dialect, hasOtherName2026, nameIn, type Source } from "../usage/dimensions.ts";
import { groupingEvidence } from "../usage/normalise.ts";
import type { UsageRequest } from "../usage/plan.ts";
import { ALL_USAGE, dimensionsOf, type Grouping, type Project, type Series } from "../usage/series.ts";
import { callAllowingStatuses, hasStatus } from "./answer.ts";
import type { Service, ServiceCall } from "./service.ts";

/** The name of a grouping in a request; of several dimensions it is not one name, and has no dialect. */
export function groupingName(grouping: Grouping, dialect: Dialect): string {
  const [dimension] = dimensionsOf(grouping);
  return dimension === grouping ? nameIn(dialect, "grouping", dimension) : grouping;
}

/** What a key needs to read a breakdown. Sources differ on which of the scopes for usage it is. */
export const BREAKDOWN_SCOPES: Readonly<Record<Source, readonly string[]>> = {
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
  for (const [feature, value] of Object.entries(filter.features)) query.set(feature, value);
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
  /** Left out only by requests that are the same in both dialects. */
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
  { dialect = service.dialect === "auto" ? "2026" : service.dialect, beforeAttempt }: BreakdownOptions = {},
): Promise<unknown> {
  const call = { ...breakdownCall(request, dialect), ...(beforeAttempt && { beforeAttempt }) };
  try {
    return (await service.call(call, key, signal)).value;
  } catch (cause) {
    // A service without billing answers 404, and so does any service for a project that it does not know.
    if (request.series.source !== "billing" || !hasStatus(cause, [404])) throw cause;
    const message =
      'the service does not offer the billing breakdown for this project: remove the export with "source": "billing", or ask the vendor; if its usage can\'t be read either, check the project id';
    throw new AppError("rejected", message, { cause, details: { status: 404 } });
  }
}

function breakdownCall({ series, window }: UsageRequest, dialect: Dialect): ServiceCall {
  return {
    operation: "breakdown",
    method: "GET",
    path: ["v1", "projects", series.project.id, series.source, "breakdown"],
    query: breakdownQuery({ series, window }, dialect),
    retry: true,
    scopes: BREAKDOWN_SCOPES[series.source],
  };
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
export async function probeDialect({ service, project, window, key, signal }: DialectProbe) {
  const request: UsageRequest = { series: { project, source: "usage", grouping: "model", filter: ALL_USAGE }, window };
  for (const dialect of PROBED_DIALECTS) {
    // A service may refuse a name that it does not know.
    const answer = await callAllowingStatuses(service, [400, 422], breakdownCall(request, dialect), key, signal);
    if (groupingEvidence("model", answer?.value) === "value") return dialect;
  }
  return undefined;
}
