// What the monitor answers with.

export type Page = {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** Beside those that every page has. */
  readonly headers?: Readonly<Record<string, string>>;
};

export function textPage(status: number, lines: readonly string[]): Page {
  return { status, contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n` };
}
