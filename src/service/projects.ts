// Reads what the service says of projects besides their usage: which projects a key can see, what usage can be filtered by, and balances.

import { z } from "zod";
import { decimalText, ExactNumber } from "../decimal.ts";
import { AppError } from "../errors.ts";
import type { Secret } from "../secret.ts";
import { present, toPrintableLine, truncate } from "../text.ts";
import type { Source } from "../usage/dimensions.ts";
import type { Project } from "../usage/series.ts";
import { Id, parseAnswer, undefinedFor } from "./answer.ts";
import { BREAKDOWN_SCOPES } from "./breakdown.ts";
import type { Service } from "./client-types.ts";

// GET /v1/projects

const NAME_LENGTH_MAX = 100;

/** How long a call for a list may take, including waits for the rate limiter and for pauses. */
const LIST_SECONDS_MAX = 60;

/** `limit` is the size of a page, if the service answers in pages. If the page is full, the service may have more projects. */
const ProjectsAnswer = z.object({ projects: z.array(z.unknown()), limit: z.number().nullish() });

const Entry = z
  .object({ project_id: Id, name: z.string().nullish() })
  .transform(({ project_id: id, name }): Project => {
    return { id, name: truncate(toPrintableLine(name ?? ""), NAME_LENGTH_MAX) || id };
  });

export type ProjectList = ReturnType<typeof readList>;

export async function fetchProjects(service: Service, key: Secret, signal: AbortSignal, secondsMax = LIST_SECONDS_MAX) {
  const late = AbortSignal.timeout(secondsMax * 1000);
  const call = { operation: "projects", method: "GET", path: ["v1", "projects"] } as const;
  try {
    const answer = await service.call(call, key, AbortSignal.any([signal, late]));
    return readList(parseAnswer(ProjectsAnswer, answer, "the list of projects"));
  } catch (error) {
    if (!late.aborted || signal.aborted) throw error;
    throw new AppError("unavailable", `the list of projects did not come within ${secondsMax} s`);
  }
}

function readList({ projects, limit }: z.output<typeof ProjectsAnswer>) {
  const listed = new Map<string, Project>();
  const leftOut: string[] = [];
  for (const [i, entry] of projects.entries()) {
    const { data, error } = Entry.safeParse(entry);
    const [issue] = error?.issues ?? [];
    if (data) listed.set(data.id, data);
    else leftOut.push(`entry ${i + 1}: ${[issue?.path.join("."), issue?.message].filter(Boolean).join(" ")}`);
  }
  const isFullPage = projects.length > 0 && projects.length >= (limit ?? Number.POSITIVE_INFINITY);
  return { listed: [...listed.values()], leftOut, isFullPage };
}

// GET /v1/projects/{id}/usage/fields or …/billing/fields: the names that were used in a period. The service may know others, too.

/** A list without its unreadable entries; undefined if the list is missing or can't be read. */
function listOf<T>(entry: z.ZodType<T>) {
  const entries = z.array(entry.optional().catch(undefined)).optional().catch(undefined);
  return entries.transform((all) => all && present(all));
}

/** In `features`, an unreadable entry makes the whole answer unreadable. */
const FieldsAnswer = z
  .object({
    features: z.array(z.string()).nullish(),
    models: listOf(z.object({ name: z.string(), model_id: z.string().optional().catch(undefined) })),
    tags: listOf(z.string()),
    accessors: listOf(z.string()),
    deployments: listOf(z.string()),
    line_items: z.record(z.string(), z.string().catch("")).optional().catch(undefined),
  })
  .transform(({ features, models, tags, accessors, deployments, line_items: lineItems }) => ({
    /** The names that a filter may use, by the kind of its condition: "feature", or a dimension. */
    names: {
      feature: features ?? undefined,
      model: models?.flatMap(({ name, model_id: id = name }) => [name, id]),
      // The service's own example lists the tag "dev" as "tag=dev".
      tags: tags?.flatMap((tag) => [tag, tag.replace(/^tag=/, "")]),
      accessor: accessors,
      deployment: deployments,
      line_item: lineItems && Object.keys(lineItems),
    },
    /** In dialect "2026" the service filters by the id of a model, not by its name. */
    models: models ?? [],
    /** The name of each line item for people. */
    labels: Object.entries(lineItems ?? {}).filter(([, label]) => label !== ""),
  }));

export type ListedFields = Readonly<z.output<typeof FieldsAnswer>>;

/** Reads the values to filter by; undefined if the service lists none. The request has no dates: then the list covers the longest period. */
export function fieldsReader(source: Source) {
  return async (service: Service, projectId: string, key: Secret, signal: AbortSignal) => {
    const path = ["v1", "projects", projectId, source, "fields"];
    const call = { operation: "fields", method: "GET", path, scopes: BREAKDOWN_SCOPES[source] } as const;
    const answer = await service.call(call, key, signal).catch(undefinedFor(404));
    return answer && parseAnswer(FieldsAnswer, answer, `${source} fields`);
  };
}

// GET /v1/projects/{id}/balances

const Amount = z
  .union([z.number(), z.instanceof(ExactNumber)])
  .transform(decimalText)
  .pipe(z.string("not a number that can be kept with all its digits"));

const Balance = z
  .object({
    balance_id: z.string().min(1),
    amount: Amount,
    units: z.string().nullish(),
    purchase_order_id: z.string().nullish(),
  })
  .transform(({ balance_id: balanceId, amount, units = null, purchase_order_id: purchaseOrderId = null }) => {
    return { balanceId, amount, units, purchaseOrderId };
  });

const BalancesAnswer = z.object({
  balances: z
    .array(Balance)
    .refine((all) => new Set(all.map(({ balanceId }) => balanceId)).size === all.length, "a balance is in it twice"),
});

export async function fetchBalances(service: Service, projectId: string, key: Secret, signal: AbortSignal) {
  const path = ["v1", "projects", projectId, "balances"];
  const call = { operation: "balances", method: "GET", path, scopes: ["billing:read"] } as const;
  return parseAnswer(BalancesAnswer, await service.call(call, key, signal), "the balances").balances;
}
