// The description of the read API in OpenAPI, made of the schemas that also check its parameters. Pure.

import { z } from "zod";
import { Answer } from "../../facts/answer.ts";
import { COMPARISONS, DAYS_MAX } from "../../usage/days.ts";
import { PERIOD_TITLES } from "../dashboard/view.ts";
import { CSV_ROWS } from "./csv.ts";
import { ProjectList, ProjectsParameters } from "./project-list.ts";
import { oneOf, QuestionParameters } from "./question.ts";
import { SeriesList, SeriesParameters } from "./series-list.ts";

/** The parameters of the period, which readView checks. */
const PeriodParameters = z.object({
  period: z
    .enum(Object.keys(PERIOD_TITLES))
    .optional()
    .describe("Complete days until yesterday, or a month. Left out, 28d, unless from and to are given"),
  from: z.iso.date().optional().describe(`The first day, in UTC. There are at most ${DAYS_MAX} days`),
  to: z.iso.date().optional().describe("The last day, in UTC"),
  compare: z
    .enum(COMPARISONS)
    .default("before")
    .describe(
      "before: of a whole calendar month, also by from and to, the calendar month before, and of other days as many days, whole weeks earlier, so that weekdays are compared with the same weekdays; year: the same dates a year before; none: no comparison",
    ),
});

export const CsvParameters = z.object({
  rows: oneOf(CSV_ROWS).default("groups").describe("Groups with their amounts, or amounts by day"),
});

const ErrorAnswer = z.object({
  error: z.string().describe("A sentence that names the parameter, what it expects and what it got"),
});

export function openApiDocument(version: string): object {
  const question = parameters(PeriodParameters, QuestionParameters);
  return {
    openapi: "3.1.0",
    info: {
      title: "usage-export read API",
      version,
      description:
        "Reads usage that was exported, and changes nothing. Never add up amounts of different groupings or filters: each is the same usage counted again.",
    },
    servers: [{ url: "../.." }],
    security: [{}, { basic: [] }, { bearer: [] }],
    paths: {
      "/api/v1/usage": operation("usage", "Usage by group and by day", question, json(Answer)),
      "/api/v1/usage.csv": operation("usageCsv", "The same as CSV", [...question, ...parameters(CsvParameters)], {
        "text/csv": { schema: { type: "string" } },
      }),
      "/api/v1/projects": operation(
        "projects",
        "Projects, also by a part of their name",
        parameters(ProjectsParameters),
        json(ProjectList),
      ),
      "/api/v1/series": operation("series", "What can be asked for", parameters(SeriesParameters), json(SeriesList)),
      "/api/v1/openapi.json": operation("openApi", "This description", [], {
        "application/json": { schema: { type: "object" } },
      }),
    },
    components: {
      securitySchemes: {
        basic: {
          type: "http",
          scheme: "basic",
          description: "If monitor.access of the configuration names a password",
        },
        bearer: { type: "http", scheme: "bearer", description: "If monitor.access of the configuration names a token" },
      },
    },
  };
}

function operation(operationId: string, summary: string, given: readonly object[], content: object): object {
  const refused = (description: string) => ({ description, content: json(ErrorAnswer) });
  const plain = (description: string) => ({ description, content: { "text/plain": { schema: { type: "string" } } } });
  return {
    get: {
      operationId,
      summary,
      parameters: given,
      responses: {
        "200": { description: "The answer", content },
        "400": refused("A parameter is wrong"),
        "401": plain("Without the credentials of monitor.access"),
        "403": plain("Not answered at this address without monitor.access"),
        "503": { ...refused("The database is away or other questions are answered first"), headers: RETRY_AFTER },
        "504": refused("The answer takes too long: asking again does not help, but what the error says may"),
      },
    },
  };
}

const RETRY_AFTER = { "Retry-After": { description: "Seconds", schema: { type: "integer" } } };

function json(schema: z.ZodType): object {
  return { "application/json": { schema: jsonSchema(schema) } };
}

function parameters(...objects: readonly z.ZodObject[]): readonly object[] {
  return objects.flatMap(({ shape }) =>
    Object.entries(shape).map(([name, schema]) => {
      const { description, ...rest } = jsonSchema(schema as z.ZodType);
      return { name, in: "query", required: false, description, schema: rest };
    }),
  );
}

function jsonSchema(schema: z.ZodType): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io: "input" });
  return rest;
}
