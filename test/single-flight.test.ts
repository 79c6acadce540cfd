import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { oneAtATime } from "../src/async.ts";

/** A function `read` whose results the test gives, and the reads that have begun, in their order. */
function readings() {
  const begun: PromiseWithResolvers<string>[] = [];
  const read = () => {
    const reading = Promise.withResolvers<string>();
    begun.push(reading);
    return reading.promise;
  };
  return { begun, read };
}

test("reads run one at a time, even after one that failed", async () => {
  const { begun, read } = readings();
  const ask = oneAtATime(10_000);
  const asked = [ask(read), ask(read), ask(read)];
  await setImmediate();
  expect(begun).toHaveLength(1);
  begun[0]?.reject("no");
  expect(await asked[0]).toEqual({ ok: false, error: "no" });
  await setImmediate();
  expect(begun).toHaveLength(2);
  begun[1]?.resolve("second");
  await asked[1];
  await setImmediate();
  begun[2]?.resolve("third");
  expect(await Promise.all(asked.slice(1))).toEqual([
    { ok: true, value: "second" },
    { ok: true, value: "third" },
  ]);
});

test("a read whose caller has given up does not start", async () => {
  const { begun, read } = readings();
  const ask = oneAtATime(50);
  const late = { ok: false, error: expect.objectContaining({ message: "not read within 0.05 s" }) };
  expect(await Promise.all([ask(read), ask(read)])).toEqual([late, late]);
  begun[0]?.resolve("too late");
  const next = ask(read);
  await setImmediate();
  begun[1]?.resolve("next");
  expect(await next).toEqual({ ok: true, value: "next" });
  expect(begun).toHaveLength(2);
});
