// Whose room in the backlog a request takes, and how much: so that one key or project leaves room for the others.

import type { Owner } from "../usage/backlog.ts";
import type { Project } from "../usage/series.ts";
import type { ServiceContext } from "./export-context.ts";

type OwnerContext = Pick<ServiceContext, "keys"> & {
  readonly config: {
    readonly service: { readonly maxConcurrent: number };
    readonly projects: readonly unknown[];
  };
  readonly service: Pick<ServiceContext["service"], "isPaused">;
};

/**
 * A key with limits has one request more than may call at once, so that the next one is ready. Of several projects, each leaves one call at
 * least to the others, as long as there are others that ask.
 */
export function openOwners({ config, keys, service }: OwnerContext): (project: Project) => Owner {
  const { maxConcurrent } = config.service;
  const ofProject = config.projects.length > 1 ? Math.max(maxConcurrent - 1, 1) : Number.POSITIVE_INFINITY;
  const owners = new Map<string, Owner>();

  function newOwner(project: Project): Owner {
    const key = keys.limitOfProject(project);
    const most = (isAlone: boolean) => (isAlone ? Number.POSITIVE_INFINITY : ofProject);
    if (!key) return { id: project.id, roomMax: most, isPaused: () => false };
    const isLimited = key.requestsPerSecond !== undefined || key.maxConcurrent !== undefined;
    const ofKey = Math.min(key.maxConcurrent ?? maxConcurrent, maxConcurrent) + 1;
    return {
      id: isLimited ? key.name : project.id,
      roomMax: (isAlone) => (isLimited ? Math.min(ofKey, most(isAlone)) : most(isAlone)),
      isPaused: () => service.isPaused(key),
    };
  }

  return (project) => {
    const owner = owners.get(project.id) ?? newOwner(project);
    owners.set(project.id, owner);
    return owner;
  };
}
