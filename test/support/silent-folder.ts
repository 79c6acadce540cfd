// A folder whose file system never answers, like a network share whose server is gone.

import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";

/** Mounts a FUSE device that nobody serves over the folder, until the result is disposed of. Undefined without root or /dev/fuse. */
export function silenceFolder(folder: string): Disposable | undefined {
  const device = openDevice();
  if (device === undefined) return undefined;
  const options = "fd=3,rootmode=40000,user_id=0,group_id=0";
  const mounted = spawnSync("mount", ["-i", "-t", "fuse", "-o", options, "none", folder], {
    stdio: ["ignore", "ignore", "ignore", device],
  });
  if (mounted.status !== 0) {
    closeSync(device);
    return undefined;
  }
  return {
    [Symbol.dispose]() {
      closeSync(device);
      spawnSync("umount", ["-l", folder]);
    },
  };
}

function openDevice(): number | undefined {
  try {
    return openSync("/dev/fuse", "r+");
  } catch {
    return undefined;
  }
}
