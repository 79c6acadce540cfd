import { expect, test } from "vitest";
import { sleep } from "../../src/async.ts";
import { fetchProjects } from "../../src/service/projects.ts";
import { answer, answerJson, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

/** Lists the projects at a server that answers each request with the next body, and then with the last one again. */
async function listAt(...bodies: readonly object[]) {
  let requests = 0;
  await using server = await scriptedServer((_request, response) =>
    answerJson(response, 200, bodies[Math.min(requests++, bodies.length - 1)]),
  );
  await using service = openTestService(server.origin);
  const listed = await fetchProjects(service, KEY, limit()).catch((error: unknown) => String(error));
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
  ["sends an id that leads out of the path", [{ projects: projects("..") }], "the list of projects"],
  ["sends no list", [{ results: [] }], "the list of projects"],
  [
    "sends more projects than any key sees",
    [{ projects: Array.from({ length: 20_001 }, (_, i) => ({ project_id: `p${i}` })) }],
    "it has more than 20000",
  ],
])("no list is taken from a service that %s", async (_, bodies, problem) => {
  expect((await listAt(...bodies)).listed).toContain(problem);
});

test("a service that never ends a page is given up after a time, whatever is left of the call's attempts", async () => {
  await using server = await scriptedServer((_request, response) => {
    if (server.requests.length === 1) answerJson(response, 200, { projects: projects("a"), page: 0, limit: 1 });
    else response.writeHead(200).write("{");
  });
  await using service = openTestService(server.origin);
  await expect(fetchProjects(service, KEY, limit(), 0.3)).rejects.toMatchObject({
    code: "unavailable",
    message: "the list of projects: no whole page came in 0.3 s",
  });
});

test("a pause that the service asks for is not counted as time for a page", async () => {
  await using server = await scriptedServer((_request, response) => {
    if (server.requests.length === 1) answer(response, 429, "", { "retry-after": "1" });
    else answerJson(response, 200, { projects: projects("a") });
  });
  await using service = openTestService(server.origin, {}, { now: () => performance.now(), sleep });
  // Another call waits for the pause from its beginning.
  const lists = await Promise.all([1, 2].map(() => fetchProjects(service, KEY, limit(), 0.5)));
  expect(lists.map(idsOf)).toEqual([["a"], ["a"]]);
});
