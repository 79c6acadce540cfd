// A page: the monitor's answer to a request.

export type Page = {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** The texts in the body that tell when it was read. A page that differs in nothing else is no news. */
  readonly asOf?: readonly string[];
  /** Sent in addition to the headers of every page. */
  readonly headers?: Readonly<Record<string, string>>;
};

export function textPage(status: number, lines: readonly string[]): Page {
  return { status, contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n` };
}
