import { expect, test } from "vitest";
import { applyChange, changeList, type KnownProject } from "../../src/usage/project-list.ts";

const START = new Date("2026-03-10T02:15:00Z");
const after = (minutes: number) => new Date(START.getTime() + minutes * 60_000);
const listed = (ids: string) => [...ids].map((id) => ({ id, name: `name of ${id}` }));

/** What is known after these lists, each with the minute at which it was read. */
function read(...lists: readonly (readonly [minute: number, ids: string, how?: "confirmed"])[]): KnownProject[] {
  let known: KnownProject[] = [];
  for (const [minute, ids, how] of lists) {
    const change = changeList(listed(ids), known, after(minute), how === "confirmed");
    known = applyChange("env KEY", known, change, after(minute));
  }
  return known;
}

const idsOf = (known: readonly KnownProject[]) => known.map(({ id }) => id).join("");
const current = (known: readonly KnownProject[]) => idsOf(known.filter(({ vanishedAt }) => !vanishedAt));
const waiting = (known: readonly KnownProject[]) => idsOf(known.filter(({ missingSince }) => missingSince));

test("a project that appears is known from then on, and one that is missing from the list has vanished", () => {
  const known = read([0, "abc"], [1, "acd"]);

  expect(current(known)).toBe("acd");
  expect(known.find(({ id }) => id === "d")?.firstSeenAt).toEqual(after(1));
  expect(known.find(({ id }) => id === "b")?.vanishedAt).toEqual(after(1));
});

test("a project that comes back is the one it was", () => {
  const known = read([0, "abc"], [1, "ac"], [2, "abc"]);

  expect(current(known)).toBe("abc");
  expect(known.find(({ id }) => id === "b")?.firstSeenAt).toEqual(START);
});

test("a renamed project keeps its identity", () => {
  const known = read([0, "abc"]);
  const renamed = [{ id: "a", name: "other" }, ...listed("bc")];

  const change = changeList(renamed, known, after(1));

  expect(change).toMatchObject({ added: [], vanished: [], renamed: [{ id: "a", name: "other" }] });
  expect(applyChange("env KEY", known, change, after(1))[0]).toMatchObject({ name: "other", firstSeenAt: START });
});

test("a list without more than half of the projects changes nothing until an hour later another lacks the same ones", () => {
  const doubtful = read([0, "abcd"], [10, "ax"]);
  expect(current(doubtful)).toBe("abcd");
  expect(waiting(doubtful)).toBe("bcd");

  expect(current(read([0, "abcd"], [10, "ax"], [69, "ax"]))).toBe("abcd");
  expect(current(read([0, "abcd"], [10, "ax"], [70, "ax"]))).toBe("ax");
});

test("half of the projects may vanish at once, and without any project before nothing is in doubt", () => {
  expect(current(read([0, "abcd"], [1, "ab"]))).toBe("ab");
  expect(current(read([0, ""], [1, "a"]))).toBe("a");
});

test("a project that is listed again is no longer in doubt, and begins to wait anew if it is missing once more", () => {
  expect(waiting(read([0, "abcd"], [10, "a"], [20, "abcd"]))).toBe("");
  expect(current(read([0, "abcd"], [10, "a"], [20, "abcd"], [75, "a"]))).toBe("abcd");
});

test("lists that are cut at different places take away only what each of them lacks", () => {
  expect(current(read([0, "abcdef"], [10, "ab"], [80, "ef"]))).toBe("abef");
});

test("projects deleted every day while a list is in doubt do not keep it in doubt for ever", () => {
  const lists = [
    [0, "abcdefgh"],
    [10, "abc"],
    [1450, "ab"],
  ] as const;

  expect(current(read(...lists))).toBe("abc");
  expect(current(read(...lists, [1460, "abxy"]))).toBe("abxy");
});

test("a project that had vanished does not return by a list in doubt", () => {
  expect(current(read([0, "abcde"], [1, "abcd"], [2, "e"]))).toBe("abcd");
  expect(current(read([0, "abcde"], [1, "abcd"], [2, "e"], [62, "e"]))).toBe("e");
});
