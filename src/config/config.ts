// The configuration as the program uses it: checked, references resolved, defaults filled in.

import type { RotationJob } from "../keys/policy.ts";
import type { ExportJob } from "../usage/plan.ts";
import { type Fault, faultsError } from "./fault.ts";
import { defaultExpectation, faultsOf } from "./issues.ts";
import { type JsonDocument, parseJson } from "./json.ts";
import { outlineOf } from "./outline.ts";
import { placeholderFaults, referenceFaults } from "./references.ts";
import { resolveConfig } from "./resolve.ts";
import { Shape } from "./shape.ts";

export type Config = {
  readonly service: ServiceConfig;
  readonly projects: readonly ProjectConfig[];
  readonly exports: readonly ExportJob[];
  readonly rotations: readonly RotationConfig[];
  readonly runs: { readonly keepDays: number };
  readonly worker: { readonly drainSeconds: number };
  readonly monitor: MonitorConfig;
  readonly notify: NotifyConfig;
};

export type ServiceConfig = {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly authScheme: "Token" | "Bearer" | "none";
  readonly dialect: "auto" | "interface" | "2026";
  readonly requestsPerSecond: number;
  readonly maxConcurrent: number;
  readonly timeoutSeconds: number;
};

/** `createWith` is the key that creates and deletes the rotation's keys; left out, the project's own key does. */
export type RotationConfig = RotationJob & { readonly createWith?: KeyReference };

export type ProjectConfig = { readonly id: string; readonly name: string; readonly key: KeyReference };

export type MonitorConfig = {
  readonly host: string;
  readonly port: number;
  /** Ends with a slash. */
  readonly publicUrl?: string;
  readonly access?: AccessReference;
};

/** What the monitor asks for. */
export type AccessReference =
  | { readonly kind: "bearer"; readonly token: SecretReference }
  | { readonly kind: "basic"; readonly username: string; readonly password: SecretReference };

/** Both are addresses, and secrets. */
export type NotifyConfig = { readonly webhook?: SecretReference; readonly deadMan?: SecretReference };

/** A secret that is found without the database. File paths are absolute. */
export type SecretReference =
  | { readonly kind: "env"; readonly name: string }
  | { readonly kind: "file"; readonly path: string };

export type KeyReference =
  | SecretReference
  | {
      readonly kind: "rotation";
      readonly rotation: string;
      /** The key to use until the rotation has made one. */
      readonly first: SecretReference;
    };

export type ParseOptions = {
  readonly source: string;
  readonly baseDir: string;
  /** The program's own files and folders (absolute paths), and what each of them is. No key may be delivered there. */
  readonly ownPaths?: Readonly<Record<string, string>>;
  /** Accepts the placeholder project of the packaged example, because only the emulator is asked for it. */
  readonly isExample?: boolean;
};

/**
 * `source` names the text in messages; relative paths start at `baseDir`. Throws one AppError that names every fault, each
 * with its place.
 */
export function parseConfig(text: string, options: ParseOptions): Config {
  const document = parseJson(text, options.source);
  const parsed = Shape.safeParse(document.value, { error: defaultExpectation, reportInput: true });
  const outline = outlineOf(document.value);
  const faults = [
    ...repeatFaults(document),
    ...(parsed.success ? [] : faultsOf(parsed.error.issues)),
    ...referenceFaults(outline, options.baseDir, options.ownPaths),
    ...(options.isExample ? [] : placeholderFaults(outline)),
  ];
  if (!parsed.success || faults.length > 0) throw faultsError(options.source, faults, document.positionOf);
  return resolveConfig(parsed.data, options.baseDir);
}

function repeatFaults({ repeats }: JsonDocument): Fault[] {
  return repeats.map(({ path, firstLine }) => ({
    path,
    message: `stands here again, first in line ${firstLine}, and only the last would count; remove one of them`,
  }));
}
