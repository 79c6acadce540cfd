// The schema after all migrations, as text with its comments, so that a review sees what a migration does.

import { expect, test } from "vitest";
import { testDatabase } from "../../support/database.ts";
import { schemaText } from "./schema-text.ts";

const { db } = await testDatabase();

const HEAD = `-- The schema after all migrations, as test/db/migrations/schema.test.ts reads it from the catalogue. After a migration, renew it:
-- npx vitest run --config test/vitest.config.ts test/db/migrations/schema.test.ts --update
`;

test("the schema is the reviewed one in schema.txt", async () => {
  await expect(`${HEAD}${await schemaText(db)}`).toMatchFileSnapshot("schema.txt");
});
