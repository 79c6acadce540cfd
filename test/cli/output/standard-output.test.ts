import { expect, test } from "vitest";
import { writeStandardOutput } from "../../../src/cli/output.ts";

async function* broken(): AsyncGenerator<string> {
  yield await Promise.reject(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
}

test("a source whose connection breaks is a failure, though a reader that goes away is none", async () => {
  await expect(writeStandardOutput(broken(), new AbortController().signal)).rejects.toThrow("write EPIPE");
});
