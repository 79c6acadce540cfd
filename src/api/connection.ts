// Classifies the failures of a connection: which are worth another attempt, and which happened before anything was sent.

import { AppError } from "../errors.ts";
import type { CallWords, Failure } from "./failure.ts";

/** The certificate is wrong today and will be wrong in a second; verification is never weakened. */
const CERTIFICATE_CODE =
  /^(?:CERT_|ERR_TLS_CERT_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|INVALID_(?:CA|PURPOSE)|HOSTNAME_MISMATCH|PATH_LENGTH_)/;

/** An error with a code of its own, such as the time limit, says already what happened. */
export function connectionFailure(call: CallWords, error: unknown): Failure {
  if (error instanceof AppError) {
    const own = new AppError(error.code, `${call.what}: ${error.message}`, { details: error.details });
    return { kind: error.code === "unavailable" ? "transient" : "final", error: own };
  }
  const code = codeOf(error);
  if (CERTIFICATE_CODE.test(code)) {
    const message = `${call.what}: the certificate of the service is not to be trusted (${code}); check service.baseUrl, and where a proxy of yours opens TLS add its authority by NODE_EXTRA_CA_CERTS`;
    return { kind: "final", error: new AppError("rejected", message, { cause: error, details: { sent: "no" } }) };
  }
  const details = isBeforeSending(error) ? { sent: "no" } : {};
  const message = `${call.what}: no answer, the connection failed (${code})`;
  return { kind: "transient", error: new AppError("unavailable", message, { cause: error, details }) };
}

/** Only what is certain: a connection that was never made. A lost one may have carried the request. */
function isBeforeSending(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError) return error.errors.length > 0 && error.errors.every(isBeforeSending);
  if ("syscall" in error) return error.syscall === "connect" || error.syscall === "getaddrinfo";
  return codeOf(error) === "UND_ERR_CONNECT_TIMEOUT";
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
