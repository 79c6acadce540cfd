// Answers made by hand from a valid one. Random changes would hardly produce them.

import { IS_LONG_RUN } from "./sweep.ts";

type HandMade = {
  readonly body: (valid: string) => Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
};

const text = (make: (valid: string) => string): HandMade => ({ body: (valid) => Buffer.from(make(valid)) });
const labelled = (headers: Readonly<Record<string, string>>): HandMade => ({
  body: (valid) => Buffer.from(valid),
  headers,
});

const PAGE = "<!doctype html><html><head><title>Sign in</title></head><body><pre>[]</pre></body></html>";
const ROWS = IS_LONG_RUN ? 100_000 : 5_000;

export const HAND_MADE: Readonly<Record<string, HandMade>> = {
  "a page that calls itself JSON": text(() => PAGE),
  "a page with the answer in it": text((valid) => PAGE.replace("[]", valid)),
  "JSON that calls itself a page": labelled({ "content-type": "text/html; charset=utf-8" }),
  "JSON that calls itself text": labelled({ "content-type": "text/plain" }),
  "JSON with an empty content type": labelled({ "content-type": "" }),
  "JSON that calls itself compressed": labelled({ "content-encoding": "gzip" }),
  "an answer in UTF-16": { body: (valid) => Buffer.from(`\ufeff${valid}`, "utf16le") },
  "an answer in Latin-1": { body: (valid) => Buffer.from(valid.replace("prod", "pröd"), "latin1") },
  "an answer nested a hundred thousand levels deep": text((valid) =>
    valid.replace('"results":', `"deep":${"[".repeat(100_000)}${"]".repeat(100_000)},"results":`),
  ),
  "a name that is there twice": text((valid) => valid.replaceAll('"requests":', '"requests":99,"requests":')),
  "results that are there twice": text((valid) => valid.replace('"results":', '"results":[],"results":')),
  "members with the names of properties that every object has": text((valid) =>
    valid.replace('"results":', '"constructor":{"prototype":{"polluted":1}},"toString":1,"results":'),
  ),
  "a member __proto__": text((valid) => valid.replace('"results":', '"__proto__":{"results":[]},"results":')),
  "__proto__ in a row": text((valid) => valid.replaceAll('"requests":', '"__proto__":{"hours":1},"requests":')),
  "two answers in one": text((valid) => valid + valid),
  "an answer with a comment": text((valid) => `// usage\n${valid}`),
  "a name and a text of a hundred thousand characters": text((valid) =>
    valid
      .replaceAll(/"(listen|prod|nova-3|8f3b1c9e-11d2)"/g, `"$1${"é".repeat(100_000)}"`)
      .replace('"requests":', `"${"n".repeat(100_000)}":1,"requests":`),
  ),
  [`${ROWS} rows`]: text((valid) => valid.replace(/\{[^{}]*"requests".*\}(?=\])/, manyRows)),
};

/** Characters. A little less than the 32 MiB of the longest answer that the program reads. */
const LENGTH_MAX = 31 * 1024 * 1024;

/** Repeats the last row, which begins with its hours, if it has any, or its requests. If it names a group, each copy gets a group of its own. */
function manyRows(rows: string): string {
  const hours = rows.lastIndexOf('{"hours"');
  const row = rows.slice(hours === -1 ? rows.lastIndexOf('{"requests"') : hours);
  const named = (n: number) =>
    row
      .replaceAll(/"(endpoint|accessor)":(?:"[^"]*"|null)/g, `"$1":"g${n}"`)
      .replaceAll(/"(models|tags)":(?:\[[^\]]*\]|null)/g, `"$1":["g${n}"]`);
  const all: string[] = [];
  let length = 0;
  while (all.length < ROWS && length < LENGTH_MAX) {
    const next = named(all.length);
    all.push(next);
    length += next.length;
  }
  return all.join(",");
}
