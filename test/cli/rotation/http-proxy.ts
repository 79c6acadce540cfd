// A proxy between the program and the service. It records the creates of keys, and the secrets of the keys that the service made.

import { z } from "zod";
import type { DecideFault } from "../../faults/fault-decision.ts";
import { startServiceFront } from "../../faults/service-front.ts";

export type HttpProxy = AsyncDisposable & {
  /** Each program may call it by an address of its own, so that `decideFault` knows which program calls. */
  readonly urlOf: (who: string) => string;
  /** The bodies of the creates the program sent, whether they reached the service or not. */
  readonly creates: readonly CreateBody[];
  /** If set, a create is answered with 502 and this text, as by a gateway that quotes the new key. */
  quote: ((secret: string) => string) | undefined;
};

const CreateBody = z.looseObject({ comment: z.string() });
type CreateBody = z.infer<typeof CreateBody>;

/** The secrets of the keys that the service makes are added to `secrets`. */
export async function startHttpProxy(
  targetUrl: string,
  decideFault: DecideFault,
  secrets: string[],
): Promise<HttpProxy> {
  const creates: CreateBody[] = [];
  const front = await startServiceFront(targetUrl, {
    decideFault,
    whoAsks: (request) => {
      const [, who = "", url = ""] = /^\/([^/]+)(.*)$/.exec(request.url ?? "") ?? [];
      return { who, url };
    },
    watch: ({ method, body }) => {
      if (method === "POST") creates.push(CreateBody.parse(JSON.parse(body.toString())));
      return {
        answered: (answer) => {
          if (method !== "POST") return answer;
          const made = secretsIn(answer.body);
          secrets.push(...made);
          const quoted = made.map((secret) => proxy.quote?.(secret)).at(0);
          if (quoted === undefined) return answer;
          return { ...answer, status: 502, body: Buffer.from(JSON.stringify({ error: quoted, message: quoted })) };
        },
      };
    },
  });
  const proxy: HttpProxy = {
    urlOf: (who) => `${front.url}/${who}`,
    creates,
    quote: undefined,
    [Symbol.asyncDispose]: () => front[Symbol.asyncDispose](),
  };
  return proxy;
}

function secretsIn(body: Buffer): string[] {
  return [...body.toString().matchAll(/"key":"([^"]+)"/g)].flatMap(([, secret]) => secret ?? []);
}
