/**
 * Election from consensus. A node that calls an election proposes itself, and the decided node leads. The next election
 * needs a new slot.
 */
import { assemble } from "../../../src/core/assemble.ts";
import type { NodeId, Property, Protocol, World } from "../../../src/core/protocol.ts";
import { type Paxos, type PaxosOptions, paxos } from "../../../src/protocols/consensus/paxos/paxos.ts";
import { ofAReduction, value } from "./deciding.ts";

type Candidates = {
  state: { leader: NodeId | null };
  command: { type: "call" } | { type: "choose"; value: string };
  event: { type: "proposed"; value: string } | { type: "elected"; leader: NodeId };
};

type Elected = readonly NodeId[];

const candidates: Protocol<Candidates> = {
  ...ofAReduction,
  name: "candidates",
  init: () => ({ leader: null }),
  command: {
    call: (_state, _command, ctx) => ctx.emit({ type: "proposed", value: `${ctx.self}` }),
    choose(state, { value: chosen }, ctx) {
      state.leader = Number(chosen);
      ctx.emit({ type: "elected", leader: state.leader });
    },
  },
  shapes: { command: { call: {}, choose: { value } } },
  properties: [
    {
      name: "E1 safety",
      claim: "no two nodes have different leaders, crashed ones included",
      when: "always",
      history: {
        empty: [] as Elected,
        after: (before: Elected, event: Candidates["event"]): Elected =>
          event.type === "elected" && !before.includes(event.leader) ? [...before, event.leader] : before,
      },
      holds: ({ nodes, history }: World<Candidates["state"]>) =>
        new Set(nodes.flatMap((node) => history<Elected>(node))).size <= 1,
    },
  ] as Property<Candidates>[],
};

export const electionFromConsensus = (options: Partial<PaxosOptions> = {}) =>
  assemble<{ election: Candidates; consensus: Paxos }>(
    "election-from-consensus",
    { election: candidates, consensus: paxos(options) },
    {
      election: { proposed: (event, give) => give("consensus", { type: "propose", value: event.value }) },
      consensus: { decided: (event, give) => give("election", { type: "choose", value: event.value }) },
    },
    { face: "election" },
  );
