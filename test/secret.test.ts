// Secrets are hidden in texts and log lines, and so are passwords in addresses. The last third is about the address of the proxy.

import { format, inspect } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { openApp, openLog } from "../src/app.ts";
import { proxyOf } from "../src/proxy.ts";
import { Scrubber, Secret } from "../src/secret.ts";
import { html } from "../src/show/html.ts";
import { findSecrets } from "./support/leak-search.ts";

const TEXT = 'open "sesame" 41/ä';
const SECRET = new Secret(TEXT);

test.each<[string, () => string]>([
  ["as a text", () => `${SECRET}`],
  ["as JSON", () => JSON.stringify({ key: SECRET })],
  ["by console.log", () => format("%s %o %O %j", SECRET, SECRET, SECRET, SECRET)],
  ["by inspect with hidden fields", () => inspect({ key: SECRET }, { showHidden: true, depth: 9 })],
  ["by its fields", () => JSON.stringify([Object.entries(SECRET), { ...SECRET }])],
  ["as the cause of an error", () => inspect(new Error("refused", { cause: SECRET }))],
])("printing a secret does not show it: %s", (_, printed) => {
  expect(printed()).not.toContain("sesame");
});

test.each([
  TEXT,
  JSON.stringify(TEXT),
  encodeURIComponent(TEXT),
  Buffer.from(TEXT).toString("base64"),
  Buffer.from(`:${TEXT}\n`).toString("base64"),
  Buffer.from(`u:${TEXT}\n`).toString("base64url"),
  Buffer.from(TEXT).toString("hex"),
  TEXT.toUpperCase(),
  [...TEXT].toReversed().join(""),
  `${html`${TEXT}`}`,
])("every form of a secret is hidden in a text: %s", (form) => {
  const scrubber = new Scrubber();
  scrubber.add(SECRET);
  const scrubbed = scrubber.scrub(`refused ${form}, twice: ${form}`);
  expect(scrubbed).toMatch(/^refused .*\[secret\].*, twice: .*\[secret\]/);
  expect(findSecrets(scrubbed, [TEXT])).toEqual([]);
});

test.each([
  ["after a letter whose lower case is longer (İ)", "AbCdEfGhIjKlMnOp", "İstanbul: refused AbCdEfGhIjKlMnOp"],
  ["with such a letter in the secret", "AbCdİEfGhIjKl", "refused AbCdİEfGhIjKl"],
])("a secret with capitals is hidden: %s", (_, secret, text) => {
  const scrubber = new Scrubber();
  scrubber.add(new Secret(secret));
  expect(scrubber.scrub(text)).toBe(text.replace(secret, "[secret]"));
});

test("secrets that overlap in a text are replaced by one mark", () => {
  const scrubber = new Scrubber();
  for (const text of ["alpha-bravo-charlie", "charlie-delta-echo", "alpha-bravo"]) scrubber.add(new Secret(text));
  expect(scrubber.scrub("x alpha-bravo-charlie-delta-echo y alpha-bravo z")).toBe("x [secret] y [secret] z");
});

const WORD = "open-sesame-41";

/** From now on, what is written to standard error goes into the returned array instead. */
function captureErrorOutput(): readonly string[] {
  const { write } = process.stderr;
  onTestFinished(() => {
    process.stderr.write = write;
  });
  const lines: string[] = [];
  process.stderr.write = (text: string | Uint8Array) => lines.push(String(text)) > 0;
  return lines;
}

test.each([false, true])("a secret in a log line is hidden (terminal: %s)", async (terminal) => {
  const scrubber = new Scrubber();
  scrubber.add(new Secret(WORD));
  const lines = captureErrorOutput();
  const log = await openLog(undefined, terminal, scrubber);
  log.error({ err: new Error(`no user ${WORD}`), url: `http://${WORD}@host` }, `refused: ${WORD}`);
  expect(lines.join("")).toContain("refused: [secret]");
  expect(lines.join("")).not.toContain(WORD);
});

test("by default only a log on a terminal leaves out the level info", async () => {
  const lines = captureErrorOutput();
  for (const terminal of [true, false]) (await openLog(undefined, terminal, new Scrubber())).info({ terminal });
  expect(lines.map((line) => JSON.parse(line).terminal)).toEqual([false]);
});

