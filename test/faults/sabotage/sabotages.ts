// All sabotages.

import { COSTS } from "./costs.ts";
import { KEYS } from "./keys.ts";
import { OUTPUTS } from "./outputs.ts";
import type { Sabotage } from "./sabotage.ts";
import { SERVICE } from "./service.ts";
import { STORAGE } from "./storage.ts";
import { USAGE } from "./usage.ts";
import { WORKER } from "./worker.ts";

export const SABOTAGES: readonly Sabotage[] = [
  ...USAGE,
  ...STORAGE,
  ...SERVICE,
  ...KEYS,
  ...WORKER,
  ...OUTPUTS,
  ...COSTS,
];
