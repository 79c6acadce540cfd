// Checks the shape of an answer, at the edge: past it, types are believed.

import { z } from "zod";
import { AppError } from "../errors.ts";
import type { ServiceAnswer } from "./answer.ts";
import { isIdentifier } from "./request.ts";

/** An id becomes part of a path, so it is checked as soon as the service names it. */
export const Id = z.string().refine(isIdentifier, "not an id");

const ISSUES_SHOWN = 3;

/** Throws `bad_answer` and names the places, never what stands there. */
export function parseShape<T extends z.ZodType>(schema: T, answer: ServiceAnswer, what: string): z.output<T> {
  const parsed = schema.safeParse(answer.value);
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues
    .slice(0, ISSUES_SHOWN)
    .map(({ path, message }) => `${path.join(".") || "the answer"}: ${message}`);
  const { status, requestId } = answer;
  throw new AppError("bad_answer", `${what}: the answer has another shape than expected (${places.join("; ")})`, {
    details: { status, ...(requestId !== undefined && { requestId }) },
  });
}

/** Whether the service said by one of these statuses that there is no such thing. */
export function isStatus(error: unknown, statuses: readonly number[]): boolean {
  return error instanceof AppError && statuses.some((status) => error.details.status === status);
}
