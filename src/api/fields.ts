// Reads which features the service knows for a project: GET /v1/projects/{id}/usage/fields.

import { z } from "zod";
import type { Secret } from "../secret.ts";
import type { Service } from "./http.ts";
import { isStatus, parseShape } from "./shape.ts";

/** Every member may be missing. */
const Fields = z.object({ features: z.array(z.string()).nullish() });

/** Undefined where the service has no such list. No dates are sent: that is the widest answer. */
export async function fetchFields(
  service: Service,
  projectId: string,
  key: Secret,
  signal: AbortSignal,
): Promise<{ readonly features: readonly string[] | undefined } | undefined> {
  const path = ["v1", "projects", projectId, "usage", "fields"];
  try {
    const answer = await service.call(
      { method: "GET", path, retry: true, scopes: ["project:read", "usage:read"] },
      key,
      signal,
    );
    return { features: parseShape(Fields, answer, "fields of the project").features ?? undefined };
  } catch (error) {
    if (isStatus(error, [404])) return undefined;
    throw error;
  }
}
