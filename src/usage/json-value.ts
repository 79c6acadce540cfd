// Helpers for values parsed from JSON: type checks, descriptions for error messages, and numbers that a double can't hold. Pure.

import { AppError } from "../errors.ts";

/** A number with all the digits that were sent. As a double, 9007199254740993 would lose its last digit, and 1e999 would be Infinity. */
export class ExactNumber {
  /** The number as it was written in the JSON. */
  readonly source: string;

  constructor(source: string) {
    this.source = source;
  }
}

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

export function isNumber(value: unknown): value is number | ExactNumber {
  return typeof value === "number" || value instanceof ExactNumber;
}

/** For error messages: the type, and the beginning of a text or a number. */
export function describeJson(value: unknown): string {
  if (value === null) return "null";
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return "an array";
  if (isNumber(value)) return `the number ${numberSource(value).slice(0, 40)}`;
  return typeof value === "object" ? "an object" : `the ${typeof value} ${JSON.stringify(value)?.slice(0, 40)}`;
}

export function numberSource(value: number | ExactNumber): string {
  return value instanceof ExactNumber ? value.source : String(value);
}

/** The error for an answer that can't be read, or must not be believed. */
export function badAnswer(reason: string): AppError {
  return new AppError("bad_answer", reason);
}
