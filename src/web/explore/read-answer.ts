// Reads the answer to a question.

import { type Answer, answerOf, type UsageRow } from "./answer.ts";
import { isCost, type Question } from "./question.ts";
import {
  countPricedRows,
  countUnpriced,
  type Run,
  readCoveredDays,
  readGaps,
  readOtherCurrencies,
  readScope,
} from "./scope.ts";
import { literal, usageSql } from "./sql.ts";

/** An estimate takes about 25 ms for each thousand rows, most of it to find models without a price; a question should take less than a second. */
export const ESTIMATE_ROWS_MAX = 30_000;

/** Throws InvalidView if there is no such project or filter. */
export async function readAnswer(run: Run, question: Question): Promise<Answer> {
  const scope = await readScope(run, question);
  const sql = usageSql(question, scope);
  const isEstimate = question.metric === "estimated_cost" && scope.projectCount > 0;
  const costRows = isEstimate ? await countPricedRows(run, question, scope) : 0;
  const costRowsLeftOut = costRows > ESTIMATE_ROWS_MAX ? costRows : 0;
  const isLeftOut = costRowsLeftOut > 0 || (isCost(question.metric) && scope.projectCount === 0);
  const rows = isLeftOut ? [] : await run<UsageRow>(sql.both);
  const unpricedModels = isEstimate && !isLeftOut ? await countUnpriced(run, question, scope) : 0;
  const otherCurrencies = isEstimate && !isLeftOut ? await readOtherCurrencies(run, question, scope) : [];
  const comments = await readKeyComments(run, question, rows);
  const covered = await readCoveredDays(run, question, scope);
  const gaps = [...covered.values()].some(({ incomplete }) => incomplete > 0)
    ? await readGaps(run, question, scope)
    : [];
  return answerOf({
    question,
    scope,
    rows,
    covered,
    gaps,
    comments,
    unpricedModels,
    otherCurrencies,
    costRowsLeftOut,
    sql,
  });
}

/** A key is known by its comment, while usage names it by its id. */
async function readKeyComments(run: Run, { grouping }: Question, rows: readonly UsageRow[]) {
  const ids = rows.flatMap(({ part, group }) => (part === "group" && group !== null ? [literal(group)] : []));
  if (grouping !== "accessor" || ids.length === 0) return new Map<string | null, string>();
  const keys = await run<{ id: string; comment: string }>(`
select api_key_id as id, max(comment) as comment from bi.listed_keys
where comment <> '' and api_key_id in (${ids.join(", ")})
group by api_key_id`);
  return new Map<string | null, string>(keys.map(({ id, comment }) => [id, comment]));
}
