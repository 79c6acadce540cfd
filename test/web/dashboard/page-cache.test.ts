import { expect, test } from "vitest";
import { pageCache } from "../../../src/web/dashboard/dashboard.ts";
import { type Page, textPage } from "../../../src/web/page.ts";

const period = (day: number) => ({ start: `2026-03-0${day}`, end: `2026-03-0${day}`, live: false });

/** Pages that are made when the test says so. */
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

test("a page is made once for all who ask while it is made, and for some seconds after", async () => {
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

test("another period is another page, and so is one that moves on with the days", () => {
  const { begun, ask } = pages();
  void ask(period(1));
  void ask(period(2));
  void ask({ ...period(1), live: true });
  expect(begun).toHaveLength(3);
});

test("of too many different pages at once the last must wait", async () => {
  const { begun, clock, ask } = pages();
  for (let day = 1; day <= 8; day++) void ask(period(day));
  expect(await ask(period(9))).toMatchObject({ status: 503, headers: { "retry-after": "5" } });
  expect(begun).toHaveLength(8);

  begun[0]?.resolve(textPage(200, ["one"]));
  await ask(period(1));
  clock.ms = 5_000;
  void ask(period(9));
  expect(begun).toHaveLength(9);
});

test("a page that could not be made fails for all who wait, and is made anew for who asks later", async () => {
  const { begun, ask } = pages();
  const asked = [ask(period(1)), ask(period(1))];
  begun[0]?.reject(new Error("no"));
  expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  void ask(period(1));
  expect(begun).toHaveLength(2);
});

test("a page that says that nothing could be read is not kept for who asks later", async () => {
  const { begun, ask } = pages();
  const asked = [ask(period(1)), ask(period(1))];
  begun[0]?.resolve(textPage(503, ["away"]));
  expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([503, 503]);
  void ask(period(1));
  expect(begun).toHaveLength(2);
});
