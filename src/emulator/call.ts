// A request that may be answered: its key works, is of the project asked for, and has the scope.

import type { ApiKey } from "./keys.ts";

export type Call = {
  readonly caller: ApiKey;
  /** The key that the path names. */
  readonly keyId: string | undefined;
  readonly parameters: URLSearchParams;
  readonly contentType: string;
  readonly body: string;
  readonly now: Date;
  readonly requestId: string;
};
