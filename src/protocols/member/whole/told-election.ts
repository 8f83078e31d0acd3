/**
 * An election of who serves that is told how it ends, and holds none: any node may serve next, whoever served before, and a server may
 * be deposed at any time, or stay one until it hears of another. So it does all that `epoch-bully` may do, and more: all that a lock
 * can rely on is that an epoch has one server, and that a node's epochs grow, over crashes, too. That is what majorities are for
 * there; here the nodes have the epochs in turn.
 */
import type { Context, NodeId, Protocol } from "../../../core/protocol.ts";
import { natural } from "../../../core/shape.ts";
import { type OptionsOf, optionTable, whole } from "../../options.ts";

export type ToldElection = {
  state: {
    /** The highest epoch that it has heard of. Journalled. */
    promised: number;
    /** Who was elected last, as an instance that begins is told; null once this node is deposed. */
    elected: { leader: NodeId; epoch: number } | null;
    leads: boolean;
    isCandidate: boolean;
    /** How often it may still be elected. */
    left: number;
  };
  message: { type: "coordinator"; epoch: number };
  /** It is elected, or deposed. */
  timer: "turn";
  command: /** Somebody has begun who is to know who serves. */
    | { type: "tell" }
    /** That node has started again, and has heard of nobody. */
    | { type: "hear"; node: NodeId }
    /** As `epoch-bully` has them; nobody here waits for anybody. */
    | { type: "suspect"; node: NodeId }
    | { type: "restore"; node: NodeId }
    | { type: "resign" }
    | { type: "stand" };
  event: { type: "elected"; leader: NodeId; epoch: number } | { type: "deposed"; epoch: number };
  record: { type: "promised"; epoch: number };
};

const electionOptions = optionTable("election", {
  terms: whole(1, "how often each node is elected at most after it starts"),
  turnMs: whole(1_000, "the longest random wait"),
});

export type ToldElectionOptions = OptionsOf<typeof electionOptions>;

type State = ToldElection["state"];
type Ctx = Context<ToldElection>;

export function toldElection(given?: Partial<ToldElectionOptions>): Protocol<ToldElection> {
  const { terms, turnMs } = electionOptions.settle(given);

  function wait({ leads, isCandidate, left }: State, ctx: Ctx): void {
    if (leads || (isCandidate && left > 0)) ctx.setTimer("turn", [1, turnMs]);
  }

  function follow(state: State, leader: NodeId, epoch: number, ctx: Ctx): void {
    Object.assign(state, { promised: epoch, elected: { leader, epoch } });
    ctx.compact([{ type: "promised", epoch }]);
    ctx.emit({ type: "elected", leader, epoch });
  }

  function becomeLeader(state: State, ctx: Ctx): void {
    state.left -= 1;
    state.leads = true;
    const epoch = nextOf(state, ctx);
    follow(state, ctx.self, epoch, ctx);
    ctx.broadcast({ type: "coordinator", epoch });
  }

  function depose(state: State, ctx: Ctx): void {
    if (!state.leads) return;
    ctx.cancelTimer("turn");
    Object.assign(state, { leads: false, elected: null });
    ctx.emit({ type: "deposed", epoch: state.promised });
  }

  return {
    name: "told-election",
    init: () => ({ promised: 0, elected: null, leads: false, isCandidate: true, left: terms }),
    start: wait,
    receive: {
      coordinator(state, from, { epoch }, ctx) {
        const isKnown = epoch === state.promised && state.elected !== null;
        if (epoch < state.promised || isKnown) return; // Of a server that does not know yet that there is another.
        depose(state, ctx);
        follow(state, from, epoch, ctx);
        wait(state, ctx);
      },
    },
    timeout: {
      turn(state, ctx) {
        if (state.leads) depose(state, ctx);
        else becomeLeader(state, ctx);
        wait(state, ctx);
      },
    },
    command: {
      tell({ elected }, _command, ctx) {
        if (elected !== null) ctx.emit({ type: "elected", ...elected });
      },
      hear({ leads, promised }, { node }, ctx) {
        if (leads) ctx.send(node, { type: "coordinator", epoch: promised });
      },
      suspect() {},
      restore() {},
      resign(state, _command, ctx) {
        state.isCandidate = false;
        ctx.cancelTimer("turn");
        depose(state, ctx);
      },
      stand(state, _command, ctx) {
        state.isCandidate = true;
        wait(state, ctx);
      },
    },
    replay: {
      promised(state, { epoch }) {
        state.promised = epoch;
      },
    },
    shapes: {
      message: { coordinator: { epoch: natural } },
      command: {
        tell: {},
        hear: { node: natural },
        suspect: { node: natural },
        restore: { node: natural },
        resign: {},
        stand: {},
      },
      record: { promised: { epoch: natural } },
    },
    source: "what a lock may rely on of epoch-bully",
    assumes: [],
    properties: [],
    costs: [],
    view: ({ leads, elected, promised }) => ({
      role: leads ? "leader" : "follower",
      leader: elected?.leader ?? null,
      term: promised,
    }),
  };
}

/** The next of this node's own epochs: the lowest has 1 and then every N-th, the next 2, and so on. */
function nextOf({ promised }: State, { self, peers }: Ctx): number {
  const nodes = [self, ...peers].sort((a, b) => a - b);
  const own = nodes.indexOf(self) + 1;
  return own + nodes.length * Math.max(0, Math.floor((promised - own) / nodes.length) + 1);
}
