// Statements about whole databases, each on a connection of its own.

import pg from "pg";

export async function runStatement(
  url: string,
  statement: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client({ connectionString: url });
  // Without a listener, the loss of an idle connection would end this process.
  client.on("error", () => {});
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(statement);
    return rows;
  } finally {
    await client.end();
  }
}

/** The URL of another database on the same server. */
export function databaseUrl(url: string, name: string): string {
  const other = new URL(url);
  other.pathname = `/${name}`;
  return other.href;
}
