// A page: an answer of the monitor, which is the HTTP server of a worker. Pure.

export type Page = {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
  /** Sent in addition to the headers of every page. */
  readonly headers?: Readonly<Record<string, string>>;
};

export type MakePage = (query: URLSearchParams) => Page | Promise<Page>;

/** How long a request waits for its read and the reads queued before it. Less than SOCKET_IDLE_MS_MAX, so that an error can be sent. */
export const READ_MS_MAX = 20_000;

export type Readiness = {
  /** Whether the process works at all: if not, it should be restarted. */
  readonly live: boolean;
  /** Why it can't do its work now, one sentence for each reason; empty if it is ready. */
  readonly reasons: readonly string[];
};

export function textPage(status: number, lines: readonly string[], headers: Page["headers"] = {}): Page {
  return { status, contentType: "text/plain; charset=utf-8", body: `${lines.join("\n")}\n`, headers };
}
