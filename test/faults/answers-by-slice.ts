// The answers of a case by slice, and which of them a reader sees. Pure.

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

/** The newest answer that was given whole, to somebody who could store it. */
export function newestAnswer(answers: readonly Answer[], exempt: ReadonlySet<string>): Answer | undefined {
  return answers.findLast(({ exchange }) => exchange.answeredAt !== undefined && !exempt.has(exchange.who));
}

/** From a fetch's number, by which it is older or newer, to its arrival: the number is at most 50 ms old when it is used. */
const NUMBER_MS = 300;

/** Of fetches that overlap either may be the one that stays. */
export function isAsNew(shown: Answer, newest: Answer): boolean {
  const { answeredAt = Number.POSITIVE_INFINITY } = shown.exchange;
  return shown.version >= newest.version || answeredAt >= beganAt(newest);
}

export function beganAt({ exchange }: Answer): number {
  return exchange.arrivedAt - NUMBER_MS;
}
