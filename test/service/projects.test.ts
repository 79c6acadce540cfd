import { expect, test } from "vitest";
import { sleep } from "../../src/async.ts";
import { fetchBalances, fetchProjects, fieldsReader } from "../../src/service/projects.ts";
import { answering, answeringJson, type Script } from "../support/scripted-server.ts";
import { hangSignal, KEY, serve } from "./open-test-service.ts";

/** Lists the projects of a service that answers with these entries. */
async function listAt(...projects: readonly unknown[]) {
  const { server, service } = await serve(answeringJson(200, { projects }));
  const list = await fetchProjects(service, KEY, hangSignal());
  expect(server.requests.map(({ target }) => target)).toEqual(["/v1/projects"]);
  return list;
}

test("each project is listed once, under its id if it has no name", async () => {
  const [production, nameless] = [{ project_id: "p1", name: "production" }, { project_id: "p2" }];
  expect((await listAt(production, nameless, production)).listed).toEqual([
    { id: "p1", name: "production" },
    { id: "p2", name: "p2" },
  ]);
});

test("a name becomes one printable line of at most 100 characters", async () => {
  const names = ["  two\nlines\u202e ", " \u0000 ", "x".repeat(5_000)];
  const { listed } = await listAt(...names.map((name, i) => ({ project_id: `p${i}`, name })));
  expect(listed).toMatchObject([{ name: "two lines" }, { name: "p1" }, { name: `${"x".repeat(99)}…` }]);
});

test.each([
  ["an id that leads out of the path", { project_id: "../x", name: "x" }, "entry 2: project_id not an id"],
  ["no id", { name: "b" }, "entry 2: project_id Invalid input: expected string, received undefined"],
  ["null in its place", null, "entry 2: Invalid input: expected object, received null"],
])("only the entry with %s is left out", async (_name, entry, reason) => {
  const kept = { listed: [{ id: "a" }, { id: "c" }], leftOut: [reason], isFullPage: false };
  expect(await listAt({ project_id: "a" }, entry, { project_id: "c" })).toMatchObject(kept);
});

test.each<[string, Script]>([
  ["never ends its answer", (_request, response) => void response.writeHead(200).write("{")],
  ["asks for a long pause", answering(429, "", { "retry-after": "30" })],
])("listing ends at its time limit if the service %s", async (_name, script) => {
  const realClock = { now: () => performance.now(), sleep };
  const { service } = await serve(script, {}, realClock);
  const error = { code: "unavailable", message: "the list of projects did not come within 0.5 s" };
  await expect(fetchProjects(service, KEY, hangSignal(), 0.5)).rejects.toMatchObject(error);
});

// Fields

const readFields = fieldsReader("usage");

const NOVA = { name: "nova-3", language: "en", version: "1", model_id: "6f0c" };

test.each<[string, unknown, unknown]>([
  ["features", { features: ["diarize", "aura-2"] }, { feature: ["diarize", "aura-2"] }],
  ["null for features", { features: null }, {}],
  ["tags, as listed and without tag=,", { tags: ["a", null, "tag=b"] }, { tags: ["a", "a", "tag=b", "b"] }],
  [
    "models by name and id",
    { models: [NOVA, { name: "old" }, { odd: true }] },
    { model: ["nova-3", "6f0c", "old", "old"] },
  ],
  ["values that are not lists", { models: "nova", tags: {} }, {}],
])("a request without dates reads fields with %s", async (_name, body, names) => {
  const { server, service } = await serve(answeringJson(200, body));
  expect((await readFields(service, "p1", KEY, hangSignal()))?.names).toEqual(names);
  expect(server.requests[0]?.target).toBe("/v1/projects/p1/usage/fields");
});

test("reading fields returns undefined if the service has no list of fields", async () => {
  const { service } = await serve(answeringJson(404));
  expect(await readFields(service, "p1", KEY, hangSignal())).toBeUndefined();
});

test.each([[[]], ["text"], [null], [{ features: "diarize" }], [{ features: [1] }]])(
  "the list of fields %j is a bad answer",
  async (body) => {
    const { service } = await serve(answeringJson(200, body));
    const message = expect.stringContaining("usage fields: the answer has another shape");
    await expect(readFields(service, "p1", KEY, hangSignal())).rejects.toMatchObject({ code: "bad_answer", message });
  },
);

// Balances

async function balancesAt(status: number, body: string) {
  const { service } = await serve(answering(status, body, { "content-type": "application/json" }));
  return await fetchBalances(service, "p1", KEY, hangSignal());
}

const balanceOf = (amount: string, rest = "") => `{"balances":[{"balance_id":"b","amount":${amount}${rest}}]}`;

test.each([
  ["12345678901234.56789012345678", "12345678901234.56789012345678"],
  ["-0.05", "-0.05"],
  ["2.5e3", "2500"],
])("the amount %s is read as %s, with every digit", async (sent, amount) => {
  const balance = { balanceId: "b", amount, units: "usd", purchaseOrderId: "po" };
  expect(await balancesAt(200, balanceOf(sent, ',"units":"usd","purchase_order_id":"po"'))).toEqual([balance]);
});

test("a balance may lack its unit and purchase order", async () => {
  const balance = { balanceId: "b", amount: "1", units: null, purchaseOrderId: null };
  expect(await balancesAt(200, balanceOf("1", ',"units":null,"colour":"red"'))).toEqual([balance]);
  expect(await balancesAt(200, '{"balances":[]}')).toEqual([]);
});

test.each([
  balanceOf('"1"'),
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
