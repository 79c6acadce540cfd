// The formats there are, apart from what writes them, which is loaded when it is used.

export const FORMATS = ["csv", "jsonl", "parquet"] as const;
export type Format = (typeof FORMATS)[number];
