import { expect, test } from "vitest";
import { fetchFields } from "../../src/api/fields.ts";
import { answerJson, scriptedServer } from "../support/scripted-server.ts";
import { KEY, limit, openTestService } from "./open-test-service.ts";

test.each([
  ["features", { features: ["diarize", "utterances"], tags: [], models: [{ odd: true }] }, ["diarize", "utterances"]],
  ["no features", { features: [] }, []],
  ["no list of features", { tags: ["a"] }, undefined],
  ["null for features", { features: null }, undefined],
])("fields with %s are read, without dates", async (_name, body, features) => {
  await using server = await scriptedServer((_request, response) => answerJson(response, 200, body));
  await using service = openTestService(server.origin);
  expect(await fetchFields(service, "p1", KEY, limit())).toEqual({ features });
  expect(server.requests[0]?.target).toBe("/v1/projects/p1/usage/fields");
});

test("a service without fields is no failure", async () => {
  await using server = await scriptedServer((_request, response) => answerJson(response, 404, {}));
  await using service = openTestService(server.origin);
  expect(await fetchFields(service, "p1", KEY, limit())).toBeUndefined();
});

test.each([[[]], ["text"], [null], [{ features: "diarize" }], [{ features: [1] }]])(
  "fields that are %j are a bad answer",
  async (body) => {
    await using server = await scriptedServer((_request, response) => answerJson(response, 200, body));
    await using service = openTestService(server.origin);
    await expect(fetchFields(service, "p1", KEY, limit())).rejects.toMatchObject({
      code: "bad_answer",
      message: expect.stringContaining("fields of the project: the answer has another shape"),
    });
  },
);
