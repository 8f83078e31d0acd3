/** What the nodes of an elected server know, say and promise; what they do is in `lock-service.ts` and `server.ts`. */
import type { NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { natural, real, struct } from "../../../core/shape.ts";
import type { LeaseTimer } from "../../leases.ts";
import { eachOnce, grantedTokens } from "../family/fencing-tokens.ts";
import { mutexProperties, type Section } from "../family/properties.ts";

export type LockService = {
  state: {
    section: Section;
    /** The highest that this node has heard of. */
    epoch: number;
    /** Who serves in it; null while nobody is known to. */
    server: NodeId | null;
    /** The last sending of this node, of a request or a renewal. Its run is journalled. */
    requestId: RequestId;
    /** Whether this run has its number yet. */
    isNumbered: boolean;
    /** Whether it is about to end: it asks for nothing more, and tells each server so without being asked. */
    isDeparting: boolean;
    /** The timers that run: of the last sending, and of the one before. */
    running: LeaseTimer[];
    /** While held: the last round that a server has confirmed. */
    confirmed: number;
    /** Of the last entry in this run; 0 before the first. */
    token: number;
    /** While this node serves. */
    service: Service | null;
  };
  message:
    | { type: "request"; epoch: number; requestId: RequestId }
    | { type: "grant"; epoch: number; token: number; requestId: RequestId }
    | { type: "renew"; epoch: number; token: number; requestId: RequestId }
    | { type: "renewed"; token: number; requestId: RequestId }
    | { type: "release"; epoch: number; token: number }
    /** Takes a request back. */
    | { type: "withdraw"; epoch: number; requestId: RequestId }
    /** Who holds a permission that an earlier server has granted? Answered by a renewal, a request, or `empty`. */
    | { type: "recall"; epoch: number }
    | { type: "empty"; epoch: number };
  timer: /** Asks again, or renews. */
    | "renew"
    /** What has been granted is taken back; what others have granted has run out. */
    | "reclaim"
    | "recall"
    | LeaseTimer;
  command: /** Counts when released. */
    | { type: "enter" }
    /** While waiting it takes the request back. */
    | { type: "exit" }
    | { type: "elected"; leader: NodeId; epoch: number }
    | { type: "deposed"; epoch: number }
    /** A node that waits and is suspected loses its place in the queue. If it is alive, it asks again. */
    | { type: "suspect"; node: NodeId }
    /**
     * Right after `elected`, where this node has served in that epoch for so long already: this lock it had put away, or never had.
     * Whatever it granted then has been given back, and no token of it is above this one.
     */
    | { type: "resume"; token: number; servedMs: number }
    /** This node is about to end, in order: nobody need wait for it. */
    | { type: "depart" };
  event: /** The token grows with every grant, over all servers. */
    | { type: "entered"; token: number }
    | { type: "exited" }
    /** Certain to be the only one inside until the deadline. */
    | { type: "confirmed"; token: number }
    /** Somebody else may be inside from now on. */
    | { type: "lost"; token: number }
    /** The tokens of this epoch are used up: only another can grant more. */
    | { type: "exhausted"; epoch: number };
  record: { type: "run"; run: number };
};

/** Names one sending: the node's runs are counted, in a run its requests, and all that it sends for them. */
export interface RequestId {
  run: number;
  request: number;
  round: number;
}

/** What a server keeps. */
export interface Service {
  /** How many permissions it has granted. */
  grants: number;
  /** Who has not said yet what it holds of earlier servers. Ascending; while there is anybody, nothing is granted. */
  awaited: NodeId[];
  /** Whether they have been asked. */
  isRecalling: boolean;
  holder: { node: NodeId; token: number; requestId: RequestId } | null;
  /** Who waits, first come first. */
  queue: { node: NodeId; requestId: RequestId }[];
}

const requestId = struct<RequestId>({ run: natural, request: natural, round: natural });

const properties: readonly Property<LockService>[] = [
  ...mutexProperties<LockService>(({ section }) => section, ["renew", "reclaim", "recall"]),
  {
    name: "tokens are unique",
    claim: "no two entries have had the same token, those of nodes that have crashed since among them",
    when: "always",
    history: grantedTokens,
    holds: eachOnce(),
  },
];

export const declarations: Pick<
  Protocol<LockService>,
  "shapes" | "source" | "assumes" | "properties" | "costs" | "view"
> = {
  shapes: {
    message: {
      request: { epoch: natural, requestId },
      grant: { epoch: natural, token: natural, requestId },
      renew: { epoch: natural, token: natural, requestId },
      renewed: { token: natural, requestId },
      release: { epoch: natural, token: natural },
      withdraw: { epoch: natural, requestId },
      recall: { epoch: natural },
      empty: { epoch: natural },
    },
    command: {
      enter: {},
      exit: {},
      elected: { leader: natural, epoch: natural },
      deposed: { epoch: natural },
      suspect: { node: natural },
      resume: { token: natural, servedMs: real },
      depart: {},
    },
    record: { run: { run: natural } },
  },
  source: "Coulouris et al. §15.2; Gray & Cheriton, SOSP 1989",
  assumes: [
    "journals are kept",
    "a majority alive and connected in the end, for ME2",
    "clocks whose speeds are right to within the drift, and nodes that are not paused, for ME1",
  ],
  properties,
  costs: [{ when: "one entry and exit of a node that does not serve, within renewMs", messages: () => 3 }],
  view: ({ section, server, service, epoch }) => ({
    role: service === null ? section : `${section}, serving`,
    leader: server,
    term: epoch,
  }),
};