test.each([false, true])("control characters in a log line are escaped (terminal: %s)", async (terminal) => {
  const lines = captureErrorOutput();
  const log = await openLog("info", terminal, new Scrubber());
  const evil = "a\u001b]0;owned\u0007\u009b2J\u202eb\rc";
  log.error({ reason: evil, list: [evil], err: new Error(evil) }, `said: ${evil}`);
  const esc = String.fromCharCode(27);
  const coloursAndErasures = new RegExp(`${esc}\\[\\d*m|\\r${esc}\\[K`, "g");
  const text = lines.join("").replaceAll(coloursAndErasures, "");
  expect(text).toContain("owned");
  expect(text).not.toMatch(/(?!\n)\p{Cc}|\u202e/u);
});

const openWith = (env: Record<string, string>) => openApp(env, "jobs.config.json", new AbortController().signal);

test("the actor that is recorded is the person behind sudo", async () => {
  expect((await openWith({ SUDO_USER: "ann" })).actor).toMatch(/^ann on ./);
});

test("the password in DATABASE_URL is hidden, encoded and decoded", async () => {
  const url = "postgres://usage:pass%2Fword%20of%20mine@127.0.0.1/usage";
  const { scrubber } = await openWith({ DATABASE_URL: url });
  for (const form of [url, "pass/word of mine", "pass%2Fword%20of%20mine"]) {
    expect(scrubber.scrub(`refused ${form} here`)).toBe("refused [secret] here");
  }
});

test.each<[Record<string, string>, string | undefined]>([
  [{}, undefined],
  [{ HTTPS_PROXY: "" }, undefined],
  [{ HTTPS_PROXY: "  " }, undefined],
  [{ HTTP_PROXY: "http://other:1" }, undefined],
  [{ HTTPS_PROXY: "http://proxy.example:3128" }, "http://proxy.example:3128/"],
  [{ HTTPS_PROXY: "https://proxy.example" }, "https://proxy.example/"],
  [{ HTTPS_PROXY: "proxy.example:3128" }, "http://proxy.example:3128/"],
  [{ HTTPS_PROXY: "http://u:p%40@proxy.example:1" }, "http://u:p%40@proxy.example:1/"],
  [{ HTTPS_PROXY: "http://a:1", https_proxy: "http://b:2" }, "http://b:2/"],
  [{ HTTPS_PROXY: "http://a:1", https_proxy: "" }, undefined],
])("with %j the proxy is %j", (env, address) => {
  expect(proxyOf(env)?.address.reveal()).toBe(address);
});

test.each([
  [{ NO_PROXY: "a", no_proxy: "b" }, "b"],
  [{ NO_PROXY: "a", no_proxy: "" }, ""],
  [{ NO_PROXY: "a" }, "a"],
])("with %j the hosts that are reached without the proxy are %j", (env, hosts) => {
  expect(proxyOf({ HTTPS_PROXY: "http://proxy.example", ...env })?.noProxy).toBe(hosts);
});

test.each([
  "socks5://me:hush-hush@proxy:1080",
  "http://",
  "http://me:100%hush-hush@proxy",
  "http://me:hush-hush%ff@proxy",
  "http://me%c3:%a4hush-hush@proxy",
  "http://me:hush-hush@:1",
])("the proxy address %j is refused without being quoted", (value) => {
  const call = () => proxyOf({ HTTPS_PROXY: value });
  expect(call).toThrow(/^HTTPS_PROXY: expected the address of a proxy, such as http:/);
  expect(call).not.toThrow(/hush/);
});

test.each(["http://me:hush%2Dhush%20now@proxy:1", "me:hush%2Dhush%20now@proxy:1"])(
  "the credentials in %j are hidden, encoded, decoded and in base64",
  async (HTTPS_PROXY) => {
    const { scrubber } = await openWith({ HTTPS_PROXY });
    const forms = ["hush-hush now", "hush%2Dhush%20now", "me:hush-hush now"];
    for (const form of [...forms, ...forms.map((one) => Buffer.from(one).toString("base64"))]) {
      expect(scrubber.scrub(`refused ${form} here`)).not.toContain(form);
    }
  },
);

test.each([
  ["http://me%40us:hush%ff@proxy", "me@us:hush%ff"],
  ["http://me%ff:hush%40us@proxy", "me%ff:hush@us"],
])("the credentials in %j are hidden in the half-decoded form %j", async (HTTPS_PROXY, form) => {
  const { scrubber } = await openWith({ HTTPS_PROXY });
  expect(scrubber.scrub(`refused ${form} here`)).toBe("refused [secret] here");
});
