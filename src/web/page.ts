// What the monitor answers with.

export type Page = {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** In addition to those of every page. */
  readonly headers?: Readonly<Record<string, string>>;
};

export function textPage(status: number, lines: readonly string[]): Page {
  return { status, contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n` };
}
