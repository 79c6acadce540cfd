import { expect, test } from "vitest";
import { holdsScope, makesSelfHosted } from "../../src/keys/scopes.ts";

const API = "self-hosted:product:api";
const ENGINE = "self-hosted:product:engine";
const MEMBER = ["project:read", "project:write", "keys:read", "keys:write", "usage:read", "usage:write"];

test.each<readonly [asked: readonly string[], granted: readonly string[], missing: readonly string[]]>([
  [[], [], []],
  [["usage:read"], [], ["usage:read"]],
  [["usage:read", "keys:write"], ["keys:write", "keys:read", "usage:read"], []],
  [["usage:read", "keys:write"], ["keys:read", "keys:write"], ["usage:read"]],
  [["self-hosted:products"], [API, ENGINE], []],
  [["self-hosted:products"], ["self-hosted:products"], []],
  [["self-hosted:products"], [API], ["self-hosted:products"]],
  [["member", "self-hosted:products"], ["member", API, ENGINE], []],
  [["member", "self-hosted:products"], [API, ENGINE], ["member"]],
  [["member"], MEMBER, []],
  [["member"], MEMBER.slice(1), ["member"]],
  [["member"], ["owner"], []],
  [["admin"], ["member"], ["admin"]],
  [["keys:write"], ["member"], []],
  [["members:write"], ["admin"], []],
  [["billing:write"], ["admin"], ["billing:write"]],
  [["a-role-of-tomorrow"], ["a-role-of-tomorrow"], []],
  [["a-role-of-tomorrow"], ["member"], ["a-role-of-tomorrow"]],
  [["keys:write"], ["member-of-tomorrow"], ["keys:write"]],
  [["billing:read"], ["member"], ["billing:read"]],
  [["billing:read"], ["admin"], []],
  [["anything:at-all"], ["owner"], []],
  [[API], ["self-hosted:products"], []],
])("of the requested scopes %j, with %j granted, %j are missing", (asked, granted, missing) => {
  expect(asked.filter((scope) => !holdsScope(granted, scope))).toEqual(missing);
});

test.each<readonly [asked: readonly string[], selfHosted: boolean]>([
  [["member"], false],
  [["self-hosted:products"], true],
  [[API, ENGINE], true],
  [["member", "self-hosted:products"], true],
  [["self-hosted:something"], false],
])("%j asks for a self-hosted key: %s", (asked, selfHosted) => {
  expect(makesSelfHosted(asked)).toBe(selfHosted);
});
