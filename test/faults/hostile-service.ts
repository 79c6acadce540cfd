// A service whose answers contain hostile texts, and a configuration with hostile names.

import { farSchedule } from "../cli/workers.ts";
import { HOSTILE_NAMES } from "../show/hostile-names.ts";
import { answer, answerJson, type ScriptedServer, scriptedServer } from "../support/scripted-server.ts";
import { HOSTILE_TEXTS } from "./hostile-texts.ts";

/** The last text has the most requests, so every list of the largest groups names it. */
export const LARGEST = "<script>alert(1)</script>";
export const ALL = [...new Set([...HOSTILE_TEXTS, ...HOSTILE_NAMES]).difference(new Set([LARGEST])), LARGEST];
/** Half of a surrogate pair can't be stored, so an answer with one is refused. */
export const TEXTS = ALL.filter((text) => text.isWellFormed());
export const NAMES = TEXTS.filter(isName);

/** Up to a hundred characters, none of them a control character, and no space at the ends. */
export function isName(text: string): boolean {
  return text.length <= 100 && /^\S(?:.*\S)?$/.test(text) && !/[\p{Cc}\p{Cs}]/u.test(text);
}

const key = { env: "USAGE_EXPORT_KEY" };
const job = { schedule: farSchedule(), window: { days: 1 } };

/** One project that gets the texts as values and errors, and one project for each text that is a valid name. */
export function configFor(service: ScriptedServer): Readonly<Record<string, unknown>> {
  return {
    service: { baseUrl: service.origin, dialect: "interface", requestsPerSecond: 100, maxConcurrent: 16 },
    projects: [{ id: "values", name: "values", key }, ...NAMES.map((name, n) => ({ id: `named-${n}`, name, key }))],
    exports: [
      { ...job, name: "values", projects: ["values"], groupings: ["model", "tags", "accessor"] },
      {
        ...job,
        name: "errors",
        projects: ["values"],
        groupings: ["none"],
        checkFeatures: "off",
        filters: TEXTS.map((_, n) => ({ name: `error ${n}`, dimensions: { accessor: String(n) } })),
      },
      { ...job, name: NAMES.find((name) => name.includes('"')) ?? "", projects: NAMES, groupings: ["none"] },
    ],
    monitor: { port: 0 },
  };
}

/** The row of the nth text has n + 1 requests, which tells its text. */
export async function hostileService(): Promise<ScriptedServer> {
  return scriptedServer(({ target }, response) => {
    const { pathname, searchParams } = new URL(target, "http://service");
    if (pathname.endsWith("/keys")) {
      const listed = TEXTS.map((text, n) => ({
        api_key_id: `key-${n}`,
        comment: text,
        scopes: ["member"],
        tags: [text],
      }));
      return answerJson(response, 200, { api_keys: listed.map((api_key) => ({ member: {}, api_key })) });
    }
    if (!pathname.endsWith("/breakdown")) return answer(response, 404, "");
    const start = searchParams.get("start");
    const end = searchParams.get("end");
    const accessor = searchParams.get("accessor");
    if (accessor !== null) {
      return answerJson(response, 400, { err_code: "NO", err_msg: TEXTS[Number(accessor)] });
    }
    const values: Readonly<Record<string, (text: string, n: number) => unknown>> = {
      model: (text) => text,
      tags: (text) => [text],
      accessor: (_, n) => `key-${n}`,
    };
    const grouping = searchParams.get("grouping") ?? "none";
    const valueFor = values[grouping];
    const results = valueFor
      ? TEXTS.map((text, n) => ({ requests: n + 1, grouping: { start, end, [grouping]: valueFor(text, n) } }))
      : [{ requests: 1, grouping: { start, end } }];
    answerJson(response, 200, { start, end, results });
  });
}
