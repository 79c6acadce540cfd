// Which proxy the variables HTTPS_PROXY and https_proxy give, and that its credentials are hidden.

import { expect, test } from "vitest";
import { openApp } from "../src/app.ts";
import { proxyOf } from "../src/proxy.ts";

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

test.each(["socks5://me:hush-hush@proxy:1080", "http://", "http://me:100%hush-hush@proxy", "http://me:hush-hush@:1"])(
  "the proxy address %j is refused, and the error does not quote it",
  (value) => {
    const call = () => proxyOf({ HTTPS_PROXY: value });
    expect(call).toThrow(/^HTTPS_PROXY: expected the address of a proxy, such as http:/);
    expect(call).not.toThrow(/hush/);
  },
);

test.each(["http://me:hush%2Dhush%20now@proxy:1", "me:hush%2Dhush%20now@proxy:1"])(
  "the credentials in %j are hidden, encoded, decoded and in base64",
  async (HTTPS_PROXY) => {
    const { scrubber } = await openApp({ HTTPS_PROXY }, "jobs.config.json", new AbortController().signal);
    const forms = ["hush-hush now", "hush%2Dhush%20now", "me:hush-hush now"];
    for (const form of [...forms, ...forms.map((one) => Buffer.from(one).toString("base64"))]) {
      expect(scrubber.scrub(`refused ${form} here`)).not.toContain(form);
    }
  },
);
