// Tells a server that is away from one that refuses.

/** SQLSTATE classes of connections, of a server that is full, starts or stops, and what the network says. */
const AWAY_CODE = /^(?:08\w{3}|53300|57P\w{2}|E(?:CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH))$/;
/** What pg says, without a code, of a connection that broke or was not to be had. */
const AWAY_WORDS =
  /^(?:Connection terminated|Client has encountered a connection error|timeout expired|timeout exceeded)/;

/** PgBouncer gives one code to all it has to say, of its own and of the server behind it: the words tell a refusal from an outage. */
const POOLER_CODE = "08P01";
const REFUSING_WORDS =
  /authentication failed|^no such (?:user|database)|^(?:role|database) ".*" (?:does not exist|is disabled|is not permitted)|^no pg_hba\.conf entry|^not allowed$/;

/** Whether the server was not reached, or ended the connection: it may be there in a minute. */
export function isAway(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  // Of a name with several addresses, each was tried.
  if (error instanceof AggregateError) return error.errors.every(isAway);
  return !poolerRefuses(error) && (AWAY_CODE.test(codeOf(error)) || AWAY_WORDS.test(error.message));
}

/** What TLS says of a server that can't be trusted, or that speaks no version of it that may be. */
const UNTRUSTED_CODE = /^(?:CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|EPROTO$)/;

/**
 * Whether the server does not let this user in, has no such database, no room, or a certificate that is not to be
 * trusted: it will be the same in a minute.
 */
export function isShut(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return /^(?:28|3D|53)\w{3}$/.test(code) || UNTRUSTED_CODE.test(code) || poolerRefuses(error);
}

function poolerRefuses(error: Error): boolean {
  return codeOf(error) === POOLER_CODE && REFUSING_WORDS.test(error.message);
}

function codeOf(error: Error): string {
  return "code" in error ? String(error.code) : "";
}
