// A folder for the files of a test, or of a test file, which is removed after it.

import fs from "node:fs";
import os from "node:os";
import path from "node:path";

/** `after` is `onTestFinished` or `afterAll`. */
export function temporaryFolder(after: (remove: () => void) => void): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "usage-export-test-"));
  after(() => fs.rmSync(folder, { recursive: true }));
  return folder;
}
