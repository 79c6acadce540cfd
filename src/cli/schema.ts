import type { App } from "../app.ts";
import { configJsonSchema } from "../config/schema.ts";

export async function runSchema(app: App): Promise<number> {
  app.write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
  return 0;
}
