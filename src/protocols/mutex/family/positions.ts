/** The positions of nodes in mutual exclusion algorithms: tokens, votes and waiting requests. */
import { positioned, present } from "../../presentation.ts";
import type { CentralServer } from "../central-server.ts";
import type { LockService } from "../elected-server/server.ts";
import type { EpochTokenRing } from "../epoch-token-ring/epoch-token-ring.ts";
import type { Maekawa } from "../maekawa.ts";
import type { MaekawaSanders } from "../maekawa-sanders/maekawa-sanders.ts";
import type { Raymond } from "../raymond.ts";
import type { RicartAgrawala } from "../ricart-agrawala/ricart-agrawala.ts";
import type { SuzukiKasami } from "../suzuki-kasami.ts";
import type { TokenRing } from "../token-ring.ts";

const tokenIf = (isHere: boolean): string | null => (isHere ? "token" : null);

export const onTokenRing = positioned<TokenRing["state"] | EpochTokenRing["state"]>(({ token }) =>
  present({ holds: tokenIf(token !== null) }),
);

export const inVotingSets = positioned<Maekawa["state"]>(({ voters, votedFor, queue }) =>
  present({ votingSet: voters, grantedTo: votedFor, queue }),
);

export const inVotingSetsWithTimes = positioned<MaekawaSanders["state"]>(({ voters, ballot }) =>
  present({ votingSet: voters, grantedTo: ballot.candidate?.node, queue: ballot.queue.map(({ node }) => node) }),
);

export const onTree = positioned<Raymond["state"]>(({ holder, queue, section }, node) =>
  present({
    holds: holder === node ? "privilege" : null,
    towards: holder,
    // The queue of a node that is inside or waiting contains the node itself.
    queue: queue.filter((each) => each !== node),
    waitsFor: section === "wanted" && holder !== node ? [holder] : null,
  }),
);

export const atServer = positioned<CentralServer["state"]>(({ server, service }) =>
  present({ towards: server, grantedTo: service?.holder, queue: service?.queue }),
);

export const atElectedServer = positioned<LockService["state"]>(({ server, service }) =>
  present({ towards: server, grantedTo: service?.holder?.node, queue: service?.queue.map(({ node }) => node) }),
);

/** Positions for algorithms that queue requests by deferring replies. */
export const byReplies = positioned<RicartAgrawala["state"]>(({ deferred }) => present({ queue: deferred }));

export const byPrivilege = positioned<SuzukiKasami["state"]>(({ privilege }) =>
  present({ holds: privilege === null ? null : "privilege", queue: privilege?.queue }),
);
