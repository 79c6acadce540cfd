// Reads the values of options. What is wrong with one is said in the words the command line adds it to.

import { InvalidArgumentError } from "commander";
import { isDay } from "../usage/day.ts";

export function parseDay(text: string): string {
  if (!isDay(text)) throw new InvalidArgumentError("expected a day that exists, as YYYY-MM-DD.");
  return text;
}

export function parseDays(text: string, days: readonly string[] | undefined): readonly string[] {
  return [...(days ?? []), parseDay(text)];
}

export function parsePort(text: string): number {
  const port = parseWhole(text);
  if (port > 65_535) throw new InvalidArgumentError("expected a port from 0 to 65535.");
  return port;
}

export function parseCount(text: string): number {
  const count = parseWhole(text);
  if (count < 1 || count > 1000) throw new InvalidArgumentError("expected a whole number from 1 to 1000.");
  return count;
}

export function parseReason(text: string): string {
  if (text.trim() === "") throw new InvalidArgumentError("expected a reason.");
  return text.trim();
}

export function parseWhole(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError("expected a whole number.");
  return Number(text);
}
