import { expect, test } from "vitest";
import { pageCache } from "../../../src/web/dashboard/page-cache.ts";
import { type Page, textPage } from "../../../src/web/page.ts";

const period = (day: number) => ({ start: `2026-03-0${day}`, end: `2026-03-0${day}`, live: false });

/** A cache whose pages are finished by the test: `begun` has those that were begun. */
function pages() {
  const begun: PromiseWithResolvers<Page>[] = [];
  const clock = { ms: 0 };
  const ask = pageCache(
    () => {
      const page = Promise.withResolvers<Page>();
      begun.push(page);
      return page.promise;
    },
    () => clock.ms,
  );
  return { begun, clock, ask };
}

test("requests while a page is made and for 5 seconds after share the page", async () => {
  const { begun, clock, ask } = pages();
  const asked = [ask(period(1)), ask(period(1))];
  clock.ms = 60_000;
  begun[0]?.resolve(textPage(200, ["one"]));
  await Promise.all(asked);
  clock.ms = 64_999;
  expect(await ask(period(1))).toEqual(textPage(200, ["one"]));
  expect(begun).toHaveLength(1);

  clock.ms = 65_000;
  void ask(period(1));
  expect(begun).toHaveLength(2);
});

test("another period has another page, and so has a live period with the same days", () => {
  const { begun, ask } = pages();
  void ask(period(1));
  void ask(period(2));
  void ask({ ...period(1), live: true });
  expect(begun).toHaveLength(3);
});

test("a seventeenth page at once is refused until another one leaves the cache", async () => {
  const { begun, clock, ask } = pages();
  for (let day = 1; day <= 16; day++) void ask(period(day));
  expect(await ask(period(17))).toMatchObject({ status: 503, headers: { "retry-after": "5" } });
  expect(begun).toHaveLength(16);

  begun[0]?.resolve(textPage(200, ["one"]));
  await ask(period(1));
  clock.ms = 5_000;
  void ask(period(17));
  expect(begun).toHaveLength(17);
});

test("a page that fails does so for all requests that wait for it, and a later request makes it again", async () => {
  const { begun, ask } = pages();
  const asked = [ask(period(1)), ask(period(1))];
  begun[0]?.reject(new Error("no"));
  expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  void ask(period(1));
  expect(begun).toHaveLength(2);
});

test("a page with the status 503 goes to all requests that wait for it, and a later request makes it again", async () => {
  const { begun, ask } = pages();
  const asked = [ask(period(1)), ask(period(1))];
  begun[0]?.resolve(textPage(503, ["away"]));
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([503, 503]);
  void ask(period(1));
  expect(begun).toHaveLength(2);
});
