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
    { waitMs: 20, charsMax: 1_000 },
  );
  return { begun, clock, ask };
}

test("requests while a page is made and for 5 seconds after share the page", async () => {
  const { begun, clock, ask } = pages();
  const asked = [ask(period(1)), ask(period(1))];
  clock.ms = 1_000;
  begun[0]?.resolve(textPage(200, ["one"]));
  await Promise.all(asked);
  clock.ms = 5_999;
  expect(await ask(period(1))).toEqual(textPage(200, ["one"]));
  expect(begun).toHaveLength(1);

  clock.ms = 6_000;
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

test("any number of different pages is made at once", async () => {
  const { begun, ask } = pages();
  const asked = Array.from({ length: 200 }, (_, i) => ask(period(i)));
  expect(begun).toHaveLength(200);
  for (const page of begun) page.resolve(textPage(200, ["one"]));
  expect((await Promise.all(asked)).every(({ status }) => status === 200)).toBe(true);
});

test("a page that takes long to be made is new for longer, up to 30 seconds", async () => {
  const { begun, clock, ask } = pages();
  const made = async (tookMs: number) => {
    const page = ask(period(1));
    clock.ms += tookMs;
    begun.at(-1)?.resolve(textPage(200, [String(tookMs)]));
    return (await page).body;
  };
  expect(await made(2_000)).toBe("2000\n");
  clock.ms += 7_999;
  expect((await ask(period(1))).body).toBe("2000\n");
  clock.ms += 1;
  expect(await made(20_000)).toBe("20000\n");
  clock.ms += 29_999;
  expect((await ask(period(1))).body).toBe("20000\n");
  clock.ms += 1;
  expect(await made(1)).toBe("1\n");
});

test("a page that is no longer new is shown while the next one is late, but not once it is 30 seconds old", async () => {
  const { begun, clock, ask } = pages();
  const first = ask(period(1));
  begun[0]?.resolve(textPage(200, ["old"]));
  await first;
  clock.ms = 29_999;
  expect((await ask(period(1))).body).toBe("old\n");
  expect(begun).toHaveLength(2);
  clock.ms = 30_000;
  const late = ask(period(1));
  begun[1]?.resolve(textPage(200, ["new"]));
  expect((await late).body).toBe("new\n");
  expect(begun).toHaveLength(2);
});

test("the pages that were made first leave the cache when it has too many characters", async () => {
  const { begun, ask } = pages();
  for (const day of [1, 2, 3]) {
    const page = ask(period(day));
    begun.at(-1)?.resolve(textPage(200, ["x".repeat(400)]));
    await page;
  }
  await ask(period(3));
  await ask(period(2));
  expect(begun).toHaveLength(3);
  void ask(period(1));
  expect(begun).toHaveLength(4);
});

test("after a failure the last good page is no longer shown", async () => {
  const { begun, clock, ask } = pages();
  const first = ask(period(1));
  begun[0]?.resolve(textPage(200, ["good"]));
  await first;
  clock.ms = 5_000;
  const failing = ask(period(1));
  begun[1]?.resolve(textPage(503, ["away"]));
  expect((await failing).status).toBe(503);
  const next = ask(period(1));
  begun[2]?.resolve(textPage(503, ["still away"]));
  expect((await next).body).toBe("still away\n");
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
