// The read API: answers about usage as JSON and CSV, for programs and people. It has the access rules of the pages.

import type { Logger } from "pino";
import type { z } from "zod";
import { oneAtATime, ReadTimeout } from "../../async.ts";
import { errorText, systemCode } from "../../errors.ts";
import { amounts } from "../../facts/amounts.ts";
import type { Answer } from "../../facts/answer.ts";
import { InvalidQuestion, isCost } from "../../facts/question.ts";
import type { Run } from "../../facts/scope.ts";
import { dayOf } from "../../usage/days.ts";
import type { Page } from "../page.ts";
import type { Answer as AnswerTo } from "../routes.ts";
import { answerCsv } from "./csv.ts";
import { CsvParameters, openApiDocument } from "./openapi.ts";
import { ProjectsParameters, readProjects } from "./project-list.ts";
import { givenParameters, parseParameters, questionOf } from "./question.ts";
import { readSeries, SeriesParameters } from "./series-list.ts";

export type ApiDeps = {
  readonly log: Logger;
  readonly readByStatements: <T>(read: (run: Run) => Promise<T>, signal: AbortSignal) => Promise<T>;
  readonly version: string;
};

/** How long a request waits for its answer, the wait for earlier ones included. */
const WAIT_MS_MAX = 5_000;
const RETRY_SECONDS = 5;

/** Reading the answer takes longer than a request waits, so that asking again would not help. */
class TooSlow extends Error {}

export function openApi({ log, readByStatements, version }: ApiDeps, waitMsMax: number = WAIT_MS_MAX) {
  const inTurn = oneAtATime(waitMsMax);

  /** `advice` is what to do if the answer takes too long. */
  async function read<T>(query: URLSearchParams, advice: string, work: (run: Run) => Promise<T>): Promise<T> {
    const askedMs = performance.now();
    let waitedMs = Number.POSITIVE_INFINITY;
    const result = await inTurn((signal) => {
      waitedMs = performance.now() - askedMs;
      return readByStatements(work, signal);
    });
    if (result.ok) return result.value;
    const { error } = result;
    if (error instanceof InvalidQuestion) throw error;
    log.warn({ query: String(query), reason: errorText(error) }, "read API: reading the usage failed");
    if (!isTimeout(error)) throw error;
    // A question that had most of the time for itself is too slow; another one waited for those before it.
    if (waitedMs < waitMsMax / 2) throw new TooSlow(`the answer takes longer than ${waitMsMax / 1000} s: ${advice}`);
    throw new Error("other questions are being answered");
  }

  const answerTo = (query: URLSearchParams, more: readonly string[] = []) => {
    const question = questionOf(query, dayOf(new Date()), more);
    return read(query, "ask for fewer days, for one project, or with compare=none", (run) => amounts(run, question));
  };

  return {
    "/api/v1/usage": orError(async (query) => jsonPage(200, await answerTo(query))),
    "/api/v1/usage.csv": orError(async (query) => {
      const { rows } = parseParameters(CsvParameters, givenParameters(query));
      const answer = await answerTo(query, ["rows"]);
      requireCost(answer);
      return csvPage(answer, rows);
    }),
    "/api/v1/projects": orError(async (query) => {
      const parameters = parseParameters(ProjectsParameters, givenParameters(query));
      return jsonPage(200, await read(query, "query the view bi.series", (run) => readProjects(run, parameters)));
    }),
    "/api/v1/series": orError(async (query) => {
      const parameters = parseParameters(SeriesParameters, givenParameters(query));
      return jsonPage(
        200,
        await read(query, "ask for one project or one grouping, or query the view bi.series", (run) =>
          readSeries(run, parameters),
        ),
      );
    }),
    "/api/v1/openapi.json": async () => jsonPage(200, openApiDocument(version)),
  };
}

/** The request waited as long as it may, or the server ended a statement that took as long (57014). */
function isTimeout(error: unknown): boolean {
  return error instanceof ReadTimeout || systemCode(error) === "57014";
}

/** A file without rows would look like a cost of nothing. */
function requireCost({ question: { metric, grouping, currency }, projectCount, available, lacking }: Answer): void {
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
  const { costRowsLeftOut } = lacking;
  if (costRowsLeftOut > 0)
    throw new InvalidQuestion(
      `metric: the estimated cost of these days would be calculated from ${costRowsLeftOut} rows of usage; choose fewer days, or query bi.cost_estimated`,
    );
}

function orError(answer: AnswerTo): AnswerTo {
  return async (query) => {
    try {
      return await answer(query);
    } catch (error) {
      if (error instanceof InvalidQuestion) return jsonPage(400, { error: error.message });
      if (error instanceof TooSlow) return jsonPage(504, { error: error.message });
      const unavailable = { error: `the usage could not be read: ${errorText(error)}; try again` };
      return { ...jsonPage(503, unavailable), headers: { "retry-after": String(RETRY_SECONDS) } };
    }
  };
}

function jsonPage(status: number, value: object): Page {
  return { status, contentType: "application/json; charset=utf-8", body: `${JSON.stringify(value)}\n` };
}

async function csvPage(answer: Answer, rows: z.output<typeof CsvParameters>["rows"]): Promise<Page> {
  const { metric, grouping, from, to } = answer.question;
  const name = ["usage", metric, ...(grouping === "none" ? [] : ["by", grouping]), rows, from, to].join("-");
  return {
    status: 200,
    contentType: "text/csv; charset=utf-8; header=present",
    body: answerCsv(answer, rows),
    headers: { "content-disposition": `attachment; filename="${name}.csv"` },
  };
}
