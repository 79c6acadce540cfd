import { expect, test } from "vitest";
import { type Page, textPage } from "../../src/web/page.ts";
import { sharePages } from "../../src/web/shared-pages.ts";

/** Pages that are finished by the test: `begun` has those that were begun. */
function pages() {
  const begun: PromiseWithResolvers<Page>[] = [];
  const clock = { ms: 0 };
  const share = sharePages({ newMs: 5_000, waitMs: 20 }, () => clock.ms);
  const ask = (url: string) =>
    share(url, () => {
      const page = Promise.withResolvers<Page>();
      begun.push(page);
      return page.promise;
    });
  /** The text of a page that takes so long to be made. */
  const made = async (tookMs: number) => {
    const page = ask("/");
    clock.ms += tookMs;
    begun.at(-1)?.resolve(textPage(200, [String(tookMs)]));
    return (await page).body;
  };
  return { begun, clock, ask, made };
}

test.each([
  [1, 5_000],
  [2_000, 8_000],
  [20_000, 30_000],
])("visitors of a URL share a page that takes %i ms while it is made and for %i ms after", async (took, newMs) => {
  const { begun, clock, ask, made } = pages();
  const other = ask("/?days=7");
  const first = made(took);
  expect([(await ask("/")).body, await first]).toEqual([`${took}\n`, `${took}\n`]);
  clock.ms += newMs - 1;
  expect((await ask("/")).body).toBe(`${took}\n`);
  expect(begun).toHaveLength(2);
  clock.ms += 1;
  expect(await made(3)).toBe("3\n");
  begun[0]?.resolve(textPage(200, ["other"]));
  expect((await other).body).toBe("other\n");
});

test("a page that is no longer new is shown while the next one is late, but not once it is 30 seconds old", async () => {
  const { begun, clock, ask, made } = pages();
  await made(1);
  clock.ms += 29_999;
  expect((await ask("/")).body).toBe("1\n");
  expect(begun).toHaveLength(2);
  clock.ms += 1;
  const next = ask("/");
  begun[1]?.resolve(textPage(200, ["next"]));
  expect((await next).body).toBe("next\n");
});

test("of many pages the oldest are forgotten", async () => {
  const { begun, ask } = pages();
  const asked = Array.from({ length: 60 }, (_, i) => ask(`/${i}`));
  for (const page of begun) page.resolve(textPage(200, ["one"]));
  await Promise.all(asked);
  await ask("/59");
  void ask("/0");
  expect(begun).toHaveLength(61);
});

type Begun = PromiseWithResolvers<Page> | undefined;

test.each([
  ["a page with the status 503", (page: Begun) => page?.resolve(textPage(503, ["away"]))],
  ["an error", (page: Begun) => page?.reject(new Error("away"))],
])("%s goes to all who wait for it, the last good page is no longer shown, and it is made again", async (_, fail) => {
  const { begun, clock, ask, made } = pages();
  await made(1);
  clock.ms += 5_000;
  const asked = Promise.allSettled([ask("/"), ask("/")]);
  fail(begun[1]);
  for (const one of await asked)
    expect(one).toMatchObject(one.status === "fulfilled" ? { value: { status: 503 } } : { reason: new Error("away") });
  void ask("/");
  expect(begun).toHaveLength(3);
});
