// Reads the answer to a question.

import { type Answer, answerOf, type UsageRow } from "./answer.ts";
import type { Question } from "./question.ts";
import { type Run, readCoveredDays, readGaps, readScope } from "./scope.ts";
import { usageSql } from "./sql.ts";

/** Throws InvalidView if there is no such project or filter. */
export async function readAnswer(run: Run, question: Question): Promise<Answer> {
  const scope = await readScope(run, question);
  const sql = usageSql(question, scope);
  const rows = await run<UsageRow>(sql.both);
  const covered = await readCoveredDays(run, question, scope);
  const gaps = [...covered.values()].some(({ incomplete }) => incomplete > 0)
    ? await readGaps(run, question, scope)
    : [];
  return answerOf({ question, scope, rows, covered, gaps, sql });
}
