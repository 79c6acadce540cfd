import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { sleep } from "../../src/async.ts";
import { fetchBalances, fetchFields, fetchProjects } from "../../src/service/projects.ts";
import { answer, answerJson, type Script, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

/** Lists the projects at a server that answers each request with the next body, and then with the last one again. */
async function listAt(...bodies: readonly object[]) {
  let requests = 0;
  await using server = await scriptedServer((_request, response) =>
    answerJson(response, 200, bodies[Math.min(requests++, bodies.length - 1)]),
  );
  await using service = openTestService(server.origin);
  const listed = await fetchProjects(service, KEY, limit()).then(
    (list) => list.listed,
    (error: unknown) => String(error),
  );
  return { listed, asked: server.requests.map(({ target }) => target) };
}

const projects = (...ids: readonly string[]) => ids.map((id) => ({ project_id: id, name: `name of ${id}` }));
const idsOf = (listed: unknown) => (Array.isArray(listed) ? listed.map(({ id }) => id) : listed);

test("a project without a name gets its id as its name", async () => {
  const { listed, asked } = await listAt({
    projects: [{ project_id: "p1", name: "production" }, { project_id: "p2" }],
  });
  expect(listed).toEqual([
    { id: "p1", name: "production" },
    { id: "p2", name: "p2" },
  ]);
  expect(asked).toEqual(["/v1/projects"]);
});

test("a name becomes one printable line of at most 100 characters", async () => {
  const names = ["  two\nlines\u202e ", " \u0000 ", "x".repeat(5_000)];
  const { listed } = await listAt({ projects: names.map((name, i) => ({ project_id: `p${i}`, name })) });
  expect(listed).toMatchObject([{ name: "two lines" }, { name: "p1" }, { name: `${"x".repeat(99)}…` }]);
});

test.each([0, 1])(
  "a list in pages from %i is read to its end, and a project on two pages is listed once",
  async (first) => {
    const { listed, asked } = await listAt(
      { projects: projects("a", "b"), page: first, limit: 2 },
      { projects: projects("b", "c"), page: first + 1, limit: 2 },
      { projects: projects("d"), page: first + 2, limit: 2 },
    );
    expect(idsOf(listed)).toEqual(["a", "b", "c", "d"]);
    expect(asked).toEqual(["/v1/projects", `/v1/projects?page=${first + 1}`, `/v1/projects?page=${first + 2}`]);
  },
);

test("a list whose pages end with a full one is read to its end", async () => {
  const { listed } = await listAt(
    { projects: projects("a", "b"), page: 0, limit: 2 },
    { projects: [], page: 1, limit: 2 },
  );
  expect(idsOf(listed)).toEqual(["a", "b"]);
});

test.each([
  [
    "sends the first page again",
    [{ projects: projects("a"), page: 0, limit: 1 }],
    "page 1 was asked for, and page 0 sent",
  ],
  [
    "never ends its pages",
    [
      { projects: projects("a"), page: 0, limit: 1 },
      { projects: projects("a"), page: 1, limit: 1 },
    ],
    "page 1 has nothing that is not on earlier pages",
  ],
  ["sends no list", [{ results: [] }], "the list of projects"],
  [
    "sends more projects than any key sees",
    [{ projects: Array.from({ length: 20_001 }, (_, i) => ({ project_id: `p${i}` })) }],
    "it has more than 20000",
  ],
])("no list is taken from a service that %s", async (_, bodies, problem) => {
  expect((await listAt(...bodies)).listed).toContain(problem);
});

test.each([
  ["an id that leads out of the path", { project_id: "../x", name: "x" }, "entry 2: project_id not an id"],
  [
    "a name with half of a surrogate pair",
    { project_id: "b", name: "\ud83d" },
    "entry 2: name holds half of a surrogate pair",
  ],
  ["no id", { name: "b" }, "entry 2: project_id Invalid input: expected string, received undefined"],
])("an entry with %s is left out, and the others are listed", async (_, entry, reason) => {
  await using server = await scriptedServer((_request, response) =>
    answerJson(response, 200, { projects: [...projects("a"), entry, ...projects("c")] }),
  );
  await using service = openTestService(server.origin);
  const { listed, leftOut } = await fetchProjects(service, KEY, limit());
  expect([idsOf(listed), leftOut]).toEqual([["a", "c"], [reason]]);
});

test.each<[string, (page: number, response: ServerResponse) => void, string]>([
  ["never ends a page", (_, response) => void response.writeHead(200).write("{"), ""],
  [
    "never ends its pages",
    (page, response) => answerJson(response, 200, { projects: projects(`p${page}`), page, limit: 1 }),
    "; it had ",
  ],
  ["asks for a long pause", (_, response) => answer(response, 429, "", { "retry-after": "30" }), ""],
])("a list of a service that %s is given up after one time for all pages", async (_, respond, found) => {
  await using server = await scriptedServer(({ target }, response) =>
    respond(Number(new URL(target, "http://service").searchParams.get("page")), response),
  );
  await using service = openTestService(server.origin, {}, { now: () => performance.now(), sleep });
  await expect(fetchProjects(service, KEY, limit(), 0.5)).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining(`the list of projects: it did not come to its end in 0.5 s${found}`),
  });
});

