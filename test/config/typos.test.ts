// Typing mistakes that would otherwise silently change what the program does. Each is refused, and the right word is suggested.

import { expect, test } from "vitest";
import { errorsFor, sampleWith } from "./sample-config.ts";

const UNKNOWN_FIELDS = [
  ["export", "exports"],
  ["rotation", "rotations"],
  ["monitoring", "monitor"],
  ["service.baseURL", "baseUrl"],
  ["service.url", "baseUrl"],
  ["service.auth", "authScheme"],
  ["service.timeout", "timeoutSeconds"],
  ["service.maxConcurrency", "maxConcurrent"],
  ["service.requestPerSecond", "requestsPerSecond"],
  ["exports[0].grouping", "groupings"],
  ["exports[0].groupigns", "groupings"],
  ["exports[0].filter", "filters"],
  ["exports[0].timeZone", "timezone"],
  ["exports[0].check_features", "checkFeatures"],
  ["exports[0].emptyGard", "emptyGuard"],
  ["exports[0].windows", "window"],
  ["exports[0].window.day", "days"],
  ["exports[0].window.toady", "today"],
  ["exports[0].filters[1].feature", "features"],
  ["exports[0].filters[1].dimension", "dimensions"],
  ["exports[0].filters[1].dimensions.models", "model"],
  ["exports[0].filters[1].dimensions.tag", "tags"],
  ["exports[0].filters[1].dimensions.featureSet", "feature_set"],
  ["rotations[0].maxAge", "maxAgeDays"],
  ["rotations[0].grace_days", "graceDays"],
  ["rotations[0].expireInDays", "expiresInDays"],
  ["rotations[0].delivery", "deliver"],
  ["rotations[0].deliver[1].timeout", "timeoutSeconds"],
  ["monitor.prot", "port"],
  ["monitor.acess", "access"],
  ["monitor.access.basic.user", "username"],
  ["monitor.access.basic.pasword", "password"],
  ["notifiy", "notify"],
  ["notify.webHook", "webhook"],
  ["notify.deadman", "deadMan"],
] as const;

test.each(UNKNOWN_FIELDS)("the unknown field %s is refused, and %s is suggested", (place, meant) => {
  expect(errorsFor(sampleWith(place, 1))).toEqual([
    expect.stringMatching(
      new RegExp(`^- ${escaped(place)} \\(line \\d+\\): unknown field; did you mean "${meant}"\\?$`),
    ),
  ]);
});

test.each([
  ["service.authScheme", "token", "Token"],
  ["service.dialect", "interfaces", "interface"],
  ["exports[0].projects[0]", "Production", "production"],
  ["exports[0].projects[0]", "prodcution", "production"],
  ["exports[0].groupings[2]", "models", "model"],
  ["exports[0].groupings[2]", "modle", "model"],
  ["exports[0].groupings[2]", "tag", "tags"],
  ["exports[0].groupings[2]", "featureset", "feature_set"],
  ["exports[0].groupings[2]", "Accessor", "accessor"],
  ["exports[0].groupings[2]", "non", "none"],
  ["exports[0].checkFeatures", "warning", "warn"],
  ["exports[0].emptyGuard", "confrim", "confirm"],
  ["exports[0].timezone", "Europe/Viena", "Europe/Vienna"],
  ["exports[0].timezone", "Vienna", "Europe/Vienna"],
  ["rotations[0].project", "Lab", "lab"],
  ["rotations[0].retire", "deleted", "delete"],
  ["rotations[0].commentTemplate", "{comment} {ID}", "{id}"],
] as const)("at %s, the value %s is refused, and %s is suggested", (place, typed, meant) => {
  const errors = errorsFor(sampleWith(place, typed));

  expect(errors).toContainEqual(
    expect.stringMatching(new RegExp(`^- ${escaped(place)} .*did you mean "${escaped(meant)}"\\?$`)),
  );
});

test.each(["True", "TRUE", "ture", "treu", "tru", "False", "flase"])(
  "the feature value %j, which the service would take as it is, is refused",
  (typed) => {
    const errors = errorsFor(sampleWith("exports[0].filters[1].features.diarize", typed));

    expect(errors).toEqual([expect.stringMatching(/did you mean (true|false)\?$/)]);
  },
);

test("the message for a misspelt rotation suggests the right name, and does not show the misspelt one", () => {
  expect(errorsFor(sampleWith("projects[2].key.rotation", "lab-kye"))).toEqual([
    expect.stringMatching(/got a string, not shown here; did you mean "lab-key"\?$/),
  ]);
});

test("for a misspelt kind of key or delivery the right one is suggested", () => {
  expect(errorsFor(sampleWith("projects[0].key", { fil: "x" }))).toEqual([
    expect.stringMatching(/did you mean "file"\?$/),
  ]);
  expect(errorsFor(sampleWith("rotations[0].deliver[1]", { comand: ["x"] }))).toEqual([
    expect.stringMatching(/got an object with "comand"; did you mean "command"\?$/),
  ]);
});

test("for an unknown field without a similar one, the existing fields are listed", () => {
  expect(errorsFor(sampleWith("monitor.zzz", 1))).toEqual([
    expect.stringMatching(/unknown field; expected one of "host", "port", "publicUrl", "access"$/),
  ]);
});

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}
