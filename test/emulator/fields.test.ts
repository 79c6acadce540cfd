import { expect, test } from "vitest";
import { ask, breakdown, start } from "./ask.ts";

test("Get Fields lists the tags, models, methods and features of the requested days", async () => {
  await using emulator = await start({
    usage: (_, day) => [
      { model: ["nova-3"], method: "sync", tags: ["b", "a"], feature_set: ["utterances", "diarize"] },
      { model: null, method: null, tags: null },
      { model: ["nova-3", "aura"], method: "streaming", tags: [day] },
    ],
  });
  const response = await ask(emulator, "usage/fields?start=2026-03-09&end=2026-03-09");
  expect(await response.json()).toEqual({
    tags: ["2026-03-09", "a", "b"],
    models: [expect.objectContaining({ name: "aura" }), expect.objectContaining({ name: "nova-3" })],
    processing_methods: ["streaming", "sync"],
    features: ["diarize", "utterances"],
  });
});

test("in dialect 2026 a filter by the model id from Get Fields selects the model's usage", async () => {
  await using emulator = await start({ dialect: "2026", usage: () => [{ model: ["nova-3"], requests: 5 }] });
  const text = await (await ask(emulator, "usage/fields")).text();
  const id = /"model_id":"([^"]+)"/.exec(text)?.[1];
  const { results } = await breakdown(emulator, `start=2026-03-09&end=2026-03-09&model=${id}`);
  expect(results.map(({ requests }) => requests)).toEqual([5]);
});
