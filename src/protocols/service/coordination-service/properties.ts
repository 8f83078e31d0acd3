/** The service's properties, which cover all members and include events from crashed members. */

import type { NodeId, Property, World } from "../../../core/protocol.ts";
import type { Raft } from "../../consensus/raft/raft.ts";
import { entriesOf } from "../keyspace/table.ts";
import { isCertain } from "./lease.ts";
import type { Replica } from "./replica.ts";
import type { MemberSession } from "./session-vocabulary.ts";

type States = { session: MemberSession["state"]; replica: Replica["state"]; log: Raft["state"] };
type Emitted = { type: string; body: Record<string, unknown> & { type: string } };

/**
 * The number of recent entries or changes remembered per node. Nodes that are not far apart have some of them in
 * common.
 */
const REMEMBERED = 32;

/** Values that a node has emitted, by name. For example, the digest at a log index. */
type Known = readonly { readonly name: string; readonly value: string }[];

/** Returns whether all nodes emitted the same value under the same name. A restarted node may emit values again. */
function areAlike({ nodes, history }: World<States>): boolean {
  const values = new Map<string, string>();
  for (const node of nodes)
    for (const { name, value } of history<Known>(node)) {
      if ((values.get(name) ?? value) !== value) return false;
      values.set(name, value);
    }
  return true;
}

function withKnown(before: Known, name: string, value: string): Known {
  if (before.some((known) => known.name === name && known.value === value)) return before;
  return [...before, { name, value }].slice(-REMEMBERED);
}

const agreement = {
  name: "agreement",
  claim: "all replicas, including replicas of crashed nodes, apply the same commands to the same data",
  when: "always",
  history: {
    empty: [] as Known,
    after: (before: Known, { type, body }: Emitted): Known =>
      type === "replica" && body.type === "applied"
        ? withKnown(before, String(body.index), String(body.digest))
        : before,
  },
  holds: areAlike,
} as const;

/** A grant that a member may rely on, because the lease is confirmed and the member has not requested a release. */
interface Relied {
  readonly name: string;
  readonly token: number;
  readonly permits: number;
  readonly capacity: number;
}

function relied({ session, replica }: States): Relied[] {
  if (!isCertain(session)) return [];
  return [...entriesOf(replica.data.locks)].flatMap(([name, { holders, capacity }]) =>
    holders
      .filter((holder) => holder.session === session.session && !isGivenUp(session, holder.token))
      .map(({ token, permits }) => ({ name, token, permits, capacity })),
  );
}

const isGivenUp = ({ pending }: States["session"], token: number): boolean =>
  pending.some(({ operation }) => (JSON.parse(operation) as { token?: number }).token === token);

const noLockHeldTwice = {
  name: "no lock held twice",
  claim: "the permits of a lock that members hold under valid leases never exceed its capacity",
  when: "always",
  holds({ alive, state }: World<States>): boolean {
    const used = new Map<string, number>();
    for (const node of alive)
      for (const { name, permits, capacity } of relied(state(node))) {
        const sum = (used.get(name) ?? 0) + permits;
        if (sum > capacity) return false;
        used.set(name, sum);
      }
    return true;
  },
} as const;

const watchesAgree = {
  name: "watches agree",
  claim: "all members, including crashed ones, see the same changes at each revision",
  when: "always",
  history: {
    empty: [] as Known,
    after: (before: Known, { type, body }: Emitted): Known =>
      type === "replica" && body.type === "keysChanged" && (body.events as []).length > 0
        ? withKnown(before, String(body.revision), JSON.stringify(body.events))
        : before,
  },
  holds: areAlike,
} as const;

const tokensOnce = {
  name: "tokens are unique",
  claim: "no two grants had the same token, including grants to crashed nodes",
  when: "always",
  history: {
    empty: [] as Known,
    after: (before: Known, { type, body }: Emitted): Known =>
      type === "replica" && body.type === "granted"
        ? withKnown(before, String(body.token), JSON.stringify([body.name, body.session, body.wait]))
        : before,
  },
  holds: areAlike,
} as const;

const termination = {
  name: "termination",
  claim: "every request from a member is eventually answered",
  when: "leadsTo",
  given: ({ state }: World<States>, node: NodeId): boolean => isWaiting(state(node)),
  holds: ({ state }: World<States>, node: NodeId): boolean => !isWaiting(state(node)),
} as const;

const isWaiting = ({ session }: States): boolean =>
  session.pending.some(({ request }) => request !== null) || session.unresolved.length > 0;

export const serviceProperties = [
  agreement,
  noLockHeldTwice,
  watchesAgree,
  tokensOnce,
  termination,
] as unknown as readonly Property<never>[];
