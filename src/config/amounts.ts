// Amounts, days and currencies in the configuration, exact as they are written. Pure.

import { z } from "zod";
import { difference } from "../decimal.ts";
import { isDay } from "../usage/days.ts";
import { ExactNumber } from "../usage/json-value.ts";
import { decimalText } from "../usage/row-metrics.ts";
import { reporting } from "./fields.ts";
import { describeValue } from "./messages.ts";
import { didYouMean } from "./suggestions.ts";

/** More than any amount has, and short enough for people to read. */
const DECIMAL_LENGTH_MAX = 60;
const DECIMAL = 'a decimal number of 0 or more, such as 0.0043 or "0.0043"';

/** The output is exact text: a number with more digits than a double holds comes from the JSON as text. */
export const Decimal = z
  .union([z.number(DECIMAL), z.string(DECIMAL)], { error: DECIMAL })
  .superRefine(
    reporting((value) =>
      exactText(value) === undefined ? `expected ${DECIMAL}; got ${describeValue(value)}` : undefined,
    ),
  )
  .transform((value) => exactText(value) ?? "");

function exactText(value: number | string): string | undefined {
  const source = String(value);
  if (source.length > DECIMAL_LENGTH_MAX || !/^\d+(?:\.\d+)?(?:[eE][+-]?\d{1,2})?$/.test(source)) return undefined;
  return decimalText(new ExactNumber(source));
}

const DAY = 'a day that exists, such as "2026-01-31"';

export const Day = z
  .string(DAY)
  .superRefine(reporting((value) => (isDay(value) ? undefined : `expected ${DAY}; got ${describeValue(value)}`)));

const CURRENCY = 'the code of a currency, such as "USD" or "EUR"';

export const Currency = z.string(CURRENCY).superRefine(
  reporting((code) => {
    const codes = Intl.supportedValuesOf("currency");
    if (codes.includes(code)) return undefined;
    return `expected ${CURRENCY}; got ${describeValue(code)}${didYouMean(code, codes)}`;
  }),
);

/** Compares decimal texts exactly. True if one is no decimal number, which is an issue of its own. */
export function isGreater(a: string, b: string): boolean {
  if (![a, b].every((text) => /^\d+(?:\.\d+)?$/.test(text))) return true;
  return !/^(-|0$)/.test(difference(a, b));
}
