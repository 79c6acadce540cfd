// Tells a server that can't be reached from one that denies access.

/** SQLSTATE classes of connections, of a server that is full, starts or stops, and what the network says. */
const CONNECTION_ERROR_CODE =
  /^(?:08\w{3}|53300|57P\w{2}|E(?:CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH))$/;
/** What pg says, without a code, of a connection that broke or was not to be had. */
const CONNECTION_ERROR_MESSAGE =
  /^(?:Connection terminated|Client has encountered a connection error|timeout expired|timeout exceeded)/;

/** PgBouncer gives one code to all it has to say, of its own and of the server behind it: the words tell a refusal from an outage. */
const POOLER_CODE = "08P01";
const POOLER_DENIED_MESSAGE =
  /authentication failed|^no such (?:user|database)|^(?:role|database) ".*" (?:does not exist|is disabled|is not permitted)|^no pg_hba\.conf entry|^not allowed$/;

/** Whether the server was not reached, or ended the connection: it may be there in a minute. */
export function isConnectionError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  // Of a name with several addresses, each was tried.
  if (error instanceof AggregateError) return error.errors.every(isConnectionError);
  return (
    !isDeniedByPooler(error) &&
    (CONNECTION_ERROR_CODE.test(codeOf(error)) || CONNECTION_ERROR_MESSAGE.test(error.message))
  );
}

/** What TLS says of a server that can't be trusted, or that speaks no version of it that may be. */
const TLS_ERROR_CODE = /^(?:CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|EPROTO$)/;

/**
 * Whether the server does not let this user in, has no such database, no room, or a certificate that is not to be
 * trusted: it will be the same in a minute.
 */
export function isAccessDenied(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = codeOf(error);
  return /^(?:28|3D|53)\w{3}$/.test(code) || TLS_ERROR_CODE.test(code) || isDeniedByPooler(error);
}

function isDeniedByPooler(error: Error): boolean {
  return codeOf(error) === POOLER_CODE && POOLER_DENIED_MESSAGE.test(error.message);
}

function codeOf(error: Error): string {
  return "code" in error ? String(error.code) : "";
}
