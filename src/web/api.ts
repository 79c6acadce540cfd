// The read API: answers about usage as JSON and CSV, with the access rules of the pages. Its OpenAPI description is made from the routes.

import { createRoute, OpenAPIHono } from "@hono/zod-openapi";
import type { Logger } from "pino";
import { z } from "zod";
import { oneAtATime } from "../async.ts";
import { errorText } from "../errors.ts";
import { readAnswer } from "../facts/amounts.ts";
import { Answer } from "../facts/answer.ts";
import { CHARGED_BY, chargeback } from "../facts/chargeback.ts";
import { InvalidQuestion } from "../facts/question.ts";
import type { Query } from "../facts/scope.ts";
import { answerCsv, CSV_ROWS, chargebackCsv } from "../show/csv.ts";
import { dayOf } from "../usage/days.ts";
import { READ_MS_MAX } from "./page.ts";
import { problemOf, QuestionParameters, questionOf, readPeriod } from "./url.ts";

export type ApiDeps = {
  readonly log: Logger;
  /** Everything that `read` queries is as of one moment. */
  readonly queryAtOneMoment: <T>(read: (query: Query) => Promise<T>, signal: AbortSignal) => Promise<T>;
  readonly version: string;
};

const CsvParameters = z.strictObject({
  ...QuestionParameters.shape,
  rows: z.enum(CSV_ROWS).default("groups").describe("Groups with their amounts, or amounts by day"),
});

const ChargebackParameters = QuestionParameters.pick({ from: true, to: true, project: true }).extend({
  period: QuestionParameters.shape.period
    .default("last-month")
    .describe("If left out: last-month, unless from and to are given"),
  by: z.enum(CHARGED_BY).default("project").describe("What each row is about: a project, or an API key"),
});

const ErrorAnswer = z.object({ error: z.string().describe("What is wrong, such as a parameter and what it expects") });
const JSON_CONTENT = { "application/json": { schema: Answer } };
const CSV_CONTENT = { "text/csv": { schema: z.string() } };

export function openReadApi({ log, queryAtOneMoment, version }: ApiDeps, readMsMax: number = READ_MS_MAX) {
  const inTurn = oneAtATime(readMsMax);
  const read = <T>(work: (query: Query) => Promise<T>) => inTurn((signal) => queryAtOneMoment(work, signal));
  async function answerTo(asked: z.output<typeof QuestionParameters>): Promise<Answer> {
    const question = questionOf(asked, dayOf(new Date()));
    return read((query) => readAnswer(query, question));
  }
  const api = new OpenAPIHono({
    defaultHook: (result, c) => (result.success ? undefined : c.json({ error: problemOf(result.error) }, 400)),
  });
  api.openapi(routeOf("usage", "Usage by group and by day", QuestionParameters, JSON_CONTENT), async (c) =>
    c.json(await answerTo(c.req.valid("query")), 200),
  );
  api.openapi(routeOf("usage.csv", "The same as CSV", CsvParameters, CSV_CONTENT), async (c) => {
    const { rows, ...asked } = c.req.valid("query");
    const answer = await answerTo(asked);
    const { metric, grouping, from, to } = answer.question;
    const by = grouping === "none" ? [] : ["by", grouping];
    return c.body(answerCsv(answer, rows), 200, csvHeaders(["usage", metric, ...by, rows, from, to].join("-")));
  });
  api.openapi(routeOf("chargeback.csv", "Charges by project or key", ChargebackParameters, CSV_CONTENT), async (c) => {
    const { by, project, ...days } = c.req.valid("query");
    const period = readPeriod(days, dayOf(new Date()));
    const asked = { period, by, projects: project === undefined ? undefined : [project] };
    const charges = await read((query) => chargeback(query, asked));
    return c.body(chargebackCsv(charges, period), 200, csvHeaders(`chargeback-by-${by}-${period.start}-${period.end}`));
  });
  api.doc31("/api/v1/openapi.json", {
    openapi: "3.1.0",
    info: {
      title: "usage-export read API",
      version,
      description:
        "Reads usage that was exported, and changes nothing. Never add up amounts of different groupings or filters: each is the same usage counted again.",
    },
    // Relative to the description, because a proxy may serve this API under another path.
    servers: [{ url: "../.." }],
  });
  api.onError((error, c) => {
    if (error instanceof InvalidQuestion) return c.json({ error: error.message }, 400);
    const reason = errorText(error);
    log.warn({ ...c.req.query(), reason }, "read API: reading the usage failed");
    const text = `the usage could not be read: ${reason}; try again, or ask for fewer days or one project`;
    return c.json({ error: text }, 503, { "retry-after": "5" });
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
  const problem = (description: string) => ({ description, content: { "application/json": { schema: ErrorAnswer } } });
  return createRoute({
    method: "get",
    path: `/api/v1/${name}`,
    operationId: name,
    summary,
    request: { query },
    responses: {
      200: { description: "The answer", content },
      400: problem("A parameter is wrong"),
      401: { description: "Without the credentials of monitor.access" },
      403: { description: "Without monitor.access, answered only at localhost, 127.0.0.1 and [::1]" },
      503: problem("The database can't be reached, or the answer takes too long; Retry-After has the seconds to wait"),
    },
  });
}
