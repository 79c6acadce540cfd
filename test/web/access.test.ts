import { expect, test } from "vitest";
import { Secret } from "../../src/secret.ts";
import { type Access, isLoopbackAddress, monitorUrl, refusalPage } from "../../src/web/access.ts";
import { openTestMonitor } from "./test-monitor.ts";

const TOKEN = "open-sesame-open-sesame";
const BEARER: Access = { scheme: "Bearer", credentials: new Secret(TOKEN) };
const BASIC: Access = { scheme: "Basic", credentials: new Secret(`ops:${TOKEN}:ä`) };
const base64 = (text: string) => Buffer.from(text).toString("base64");
const HEALTH_CHECKS = ["/livez", "/readyz"];
const PATHS = ["/", "/report.html", "/metrics", "/nothing", ...HEALTH_CHECKS];

test.each([
  ["localhost", true],
  ["LocalHost:9464", true],
  ["127.0.0.1:9464", true],
  ["127.0.1.1", true],
  ["[::1]:9464", true],
  [undefined, false],
  ["", false],
  ["evil.example", false],
  ["localhost.evil.example", false],
  ["127.0.0.1.evil.example", false],
  ["evil.example:80@localhost", false],
  ["localhost:9464.evil.example", false],
  ["10.0.0.1:9464", false],
  ["[::ffff:10.0.0.1]", false],
])("on a loopback address a request with the host %j is answered: %s", (host, answered) => {
  expect(refusalPage(undefined, true, { host })?.status).toBe(answered ? undefined : 403);
});

test.each([
  [BEARER, `Bearer ${TOKEN}`, true],
  [BEARER, `bearer  ${TOKEN}`, true],
  [BEARER, undefined, false],
  [BEARER, "", false],
  [BEARER, "Bearer", false],
  [BEARER, TOKEN, false],
  [BEARER, `Bearer ${TOKEN.slice(1)}`, false],
  [BEARER, `Bearer ${TOKEN} `, false],
  [BEARER, `Bearer ${TOKEN.toUpperCase()}`, false],
  [BEARER, `Basic ${TOKEN}`, false],
  [BEARER, `Basic ${base64(TOKEN)}`, false],
  [BASIC, `Basic ${base64(`ops:${TOKEN}:ä`)}`, true],
  [BASIC, `BASIC ${base64(`ops:${TOKEN}:ä`)}`, true],
  [BASIC, `Basic ${base64(`ops:${TOKEN}`)}`, false],
  [BASIC, `Basic ${base64(`other:${TOKEN}:ä`)}`, false],
  [BASIC, `Basic ${base64("ops:")}`, false],
  [BASIC, `Basic ops:${TOKEN}:ä`, false],
  [BASIC, `Bearer ${base64(`ops:${TOKEN}:ä`)}`, false],
  [BASIC, "Basic !!!", false],
] as const)("with the credentials %o, the header %j is accepted: %s", (access, authorization, accepted) => {
  expect(refusalPage(access, false, { host: "anywhere", authorization })?.status).toBe(accepted ? undefined : 401);
});

test.each([
  [BEARER, `Bearer ${TOKEN}`, 'Bearer realm="usage-export"', "127.0.0.1"],
  [BASIC, `Basic ${base64(`ops:${TOKEN}:ä`)}`, 'Basic realm="usage-export", charset="UTF-8"', "0.0.0.0"],
])(
  "with the credentials %o, a request without them is answered only if it is a health check",
  async (access, right, challenge, host) => {
    await using monitor = await openTestMonitor({ access: () => access }, host);
    const answers = await Promise.all(PATHS.map((path) => monitor.ask(path)));
    expect(answers.map(({ status, headers }) => [status, headers.get("www-authenticate")])).toEqual(
      PATHS.map((path) => (HEALTH_CHECKS.includes(path) ? [200, null] : [401, challenge])),
    );
    const ask = (authorization: string) => monitor.ask("/", { headers: { authorization } });
    expect(await ask(right)).toMatchObject({ status: 200, text: "dashboard\n" });
    expect(await ask("Bearer open-sesame-?")).toMatchObject({ status: 401 });
    expect(monitor.logLines.join("\n")).not.toMatch(/sesame|Basic/);
  },
);

test("without credentials on a wildcard address everything is answered", async () => {
  await using monitor = await openTestMonitor({}, "0.0.0.0");
  const answers = await Promise.all(PATHS.map((path) => monitor.ask(path)));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 404, 200, 200]);
});

test.each([
  ["127.0.0.1", "http://127.0.0.1:9464"],
  ["localhost", "http://localhost:9464"],
  ["::1", "http://[::1]:9464"],
  ["0.0.0.0", "http://127.0.0.1:9464"],
  ["::", "http://[::1]:9464"],
])("a monitor on %s is reached at %s", (host, url) => {
  expect(monitorUrl({ host, port: 9464 })).toBe(url);
});

test.each([
  ["127.0.0.1", true],
  ["127.8.9.1", true],
  ["::1", true],
  ["::ffff:127.0.0.1", true],
  ["0.0.0.0", false],
  ["::", false],
  ["10.127.0.1", false],
  ["::ffff:10.0.0.1", false],
  ["fe80::1", false],
])("%s is a loopback address: %s", (address, isLoopback) => {
  expect(isLoopbackAddress(address)).toBe(isLoopback);
});
