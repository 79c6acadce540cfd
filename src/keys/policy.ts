// What a rotation is asked to do. The configuration checks it before it comes here.

/** Where a new key is delivered, besides the sealed store. */
export type Sink =
  | { readonly kind: "file" /** Absolute. */; readonly path: string }
  | {
      readonly kind: "command";
      /** The program and its arguments; there is no shell, and the key comes on standard input. */
      readonly command: readonly string[];
      readonly timeoutSeconds: number;
    };

export type RotationJob = {
  readonly name: string;
  /** A cron expression, in `timezone`. */
  readonly schedule: string;
  readonly timezone: string;
  /** How much later than its moment the job runs at most. */
  readonly jitterSeconds: number;
  readonly project: { readonly id: string; readonly name: string };
  readonly comment: string;
  /** How the comment of a key is written: "{comment}" and "{id}" are replaced. */
  readonly commentTemplate: string;
  /** At least one. */
  readonly scopes: readonly string[];
  /** Of a regular key. A self-hosted key has none, so none are sent for it. */
  readonly tags: readonly string[];
  readonly maxAgeDays: number;
  /** How long the previous key must not have been seen in use before it is due for removal. */
  readonly graceDays: number;
  /** More than maxAgeDays and graceDays together. Left out, a key does not expire by itself. */
  readonly expiresInDays?: number;
  readonly deliver: readonly Sink[];
  readonly retire: Retire;
};

/**
 * What happens to a key that is due for removal. "delete": it is deleted at the service once the service's usage shows that
 * nobody uses it. "delete-by-age": it is deleted even if the service's usage does not tell.
 */
export type Retire = "keep" | "delete" | "delete-by-age";

/** A name for a sink that stays the same while what it does stays the same. */
export function sinkId(sink: Sink): string {
  return sink.kind === "file" ? `file ${sink.path}` : `command ${JSON.stringify(sink.command)}`;
}

/** The comment by which a key is found at the service. */
export function commentOf({ commentTemplate, comment }: RotationJob, intentId: string): string {
  return commentTemplate.replaceAll(/\{comment\}|\{id\}/g, (placeholder) =>
    placeholder === "{id}" ? intentId : comment,
  );
}
