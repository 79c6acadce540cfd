// Whose room in the backlog a request takes, and how much: so that one project leaves room for the others.

import type { Owner } from "../usage/backlog.ts";
import type { Project } from "../usage/series.ts";
import type { ServiceContext } from "./export-context.ts";

/** If there are others, a project has one request more than may call at once, so that the next one is ready. */
export function openOwners({
  config,
  keys,
  service,
}: Pick<ServiceContext, "config" | "keys" | "service">): (project: Project) => Owner {
  const roomMax = config.projects.length > 1 ? config.service.maxConcurrent + 1 : Number.POSITIVE_INFINITY;
  return (project) => {
    const key = keys.nameOf(project);
    return { id: project.id, roomMax, isPaused: () => key !== undefined && service.isPaused(key) };
  };
}
