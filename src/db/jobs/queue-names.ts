// The queues that workers share, and how they are called in the database: each installation has its own.

import { DEFAULT_INSTALLATION } from "../../usage/installation.ts";
import type { Database } from "../connection/database.ts";
import { installationOf } from "../connection/handle.ts";

export const QUEUE_NAMES = ["usage_request", "usage_request_dead", "rotation"] as const;

export type QueueName = (typeof QUEUE_NAMES)[number];

/** As pg-boss calls the queue of the handle's installation. */
export function storedName(db: Database, queue: QueueName): string {
  const installation = installationOf(db);
  return installation === DEFAULT_INSTALLATION ? queue : `${queue}.${installation}`;
}
