import { expect, test } from "vitest";
import { writeStandardOutput } from "../../../src/cli/output.ts";

async function* broken(): AsyncGenerator<string> {
  yield await Promise.reject(Object.assign(new Error("write EPIPE"), { code: "EPIPE" }));
}

test("EPIPE from the source is thrown, unlike EPIPE from standard output", async () => {
  await expect(writeStandardOutput(broken(), new AbortController().signal)).rejects.toThrow("write EPIPE");
});
