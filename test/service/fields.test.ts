import { expect, test } from "vitest";
import { fetchFields } from "../../src/service/projects.ts";
import { answerJson, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

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
