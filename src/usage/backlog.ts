// Limits how many requests of a process wait for the service, and how many rows wait in its memory for the database. Decides which request is
// next, so that a project whose key is limited or paused leaves room for the others.

/** So many rows fill two transactions of the answer writer, and take little memory. */
const BACKLOG_ROWS_MAX = 10_000;

/** Whose room in the backlog a request takes: that of a key. */
export type Owner = {
  readonly id: string;
  /** How many of its requests may wait for the service at once. */
  readonly roomMax: number;
  /** While it is paused none of its requests start, and those that wait for the service take no room. */
  readonly isPaused: () => boolean;
};

export type BacklogEntry = {
  /** To be called when the request no longer waits for the service. */
  readonly answered: () => void;
  /** To be called when another request may be made in place of this one. It counts as answered, too. */
  readonly leave: () => void;
};

type Admission<Request> = {
  readonly ownerOf: (request: Request) => Owner;
  /** Called for each request when there is room for it. */
  readonly start: (request: Request, entry: BacklogEntry) => void;
  /**
   * Called once if only requests are left whose owners have no room, so that other requests may be admitted beside them. `runs` is how many
   * runs of the process are like that, this one included.
   */
  readonly onOnlyHeldBack?: ((runs: number) => void) | undefined;
  /** Asked whenever there is room. Then no further request is started. */
  readonly isOver: () => boolean;
};

export type Backlog = {
  /** Starts the requests in their order, passing over those whose owners have no room until they have. Resolves when all were started. */
  readonly admit: <Request>(requests: readonly Request[], admission: Admission<Request>) => Promise<void>;
  /** Resolves when another request may be made. */
  readonly untilRoom: () => Promise<void>;
  /** Resolves when no request waits for the service, or soon after `over` is aborted. */
  readonly untilIdle: (over: AbortSignal) => Promise<void>;
  /** Counts the rows as waiting until `work` has ended. */
  readonly countDuring: <T>(rows: number, work: () => Promise<T>) => Promise<T>;
};

/** How often it is looked at again whether there is room: the begin and the end of a pause are not reported. */
const RECHECK_MS = 250;

/** At most `requestsMax` requests have started and not left at the same time, beside those whose owners are paused. */
export function openBacklog(requestsMax: number): Backlog {
  let requests = 0;
  let unanswered = 0;
  let rowsHeld = 0;
  let changed = Promise.withResolvers<void>();
  const unansweredOf = new Map<string, { readonly owner: Owner; count: number }>();
  let heldBackRuns = 0;

  function reportChange(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }

  const isFull = () =>
    rowsHeld > BACKLOG_ROWS_MAX || (requests >= requestsMax && requests - waitingForPauses() >= requestsMax);
  const hasRoom = ({ id, roomMax, isPaused }: Owner) => !isPaused() && (unansweredOf.get(id)?.count ?? 0) < roomMax;

  function waitingForPauses(): number {
    let waiting = 0;
    for (const { owner, count } of unansweredOf.values()) if (owner.isPaused()) waiting += count;
    return waiting;
  }

  function enter(owner: Owner): BacklogEntry {
    requests++;
    unanswered++;
    const ofOwner = unansweredOf.get(owner.id) ?? { owner, count: 0 };
    ofOwner.count++;
    unansweredOf.set(owner.id, ofOwner);
    const answered = once(() => {
      unanswered--;
      if (--ofOwner.count === 0) unansweredOf.delete(owner.id);
      reportChange();
    });
    const leave = once(() => {
      requests--;
      answered();
      reportChange();
    });
    return { answered, leave };
  }

  async function untilRecheck(): Promise<void> {
    const timer = setTimeout(reportChange, RECHECK_MS);
    await changed.promise;
    clearTimeout(timer);
  }

  async function admit<Request>(all: readonly Request[], admission: Admission<Request>): Promise<void> {
    const line = openLine(all, admission.ownerOf, hasRoom);
    let isHeldBack = false;
    try {
      for (;;) {
        while (isFull()) await untilRecheck();
        if (admission.isOver()) return;
        const next = line.next();
        if (next) {
          admission.start(next.request, enter(next.owner));
        } else if (!line.isHeldBack()) {
          return;
        } else {
          if (!isHeldBack) admission.onOnlyHeldBack?.(++heldBackRuns);
          isHeldBack = true;
          // At once, so that a process gets through many such runs before it is offered the first of them again.
          if (admission.isOver()) return;
          await untilRecheck();
        }
      }
    } finally {
      if (isHeldBack) heldBackRuns--;
    }
  }

  return {
    admit,
    async untilRoom() {
      while (isFull()) await untilRecheck();
    },
    async untilIdle(over) {
      while (unanswered > 0 && !over.aborted) await changed.promise;
    },
    async countDuring(rows, work) {
      rowsHeld += rows;
      try {
        return await work();
      } finally {
        rowsHeld -= rows;
        reportChange();
      }
    },
  };
}

type HeldBack<Request> = { readonly owner: Owner; readonly requests: Request[]; position: number };

/** The requests of a run that were not started yet. */
function openLine<Request>(
  all: readonly Request[],
  ownerOf: (request: Request) => Owner,
  hasRoom: (owner: Owner) => boolean,
) {
  const heldBack = new Map<string, HeldBack<Request>>();
  let position = 0;

  function nextHeldBack() {
    for (const [id, held] of heldBack) {
      if (!hasRoom(held.owner)) continue;
      const request = held.requests[held.position++];
      if (held.position === held.requests.length) heldBack.delete(id);
      if (request !== undefined) return { request, owner: held.owner };
    }
    return undefined;
  }

  return {
    isHeldBack: () => heldBack.size > 0,
    /** The first request whose owner has room. Those before it are held back. */
    next(): { readonly request: Request; readonly owner: Owner } | undefined {
      const before = nextHeldBack();
      if (before) return before;
      for (let request = all[position]; request !== undefined; request = all[position]) {
        position++;
        const owner = ownerOf(request);
        const held = heldBack.get(owner.id);
        if (!held && hasRoom(owner)) return { request, owner };
        if (held) held.requests.push(request);
        else heldBack.set(owner.id, { owner, requests: [request], position: 0 });
      }
      return undefined;
    },
  };
}

function once(change: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    change();
  };
}
