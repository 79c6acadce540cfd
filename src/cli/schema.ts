// The command `schema`: prints the JSON Schema of the configuration.

import type { App } from "../app.ts";
import { configJsonSchema } from "../config/schema.ts";

export async function runSchema({ write }: App): Promise<number> {
  write(`${JSON.stringify(configJsonSchema(), null, 2)}\n`);
  return 0;
}