// Fields

const LISTS_NOTHING = { features: undefined, models: undefined, tags: undefined };
const NOVA = { name: "nova-3", language: "en", version: "1", model_id: "6f0c" };

test.each<[string, unknown, unknown]>([
  ["features", { features: ["diarize", "aura-2"] }, { ...LISTS_NOTHING, features: ["diarize", "aura-2"] }],
  ["no features", { features: [] }, { ...LISTS_NOTHING, features: [] }],
  ["null for features", { features: null }, LISTS_NOTHING],
  ["tags", { tags: ["a", null] }, { ...LISTS_NOTHING, tags: ["a"] }],
  [
    "models",
    { models: [NOVA, { name: "old" }, { odd: true }] },
    {
      ...LISTS_NOTHING,
      models: [
        { name: "nova-3", id: "6f0c", language: "en", version: "1" },
        { name: "old", id: undefined, language: undefined, version: undefined },
      ],
    },
  ],
  ["values that are not lists", { models: "nova", tags: {} }, LISTS_NOTHING],
])("fields with %s are read, and the request has no dates", async (_name, body, fields) => {
  await using server = await scriptedServer((_request, response) => answerJson(response, 200, body));
  await using service = openTestService(server.origin);
  expect(await fetchFields(service, "p1", KEY, limit())).toEqual(fields);
  expect(server.requests[0]?.target).toBe("/v1/projects/p1/usage/fields");
});

test("fetchFields returns undefined if the service has no list of fields", async () => {
  await using server = await scriptedServer((_request, response) => answerJson(response, 404, {}));
  await using service = openTestService(server.origin);
  expect(await fetchFields(service, "p1", KEY, limit())).toBeUndefined();
});

test.each([[[]], ["text"], [null], [{ features: "diarize" }], [{ features: [1] }]])(
  "the list of fields %j is a bad answer",
  async (body) => {
    await using server = await scriptedServer((_request, response) => answerJson(response, 200, body));
    await using service = openTestService(server.origin);
    await expect(fetchFields(service, "p1", KEY, limit())).rejects.toMatchObject({
      code: "bad_answer",
      message: expect.stringContaining("fields of the project: the answer has another shape"),
    });
  },
);

// Balances

async function balancesAt(status: number, body: string) {
  const script: Script = (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(body);
  };
  await using server = await scriptedServer(script);
  await using service = openTestService(server.origin);
  return await fetchBalances(service, "p1", KEY, limit());
}

const balanceOf = (amount: string, rest = "") => `{"balances":[{"balance_id":"b","amount":${amount}${rest}}]}`;

test.each([
  ["0.30000000000000004", "0.30000000000000004"],
  ["12345678901234.56789012345678", "12345678901234.56789012345678"],
  ["-0.05", "-0.05"],
  ["1.50", "1.5"],
  ["2.5e3", "2500"],
  ["0", "0"],
])("the amount %s is read as %s, with every digit", async (sent, amount) => {
  const balance = { balanceId: "b", amount, units: "usd", purchaseOrderId: "po" };
  expect(await balancesAt(200, balanceOf(sent, ',"units":"usd","purchase_order_id":"po"'))).toEqual([balance]);
});

test("a balance without unit and purchase order has null for both, and unknown members are ignored", async () => {
  const balance = { balanceId: "b", amount: "1", units: null, purchaseOrderId: null };
  expect(await balancesAt(200, balanceOf("1", ',"units":null,"colour":"red"'))).toEqual([balance]);
  expect(await balancesAt(200, '{"balances":[]}')).toEqual([]);
});

test.each([
  balanceOf('"1"'),
  balanceOf("null"),
  balanceOf("1e999"),
  '{"balances":[{"balance_id":"","amount":1}]}',
  '{"balances":[{"balance_id":"b","amount":1},{"balance_id":"b","amount":2}]}',
  "{}",
])("the answer %s can't be read", async (body) => {
  await expect(balancesAt(200, body)).rejects.toMatchObject({ code: "bad_answer" });
});

test("the error of a refusal names the scope that the key lacks", async () => {
  await expect(balancesAt(403, "{}")).rejects.toThrow("the scope billing:read");
});
