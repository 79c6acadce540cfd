// The read API: answers about usage as JSON and CSV, for programs and people. Its description in OpenAPI is made of the same routes. It has the
// access rules of the pages.

import { createRoute, OpenAPIHono } from "@hono/zod-openapi";
import type { Logger } from "pino";
import { z } from "zod";
import { oneAtATime, ReadTimeout } from "../async.ts";
import { errorText, systemCode } from "../errors.ts";
import { amounts } from "../facts/amounts.ts";
import { Answer } from "../facts/answer.ts";
import { CHARGED_BY, type Charge, chargeback } from "../facts/chargeback.ts";
import { InvalidQuestion, isCost } from "../facts/question.ts";
import type { Run } from "../facts/scope.ts";
import { type CsvColumn, csvHeader, csvLine } from "../show/csv.ts";
import { dayOf, type Window } from "../usage/days.ts";
import { aMonth, monthOf, oneOf, parameters, problemOf, QuestionParameters, questionOf } from "./question.ts";

export type ApiDeps = {
  readonly log: Logger;
  readonly readByStatements: <T>(read: (run: Run) => Promise<T>, signal: AbortSignal) => Promise<T>;
  readonly version: string;
};

const CSV_ROWS = ["groups", "days"] as const;
type CsvRows = (typeof CSV_ROWS)[number];

/** How long a request waits for its answer, the wait for earlier ones included. */
const WAIT_MS_MAX = 5_000;
const RETRY_SECONDS = 5;

/** Reading the answer takes longer than a request waits, so that asking again would not help. */
class TooSlow extends Error {}

const CsvParameters = parameters({
  ...QuestionParameters.shape,
  rows: oneOf(CSV_ROWS).default("groups").describe("Groups with their amounts, or amounts by day"),
});

const ChargebackParameters = parameters({
  month: aMonth.describe("As YYYY-MM; left out, the month before this one"),
  by: oneOf(CHARGED_BY).default("project").describe("What a row is of"),
  project: QuestionParameters.shape.project,
});

const ProjectList = z.object({
  projects: z.array(
    z.object({
      projectId: z.string(),
      project: z.string().describe("Its name in the configuration"),
      active: z.boolean().describe("Whether it is still exported"),
    }),
  ),
});

async function readProjects(run: Run): Promise<z.output<typeof ProjectList>> {
  const projects = await run<z.output<typeof ProjectList>["projects"][number]>(`
select project_id as "projectId", (array_agg(project order by active desc, project collate "C"))[1] as project, bool_or(active) as active
from bi.series group by project_id order by 2, 1`);
  return { projects: [...projects] };
}

const ErrorAnswer = z.object({
  error: z.string().describe("A sentence that names the parameter, what it expects and what it got"),
});

