/** What the nodes of an epoch token ring know and send, and what is claimed of them; what they do is in `epoch-token-ring.ts`. */
import type { NodeId, Property, Protocol } from "../../../core/protocol.ts";
import { list, natural, nullable } from "../../../core/shape.ts";
import type { LeaseTimer } from "../../leases.ts";
import { eachOnce, grantedTokens } from "../family/fencing-tokens.ts";
import { mutexProperties, type Section } from "../family/properties.ts";

export type EpochTokenRing = {
  state: {
    section: Section;
    /** The others, clockwise from here. */
    successors: NodeId[];
    /** Tokens and renewals of lower epochs are dropped. */
    epoch: number;
    /** The highest epoch that this node has promised, to which node, or has seen. Journalled. */
    promised: number;
    promisedTo: NodeId | null;
    token: Token | null;
    /** How often the token had been passed on when it was here last: a copy of a message is dropped. */
    hops: number;
    watch: Watch;
    /** The timer until whose end this node is certain of its token. */
    certain: LeaseTimer | null;
    /** What will make it certain for longer. */
    round: Round | null;
    /** Rounds asked for the entry that this node waits for or is in. */
    rounds: number;
    /** Who is alive after all: it gets the token again. Ascending. */
    heard: NodeId[];
    /** By a failure detector, where there is one. Ascending. */
    suspected: NodeId[];
  };
  message:
    | ({ type: "token"; epoch: number; hops: number } & Token)
    /** May I make the token of this epoch? */
    | { type: "requestVote"; epoch: number }
    | { type: "voteGranted"; epoch: number }
    /** No: either the token has been seen, or an epoch that high has been promised to another. */
    | { type: "voteRefused"; promised: number }
    /** The holder asks whether its token counts. */
    | { type: "renew"; token: number; round: number }
    | { type: "confirm"; token: number; round: number };
  timer: "pass" | "watch" | "renew" | LeaseTimer;
  /** `enter` counts when released, `exit` when held; while waiting it takes the request back. */
  command: { type: "enter" } | { type: "exit" } | { type: "suspect"; node: NodeId } | { type: "restore"; node: NodeId };
  event:
    | { type: "entered"; token: number }
    | { type: "exited" }
    /** It is certain until the deadline. */
    | { type: "confirmed"; token: number }
    /** Somebody else may be inside from now on. */
    | { type: "lost"; token: number };
  record: { type: "promised"; epoch: number; to: NodeId | null };
};

export interface Token {
  /** How many entries there have been in this epoch. */
  entries: number;
  /** Who is passed over: it did not answer when the token was made. Ascending. */
  skipped: NodeId[];
  /** Who has had it, the latest last, each once. */
  lap: NodeId[];
}

/** Has seen the token lately, or voted for one; misses it; asks for votes to make it, which some have refused. */
type Watch = { is: "guarding" } | { is: "missing" } | { is: "requestingVotes"; votes: NodeId[]; beyond: number };

/** `number` 0: a lap of the token, or a vote. */
interface Round {
  by: LeaseTimer;
  number: number;
  confirmed: NodeId[];
}

const isEachOnce = eachOnce();

const properties: readonly Property<EpochTokenRing>[] = [
  ...mutexProperties<EpochTokenRing>(({ section }) => section, ["pass", "watch", "renew"]),
  {
    name: "one token an epoch",
    claim:
      "no two nodes have a token of the same epoch, and no two entries have had the same number, those of nodes that have crashed since among them",
    when: "always",
    history: grantedTokens,
    holds(world) {
      const { alive, state } = world;
      const epochs = alive.filter((node) => state(node).token !== null).map((node) => state(node).epoch);
      return new Set(epochs).size === epochs.length && isEachOnce(world);
    },
  },
];

const members = list(natural, 10_000);

export const declarations: Pick<
  Protocol<EpochTokenRing>,
  "shapes" | "source" | "assumes" | "properties" | "costs" | "view"
> = {
  shapes: {
    message: {
      token: { epoch: natural, hops: natural, entries: natural, skipped: members, lap: members },
      requestVote: { epoch: natural },
      voteGranted: { epoch: natural },
      voteRefused: { promised: natural },
      renew: { token: natural, round: natural },
      confirm: { token: natural, round: natural },
    },
    command: { enter: {}, exit: {}, suspect: { node: natural }, restore: { node: natural } },
    record: { promised: { epoch: natural, to: nullable(natural) } },
  },
  source: "Le Lann, IFIP 1977; Gray & Cheriton, SOSP 1989",
  assumes: [
    "journals are kept",
    "nothing that was sent to a process reaches its next run",
    "for ME1: clocks whose speeds are right to within the drift",
    "for ME2: a majority up and connected, and messages faster than leases, in the end",
  ],
  properties,
  costs: [
    { when: "one round of the token", messages: (nodes) => (nodes === 1 ? 0 : nodes) },
    { when: "a new token, or an entry after a slow round", messages: (nodes) => 2 * (nodes - 1) },
  ],
  view: ({ section, token, epoch }) => ({ role: token === null ? section : `${section}, with the token`, term: epoch }),
};
