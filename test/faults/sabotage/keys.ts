// Sabotages of creating, storing and delivering keys.

import type { Sabotage } from "./sabotage.ts";

export const KEYS: readonly Sabotage[] = [
  {
    name: "a create is sent before its intent is recorded",
    file: "src/keys/rotate.ts",
    replace: `  await deps.ledger.write({ kind: "intent", intentId, comment }, reason);
  await deps.ledger.confirmLease();
  let created: NewKey;
  try {
    created = await deps.create(comment, caller);`,
    by: `  await deps.ledger.confirmLease();
  let created: NewKey;
  try {
    created = await deps.create(comment, caller);
    await deps.ledger.write({ kind: "intent", intentId, comment }, reason);`,
    caughtBy: ["test/keys/run-step.test.ts", "the create is sent after its intent is recorded"],
  },
  {
    name: "a key that may have been made is forgotten",
    file: "src/keys/rotate.ts",
    replace: `isCertainlyNotCreated ? "not-created" : "orphan"`,
    by: `isCertainlyNotCreated ? "orphan" : "not-created"`,
    caughtBy: ["test/keys/run-step.test.ts", "a create without an answer leaves an orphan"],
  },
  {
    name: "a key becomes active before it was verified",
    file: "src/keys/plan.ts",
    replace: `if (key.step === "stored") {`,
    by: `if (key.step === "stored" && ledger.failedAttempts > 0) {`,
    caughtBy: ["test/keys/plan-next.test.ts", "if a pending key is stored, the next step is"],
  },
  {
    name: "a key becomes active before every sink has it",
    file: "src/keys/plan.ts",
    replace: "const sinks = missingSinks(job, key);",
    by: "const sinks = key.deliveredTo.length === 0 ? missingSinks(job, key) : [];",
    caughtBy: ["test/keys/plan-next.test.ts", "if a pending key works and one of two sinks has it"],
  },
  {
    name: "a replaced key is due for removal before its grace period is over",
    file: "src/keys/plan.ts",
    replace: "if (replacedMs < job.graceDays * DAY_MS) return [];",
    by: "if (replacedMs < job.graceDays) return [];",
    caughtBy: ["test/keys/plan-cleanup.test.ts", "a replaced key that is 1 ms before the end of its grace period"],
  },
  {
    name: "a key that a sink still has is deleted",
    file: "src/keys/plan.ts",
    replace: `job.retire !== "keep" && !isHeld`,
    by: `job.retire !== "keep"`,
    caughtBy: ["test/keys/plan-cleanup.test.ts", "a replaced key that is due, with retire delete, still in a sink"],
  },
  {
    name: "a key whose use is unknown is deleted for its age",
    file: "src/keys/cleanup.ts",
    replace: `seen === "unknown" && job.retire !== "delete-by-age"`,
    by: `seen === "unknown" && job.retire === "keep"`,
    caughtBy: ["test/cli/rotation/retire.test.ts", "if the breakdown can't be read, no key is deleted for its age"],
  },
  {
    name: "keys are retired by a database's clock that has jumped",
    file: "src/keys/cleanup.ts",
    replace: "if (doubt !== undefined) throw",
    by: "if (doubt?.length === 0) throw",
    caughtBy: ["test/cli/rotation/retire.test.ts", "while the database's clock is ahead of the service's by days"],
  },
  {
    name: "a created key is committed without waiting for the disk",
    file: "src/db/keys/ledger.ts",
    replace: "        await commitDurably(tx);\n",
    by: '        if (changeId === "") await commitDurably(tx);\n',
    caughtBy: ["test/db/keys/ledger.test.ts", "if synchronous_commit is off, an intent, a created key and its secret"],
  },
  {
    name: "a key in use that the service refuses is kept until it is due",
    file: "src/keys/plan.ts",
    replace: "if (refusal !== undefined) return refusal;",
    by: 'if (refusal === "") return refusal;',
    caughtBy: ["test/cli/rotation/inspect.test.ts", "a key in use that the service refuses is replaced at once"],
  },
  {
    name: "a delivered file that is gone is not delivered again",
    file: "src/keys/sinks.ts",
    replace: `code === "ENOENT" || code === "ENOTDIR" ? "is gone"`,
    by: `code === "ENOENT" || code === "ENOTDIR" ? undefined`,
    caughtBy: ["test/cli/rotation/inspect.test.ts", "a delivered file that is gone is reported by status"],
  },
  {
    name: "keys are created without end while none is accepted",
    file: "src/keys/plan.ts",
    replace: "export const FAILED_ATTEMPTS_MAX = 5;",
    by: "export const FAILED_ATTEMPTS_MAX = Number.POSITIVE_INFINITY;",
    caughtBy: ["test/keys/plan.test.ts", "a rotation needs attention from five failed attempts on"],
  },
  {
    name: "a sealed key contains the key in clear text",
    file: "src/keys/seal.ts",
    replace: "api_key_id: apiKeyId })",
    by: "api_key_id: apiKeyId, key: key.reveal() })",
    caughtBy: ["test/keys/seal.test.ts", "sealing a key twice gives two different texts, and neither contains the key"],
  },
  {
    name: "the sealed key of another row is opened as this one's",
    file: "src/keys/seal.ts",
    replace: "if (protectedHeader.api_key_id === apiKeyId)",
    by: "if (protectedHeader.api_key_id !== undefined)",
    caughtBy: ["test/keys/seal.test.ts", "a sealed key in the row of another key does not open"],
  },
  {
    name: "the sealed secret is kept when its key is retired",
    file: "src/db/keys/ledger.ts",
    replace: "sealed: null,",
    by: "",
    caughtBy: ["test/db/keys/ledger.test.ts", "a retired key leaves the ledger, and its secret is not kept"],
  },
  {
    name: "two processes rotate a key at once",
    file: "src/db/keys/lease.ts",
    replace: " and (lease_until is null or lease_until < clock_timestamp())",
    by: "",
    caughtBy: ["test/db/keys/lease.test.ts", "of many processes that take a lease at the same moment one gets it"],
  },
  {
    name: "a process that slept through its lease goes on writing",
    file: "src/db/keys/lease.ts",
    replace: "::bigint for update",
    by: "::bigint or fence > 0 for update",
    caughtBy: ["test/db/keys/lease.test.ts", "a process that slept through its lease does not write verified"],
  },
  {
    name: "a key file is overwritten, not replaced",
    file: "src/keys/sinks.ts",
    replace: `ownFile(target, "next")`,
    by: "target",
    caughtBy: ["test/keys/sink-file.test.ts", "the file is synced before it is renamed, and the folder after that"],
  },
  {
    name: "a key file can be read by others",
    file: "src/keys/sinks.ts",
    replace: "const MODE_FILE = 0o600;",
    by: "const MODE_FILE = 0o640;",
    caughtBy: [
      "test/keys/sink-file.test.ts",
      "the file has the key on one line, only its user may read it, and the folder has no other file",
    ],
  },
  {
    name: "a key file is renamed before it is on the disk",
    file: "src/files.ts",
    replace: "      await handle.sync();\n",
    by: "",
    caughtBy: ["test/keys/sink-file.test.ts", "the file is synced before it is renamed, and the folder after that"],
  },
  {
    name: "the rename of a key file is not on the disk",
    file: "src/keys/sinks.ts",
    replace: "await syncFolder(path.dirname(target));",
    by: "",
    caughtBy: ["test/keys/sink-file.test.ts", "the file is synced before it is renamed, and the folder after that"],
  },
  {
    name: "a command gets the key as an argument",
    file: "src/keys/sinks.ts",
    replace: "await runCommand(command, {",
    by: "await runCommand([...command, key.reveal()], {",
    caughtBy: [
      "test/keys/sink-command.test.ts",
      "the key is neither among the command's arguments nor in its environment",
    ],
  },
  {
    name: "the output of a delivery command is shown without searching it for the key",
    file: "src/keys/sinks.ts",
    replace: "if (!isFreeOfSecret(printable, key.reveal()))",
    by: "if (printable === key.reveal())",
    caughtBy: ["test/keys/sink-command.test.ts", "a key that a command prints is hidden, percent-encoding of all"],
  },
  {
    name: "an answer that may hold a new key is quoted",
    file: "src/service/keys.ts",
    replace: "secretAnswer: true,",
    by: "",
    caughtBy: ["test/service/create-key.test.ts", "nothing is quoted of a 502 that holds the new key, base64"],
  },
];
