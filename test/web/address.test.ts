import { expect, test } from "vitest";
import { monitorUrl } from "../../src/web/address.ts";

test.each([
  ["127.0.0.1", "http://127.0.0.1:9464"],
  ["localhost", "http://localhost:9464"],
  ["::1", "http://[::1]:9464"],
  ["0.0.0.0", "http://127.0.0.1:9464"],
  ["::", "http://[::1]:9464"],
])("a monitor on %s is reached at %s", (host, url) => {
  expect(monitorUrl({ host, port: 9464 })).toBe(url);
});
