// What Grafana makes of a panel's SQL before Postgres sees it: the browser puts variables in, then the server expands macros.
// https://grafana.com/docs/grafana/latest/datasources/postgres/query-editor/#macros and
// https://grafana.com/docs/grafana/latest/dashboards/variables/variable-syntax/#sql-string
// Pure.

export type TimeRange = { readonly from: Date; readonly to: Date };

/** The chosen value of each variable, or a list of them if it may have several. Without options it is "" or an empty list. */
export type Values = Readonly<Record<string, string | readonly string[]>>;

const VARIABLE = /\$\{([^}]*)\}/g;
/** The pattern of Grafana's server: an argument contains no bracket. */
const MACRO = /\$([_a-zA-Z0-9]+)\(([^)]*)\)/g;

/** The SQL that Postgres gets. Throws if Grafana would leave a variable or macro in it, or quote a value otherwise than `sqlstring`. */
export function asSent(rawSql: string, range: TimeRange, values: Values): string {
  const left = rawSql.replaceAll(VARIABLE, "").replaceAll(MACRO, "");
  if (/\$|\[\[/.test(left)) throw new Error(`expected variables as \${name:sqlstring} and macros with (), got ${left}`);
  return withMacros(withVariables(rawSql, values), range);
}

function withVariables(rawSql: string, values: Values): string {
  return rawSql.replaceAll(VARIABLE, (_, inner: string) => {
    const [name = "", format] = inner.split(":");
    const value = values[name];
    if (value === undefined) throw new Error(`the dashboard has no variable ${name}`);
    if (format !== "sqlstring") throw new Error(`expected \${${name}:sqlstring}, got \${${inner}}`);
    return [value].flat().map(sqlString).join(",");
  });
}

function sqlString(value: string): string {
  return `'${value.replaceAll("'", "''")}'`;
}

function withMacros(sql: string, range: TimeRange): string {
  const [from, to] = [range.from, range.to].map((moment) => `'${moment.toISOString().replace(".000Z", "Z")}'`);
  return sql.replaceAll(MACRO, (_, name: string, argument: string) => {
    if (name === "__timeFilter" && argument !== "") return `${argument} BETWEEN ${from} AND ${to}`;
    if (name === "__timeFrom") return `${from}`;
    if (name === "__timeTo") return `${to}`;
    throw new Error(`the macro $${name}(${argument}) is not known here`);
  });
}