export function openApi({ log, readByStatements, version }: ApiDeps, waitMsMax: number = WAIT_MS_MAX) {
  const inTurn = oneAtATime(waitMsMax);

  /** `advice` is what to do if the answer takes too long. */
  async function read<T>(asked: object, advice: string, work: (run: Run) => Promise<T>): Promise<T> {
    const askedMs = performance.now();
    let waitedMs = Number.POSITIVE_INFINITY;
    const result = await inTurn((signal) => {
      waitedMs = performance.now() - askedMs;
      return readByStatements(work, signal);
    });
    if (result.ok) return result.value;
    const { error } = result;
    if (error instanceof InvalidQuestion) throw error;
    log.warn({ ...asked, reason: errorText(error) }, "read API: reading the usage failed");
    if (!isTimeout(error)) throw error;
    // A question that had most of the time for itself is too slow; another one waited for those before it.
    if (waitedMs < waitMsMax / 2) throw new TooSlow(`the answer takes longer than ${waitMsMax / 1000} s: ${advice}`);
    throw new Error("other questions are being answered");
  }

  async function answerTo(asked: z.output<typeof QuestionParameters>): Promise<Answer> {
    const question = questionOf(asked, dayOf(new Date()));
    return read(asked, "ask for fewer days, for one project, or with compare=none", (run) => amounts(run, question));
  }

  const api = new OpenAPIHono({
    defaultHook: (result, c) => (result.success ? undefined : c.json({ error: problemOf(result.error) }, 400)),
  });
  api.openapi(routeOf("usage", "Usage by group and by day", QuestionParameters, json(Answer)), async (c) =>
    c.json(await answerTo(c.req.valid("query")), 200),
  );
  api.openapi(
    routeOf("usage.csv", "The same as CSV", CsvParameters, { "text/csv": { schema: z.string() } }),
    async (c) => {
      const { rows, ...asked } = c.req.valid("query");
      const answer = await answerTo(asked);
      requireCost(answer);
      return c.body(answerCsv(answer, rows), 200, csvHeaders(fileName(answer, rows)));
    },
  );
  const csvContent = { "text/csv": { schema: z.string() } };
  api.openapi(
    routeOf("chargeback.csv", "A month by project or API key", ChargebackParameters, csvContent),
    async (c) => {
      const { month, by, project } = c.req.valid("query");
      const period = monthOf(month, dayOf(new Date()));
      const asked = { period, by, projects: project === undefined ? undefined : [project] };
      const charges = await read(asked, "ask for one project", (run) => chargeback(run, asked));
      return c.body(chargebackCsv(charges, period), 200, csvHeaders(`chargeback-${period.start.slice(0, 7)}-by-${by}`));
    },
  );
  api.openapi(routeOf("projects", "The projects", parameters({}), json(ProjectList)), async (c) =>
    c.json(await read({}, "query the view bi.series", readProjects), 200),
  );
  const { openAPIRegistry: registry } = api;
  registry.registerPath(routeOf("openapi.json", "This description", parameters({}), json(z.looseObject({}))));
  for (const [scheme, secret] of Object.entries({ basic: "password", bearer: "token" })) {
    const description = `If monitor.access of the configuration names a ${secret}`;
    registry.registerComponent("securitySchemes", scheme, { type: "http", scheme, description });
  }
  api.doc31("/api/v1/openapi.json", {
    openapi: "3.1.0",
    info: {
      title: "usage-export read API",
      version,
      description:
        "Reads usage that was exported, and changes nothing. Never add up amounts of different groupings or filters: each is the same usage counted again.",
    },
    servers: [{ url: "../.." }],
    security: [{}, { basic: [] }, { bearer: [] }],
  });
  api.onError((error, c) => {
    if (error instanceof InvalidQuestion) return c.json({ error: error.message }, 400);
    if (error instanceof TooSlow) return c.json({ error: error.message }, 504);
    const unavailable = { error: `the usage could not be read: ${errorText(error)}; try again` };
    return c.json(unavailable, 503, { "retry-after": String(RETRY_SECONDS) });
  });
  return api;
}

function csvHeaders(name: string) {
  return {
    "content-type": "text/csv; charset=utf-8; header=present",
    "content-disposition": `attachment; filename="${name}.csv"`,
  };
}

type Content = Readonly<Record<string, { readonly schema: z.ZodType }>>;

function routeOf<const Name extends string, Query extends z.ZodObject, C extends Content>(
  name: Name,
  summary: string,
  query: Query,
  content: C,
) {
  const refused = (description: string) => ({ description, content: json(ErrorAnswer) });
  const plain = (description: string) => ({ description, content: { "text/plain": { schema: z.string() } } });
  return createRoute({
    method: "get",
    path: `/api/v1/${name}`,
    operationId: name,
    summary,
    request: { query },
    responses: {
      200: { description: "The answer", content },
      400: refused("A parameter is wrong"),
      401: plain("Without the credentials of monitor.access"),
      403: plain("Not answered at this address without monitor.access"),
      503: {
        ...refused("The database is away or other questions are answered first"),
        headers: z.object({ "Retry-After": z.int().describe("Seconds") }),
      },
      504: refused("The answer takes too long: asking again does not help, but what the error says may"),
    },
  });
}

function json<T extends z.ZodType>(schema: T) {
  return { "application/json": { schema } };
}

/** The request waited as long as it may, or the server ended a statement that took as long (57014). */
function isTimeout(error: unknown): boolean {
  return error instanceof ReadTimeout || systemCode(error) === "57014";
}

/** A file without rows would look like a cost of nothing. */
function requireCost({ question: { metric, grouping, currency }, projectCount, available }: Answer): void {
  if (!isCost(metric)) return;
  const name = metric === "estimated_cost" ? "estimated cost" : "billed cost";
  if (currency === null)
    throw new InvalidQuestion(
      "metric: no prices are configured, so no cost is estimated; add prices to the configuration",
    );
  if (projectCount === 0) {
    const known = available.groupings.join(", ");
    throw new InvalidQuestion(
      `grouping: the ${name} ${grouping === "none" ? "in all" : `by ${grouping}`} is not exported${known && `; known are: ${known}`}`,
    );
  }
}

function fileName({ question: { metric, grouping, from, to } }: Answer, rows: string): string {
  return `${["usage", metric, ...(grouping === "none" ? [] : ["by", grouping]), rows, from, to].join("-")}`;
}

