// Classifies failures of statements and connections: the server was not reached, access failed, or another session was in the way.

import { type Kysely, sql } from "kysely";
import { AppError, errorText, systemCode } from "../../errors.ts";
import type { Tables } from "../schema.ts";

/** The SQLSTATEs of a failed connection and of a server that is full, starting or stopping, and the codes of network errors. */
const CONNECTION_ERROR_CODE =
  /^(?:08\w{3}|53300|57P\w{2}|E(?:CONN\w+|PIPE|TIMEDOUT|NOTFOUND|AI_AGAIN|HOSTUNREACH|NETUNREACH))$/;
/** pg gives these errors no code: a connection broke, or none was available. */
const CONNECTION_ERROR_MESSAGE =
  /^(?:Connection terminated|Client has encountered a connection error|timeout expired|timeout exceeded)/;

const POOLER_DENIED_MESSAGE =
  /authentication failed|^no such (?:user|database)|^(?:role|database) ".*" (?:does not exist|is disabled|is not permitted)|^no pg_hba\.conf entry|^not allowed$/;

/** Whether the server was not reached, or ended the connection: a later attempt may succeed. */
export function isConnectionError(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  // Node throws this if every address of a host name has failed.
  if (error instanceof AggregateError) return error.errors.every(isConnectionError);
  if (isDeniedByPooler(error)) return false;
  return CONNECTION_ERROR_CODE.test(systemCode(error)) || CONNECTION_ERROR_MESSAGE.test(error.message);
}

/** The codes of errors of TLS: the server's certificate is not trusted, or the server speaks no allowed version. */
const TLS_ERROR_CODE = /^(?:CERT_|ERR_TLS_|UNABLE_TO_|SELF_SIGNED_|DEPTH_ZERO_|EPROTO$)/;

/** Whether access was denied, TLS failed, or the server lacks resources (class 53). Too many connections (53300) are also a connection error. */
export function isAccessFailure(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const code = systemCode(error);
  return /^(?:28|3D|53)\w{3}$/.test(code) || TLS_ERROR_CODE.test(code) || isDeniedByPooler(error);
}

/** PgBouncer uses one code for all errors, so only the message tells a denial from an outage. */
function isDeniedByPooler(error: Error): boolean {
  return systemCode(error) === "08P01" && POOLER_DENIED_MESSAGE.test(error.message);
}

/** The SQLSTATE of a missing right. */
export const NOT_ALLOWED = "42501";

/** Adds the next step to an error about a missing right. Returns any other error as it is. Never advises to grant a superuser's role. */
export async function explainMissingRight(db: Kysely<Tables>, error: unknown): Promise<unknown> {
  if (systemCode(error) !== NOT_ALLOWED) return error;
  const { rows } = await sql<{ advice: string }>`
    select case
        when o.rolname is null then pg_catalog.format('user %s may not create schemas: have %s run: grant create on database %I to %I',
          current_user, pg_catalog.pg_get_userbyid(datdba), datname, current_user)
        when o.rolname = current_user then pg_catalog.format('user %s lacks a right that it needs', o.rolname)
        when o.rolsuper then pg_catalog.format('this is user %s, and the tables are %s''s: connect as %2$s', current_user, o.rolname)
        else pg_catalog.format(
          'this is user %1$s, and the tables are %2$s''s: connect as %2$s, or have an administrator run: grant %2$I to %1$I',
          current_user, o.rolname) end as advice
    from pg_catalog.pg_database
    left join (pg_catalog.pg_namespace n join pg_catalog.pg_roles o on o.oid = nspowner) on nspname = 'usage_export'
    where datname = pg_catalog.current_database()
  `.execute(db);
  return new AppError("database", `${errorText(error)}: ${rows[0]?.advice}`, { cause: error });
}

/** Whether the database can't be used. Any SQLSTATE says so, except those about data (classes 21 to 23). Unlike EPERM, a SQLSTATE has a digit. */
export function isDatabaseFailure(error: unknown): boolean {
  if (error instanceof AppError) return error.code === "database";
  return isConnectionError(error) || isAccessFailure(error) || /^(?!2[123])(?=.*\d)[\dA-Z]{5}$/.test(systemCode(error));
}

/** The SQLSTATEs of a serialisation failure, a deadlock and a lock timeout. */
export const CONFLICT = ["40001", "40P01", "55P03"];
/** The SQLSTATEs of a statement timeout, and of a write to a server that is read-only during a failover. */
const SERVER_BUSY = ["57014", "25006"];

/** Whether the state of the server caused the error, not the statement: a later attempt may succeed. */
export function isTransient(error: unknown): boolean {
  return isConnectionError(error) || isConflict(error) || SERVER_BUSY.includes(systemCode(error));
}

/** Whether the server ended the statement because of another session. That is not an outage. */
export function isConflict(error: unknown): boolean {
  return CONFLICT.includes(systemCode(error));
}
