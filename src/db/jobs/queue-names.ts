// The queues that workers share.

export const QUEUE_NAMES = ["export", "rotation"] as const;

export type QueueName = (typeof QUEUE_NAMES)[number];

/** The schema that pg-boss manages. */
export const QUEUE_SCHEMA = "usage_export_queue";