// The CSV: the groups of an answer, or its amounts by day. Each row says whether something is lacking.

type Row = readonly (string | null)[];

export function answerCsv(answer: Answer, rows: CsvRows): string {
  const [columns, all] = rows === "groups" ? [GROUP_COLUMNS, groupRows(answer)] : [DAY_COLUMNS, dayRows(answer)];
  return csvHeader(columns) + all.map((row) => csvLine(columns, row)).join("");
}

const TEXTS = new Set(["state", "part", "group", "complete", "currency"]);
/** Of the whole answer, in each row. */
const LACKING = ["complete", "projects_left_out", "projects_ended", "currency"];
const columnsOf = (...names: readonly string[]): CsvColumn[] =>
  [...names, ...LACKING].map((name) => ({ name, isText: TEXTS.has(name) }));

const GROUP_COLUMNS = columnsOf(
  ...["part", "rank", "group", "amount", "amount_before", "change", "groups"],
  ...["incomplete_days", "unread_days", "incomplete_days_before", "unread_days_before"],
);
const DAY_COLUMNS = columnsOf("usage_date", "state", "part", "rank", "group", "amount", "groups");

function lackingCells({ complete, lacking, question }: Answer): Row {
  const counts = [lacking.projectsLeftOutCount, lacking.projectsEndedCount].map(String);
  return [String(complete), ...counts, question.currency];
}

function groupRows(answer: Answer): Row[] {
  const { groups, other, total, lacking } = answer;
  const { incompleteDays, unreadDays, incompleteDaysBefore, unreadDaysBefore } = lacking;
  const lackingDays = [incompleteDays, unreadDays, incompleteDaysBefore, unreadDaysBefore].map(
    (days) => `${days.length}`,
  );
  return [
    ...groups.map((one) => ["group", `${one.rank}`, one.group, ...amountCells(one), "1"]),
    ...(other ? [["other", null, null, ...amountCells(other), `${other.groups}`]] : []),
    ...(total ? [["total", null, null, ...amountCells(total), `${groups.length + (other?.groups ?? 0)}`]] : []),
  ].map((row) => [...row, ...lackingDays, ...lackingCells(answer)]);
}

function amountCells({ amount, before, change }: Pick<Answer["groups"][number], "amount" | "before" | "change">) {
  return [amount, before, change];
}

function dayRows(answer: Answer): Row[] {
  const { days, groups, other, otherByDay, beforeByDay } = answer;
  const others = groups.filter(({ byDay }) => !byDay).length + (other?.groups ?? 0);
  const ofPeriod = days.flatMap(({ day, state }, i): Row[] => [
    ...groups.flatMap(({ rank, group, byDay }) =>
      byDay ? [[day, state, "group", String(rank), group, byDay[i] ?? null, "1"]] : [],
    ),
    // Sets of tags do not add up, so the others have no amount.
    ...(otherByDay || (answer.total === null && others > 0)
      ? [[day, state, "other", null, null, otherByDay?.[i] ?? null, String(others)]]
      : []),
  ]);
  const before = (beforeByDay ?? []).map(
    ({ day, state, amount }): Row => [day, state, "before", null, null, amount, null],
  );
  return [...ofPeriod, ...before].map((row) => [...row, ...lackingCells(answer)]);
}

// The chargeback: amounts of a metric add up exactly to its total, and quantities, estimated and billed cost stand in columns of their own.

const CHARGEBACK_COLUMNS: readonly CsvColumn[] = [
  ...[
    "month",
    "project_id",
    "project",
    "api_key",
    "metric",
    "quantity",
    "estimated",
    "billed",
    "currency",
    "share",
    "complete",
  ],
].map((name) => ({ name, isText: !["month", "quantity", "estimated", "billed", "share"].includes(name) }));

function chargebackCsv(charges: readonly Charge[], { start }: Window): string {
  const rows = charges.map(({ projectId, project, group, metric, currency, amount, total, isComplete }): Row => {
    const inColumn = (of: string) => (of === (isCost(metric) ? metric : "quantity") ? amount : null);
    return [
      ...[start.slice(0, 7), projectId, project, group, metric],
      ...["quantity", "estimated_cost", "billed_cost"].map(inColumn),
      ...[currency, (Number(amount) / Number(total)).toFixed(6), String(isComplete)],
    ];
  });
  return csvHeader(CHARGEBACK_COLUMNS) + rows.map((row) => csvLine(CHARGEBACK_COLUMNS, row)).join("");
}
