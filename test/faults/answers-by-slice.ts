// Groups the answers of a case by slice, and finds the answer that a reader sees. Pure.

import { sliceName } from "./case-evidence.ts";
import type { Exchange, RowText } from "./history.ts";

/** One answer of the service about one slice. */
export type Answer = { readonly exchange: Exchange; readonly version: number; readonly rows: string };
export type Answers = ReadonlyMap<string, readonly Answer[]>;

export function answersBySlice(exchanges: readonly Exchange[]): Answers {
  const answers = exchanges.flatMap((exchange) => {
    const { asked, version, days } = exchange;
    if (!asked || version === undefined) return [];
    return asked.days.map((day) => ({
      slice: sliceName(asked.series, day),
      answer: { exchange, version, rows: JSON.stringify(days?.get(day) ?? []) },
    }));
  });
  return new Map(
    [...Map.groupBy(answers, ({ slice }) => slice)].map(([slice, all]) => [slice, all.map(({ answer }) => answer)]),
  );
}

/** The newest answer that has exactly these rows. */
export function answerOf(answers: Answers, slice: string, rows: readonly RowText[]): Answer | undefined {
  const text = JSON.stringify(rows);
  return answers.get(slice)?.findLast((answer) => answer.rows === text);
}

/** The newest answer that was sent whole. Answers to the programs in `exempt` do not count: these may not have stored them. */
export function newestAnswer(answers: readonly Answer[], exempt: ReadonlySet<string>): Answer | undefined {
  return answers.findLast(({ exchange }) => exchange.answeredAt !== undefined && !exempt.has(exchange.who));
}

/**
 * How long before its arrival a fetch may have got its number, by which it is older or newer. The number is at most 50 ms old when it
 * is used.
 */
const NUMBER_MS = 300;

/** Whether the shown answer may stay: it is the newest, or its fetch overlaps the newest one's. Then either may be stored last. */
export function isAsNew(shown: Answer, newest: Answer): boolean {
  const { answeredAt = Number.POSITIVE_INFINITY } = shown.exchange;
  return shown.version >= newest.version || answeredAt >= beganAt(newest);
}

export function beganAt({ exchange }: Answer): number {
  return exchange.arrivedAt - NUMBER_MS;
}
