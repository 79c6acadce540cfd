// One error class with a closed list of codes. A code is added when something must react to it.

export type ErrorCode =
  | "config" // the command line, the configuration or the environment is wrong (exit status 2)
  | "unauthorized" // the service refused the key (401), or this call with it (403); the run does not repeat the call
  | "rejected" // the service refused the call for another reason (other 4xx, a redirect); trying again would not help
  | "rate_limited" // the service asked for a longer wait than this run may take, or answered every attempt with 429
  | "unavailable" // no usable answer after all attempts (connection, time limit, 408, 5xx)
  | "bad_answer" // an answer came, but it does not fit the request
  | "delivery" // a rotated key could not be delivered, or a file that was asked for could not be written
  | "database" // Postgres could not be reached or its schema is not the expected one
  | "stopped"; // a signal ended the work, or another process took it over

type Details = Readonly<Record<string, string | number>>;

export class AppError extends Error {
  override readonly name = "AppError";
  readonly code: ErrorCode;
  /** Facts that identify the failed work, safe to log: never a key, never a header. */
  readonly details: Details;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Details } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }
}

/** `internal` stands for any error that is not an AppError: one of the operating system or of the database, or a bug. */
export function errorCode(error: unknown): ErrorCode | "internal" {
  return error instanceof AppError ? error.code : "internal";
}

/** The code of an error from the system, the network or the database, such as ENOENT or 40001; empty if it has none. */
export function systemCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

/** The stack of an unexpected error, which shows where the bug is. Undefined for an AppError. */
export function unexpectedStack(error: unknown): string | undefined {
  return error instanceof Error && !(error instanceof AppError) ? error.stack : undefined;
}

/** A text for a person: the message and its causes. Other fields of a cause may hold data, such as a query's rows, and are left out. */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause instanceof Error ? errorText(error.cause) : "";
  return cause === "" || error.message.includes(cause) ? error.message : `${error.message}: ${cause}`;
}
