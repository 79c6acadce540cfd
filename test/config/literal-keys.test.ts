// A key that is written into the configuration file is refused, and no message contains it.

import { expect, test } from "vitest";
import { messageFor, sampleWith } from "./sample-config.ts";

const HEX = "3f9a0c7be1d24568a0b1c2d3e4f5061728394a5b";
const WORD = "open-sesame";

test.each([
  ["projects[0].key", WORD],
  ["projects[0].key", { value: WORD }],
  ["projects[0].key", { [HEX]: true }],
  ["projects[0].key", { env: "A", secret: WORD }],
  ["projects[0].key", { env: HEX }],
  ["projects[0].key", { env: `Token ${WORD}` }],
  ["projects[0].key", { env: { value: WORD } }],
  ["projects[0].key", { file: HEX }],
  ["projects[2].key", { rotation: WORD, first: { env: "A" } }],
  ["projects[2].key", { rotation: "lab-key", first: WORD }],
  ["projects[2].key", { rotation: "lab-key", first: { file: HEX } }],
  ["rotations[0].createWith", WORD],
  ["rotations[0].createWith", { env: HEX }],
  ["rotations[0].createWith", { rotation: WORD, first: { env: "A" } }],
  ["projects[0].apiKey", WORD],
  ["service.headers", { authorization: `Token ${WORD}` }],
  ["service.authScheme", `Token ${WORD}`],
  ["service.baseUrl", `https://user:${WORD}@api.example.com`],
  ["service.baseUrl", `https://api.example.com?token=${WORD}`],
  ["projects[0].id", `${HEX}.`],
  ["exports[0].projects[0]", HEX],
  ["rotations[0].deliver[1].command", `curl -H ${HEX}`],
  ["monitor.access", { bearer: WORD }],
  ["monitor.access", { bearer: { env: HEX } }],
  ["monitor.access", { bearer: { file: `https://${WORD}` } }],
  ["monitor.access", { basic: `ops:${WORD}` }],
  ["monitor.access.basic.password", WORD],
  ["monitor.access.basic.username", `ops:${WORD}`],
  ["notify.webhook", `https://hooks.example.com/${WORD}`],
  ["notify.webhook.env", `https://hooks.example.com/${WORD}`],
  ["notify.deadMan.file", `https://hooks.example.com/${WORD}`],
])("at %s, %j is refused and not repeated", (place, value) => {
  const message = messageFor(sampleWith(place, value));

  expect(message).toContain(`- ${place}`);
  expect(message).not.toMatch(new RegExp(`${WORD}|${HEX.slice(0, 8)}`));
});

test.each(["projects[0].key", "projects[2].key.first", "rotations[0].createWith"])(
  "the message about a literal key at %s says what to write instead",
  (place) => {
    expect(messageFor(sampleWith(place, WORD))).toMatch(
      /never write the key itself into this file.*use \{ "env": "NAME" \}/,
    );
  },
);

test.each([
  `{ "key": "${WORD}" x }`,
  `{ "key": "${WORD} }`,
  `{ "key": '${WORD}' }`,
  `{ "key": ${WORD} }`,
  `{ "key": "${WORD}\\q" }`,
])("the broken text %s is not quoted", (text) => {
  const message = messageFor(text);

  expect(message).toMatch(/line 1, column \d+/);
  expect(message).not.toMatch(new RegExp(`${WORD}|${HEX.slice(0, 8)}`));
});

test("a repeated field whose value is a key is found, and the message does not contain the key", () => {
  const twice = sampleWith("projects[0].key", { env: "A" }).replace('"env": "A"', `"env": "${WORD}", "env": "A"`);

  expect(messageFor(twice)).toContain("- projects[0].key.env (line");
  expect(messageFor(twice)).not.toContain(WORD);
});
