import { expect, test } from "vitest";
import { isLoopbackAddress, monitorUrl } from "../../src/web/address.ts";

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
