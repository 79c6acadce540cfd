// Whose room in the backlog a request takes, and how much: so that one key leaves room for the others.

import type { Owner } from "../usage/backlog.ts";
import type { Project } from "../usage/series.ts";
import type { ServiceContext } from "./export-context.ts";

type OwnerContext = Pick<ServiceContext, "keys"> & {
  readonly config: {
    readonly service: { readonly maxConcurrent: number };
  };
  readonly service: Pick<ServiceContext["service"], "isPaused">;
};

/** A key with limits has one request more than may call at once, so that the next one is ready. */
export function openOwners({ config, keys, service }: OwnerContext): (project: Project) => Owner {
  const { maxConcurrent } = config.service;
  const owners = new Map<string, Owner>();

  function newOwner(project: Project): Owner {
    const key = keys.limitOfProject(project);
    if (!key) return { id: project.id, roomMax: Number.POSITIVE_INFINITY, isPaused: () => false };
    const isLimited = key.requestsPerSecond !== undefined || key.maxConcurrent !== undefined;
    const ofKey = Math.min(key.maxConcurrent ?? maxConcurrent, maxConcurrent) + 1;
    return {
      id: key.name,
      roomMax: isLimited ? ofKey : Number.POSITIVE_INFINITY,
      isPaused: () => service.isPaused(key),
    };
  }

  return (project) => {
    const owner = owners.get(project.id) ?? newOwner(project);
    owners.set(project.id, owner);
    return owner;
  };
}
