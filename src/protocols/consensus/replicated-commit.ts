/**
 * Atomic commit on a replicated log. In two-phase commit, a single coordinator stores the decision. Here, a majority of
 * nodes have it in their logs, so no participant blocks while a majority is alive. All nodes read the same log and
 * derive the decision from it.
 * After Gray & Lamport, "Consensus on Transaction Commit", ACM TODS 2006: each vote is decided by consensus. In the
 * paper, each vote has its own consensus instance. Here, one log orders all votes.
 *
 * Assumes   crash-recovery nodes with a journal, and a replicated log; for liveness, the assumptions of the log.
 * Safety    atomicity: no two nodes decide differently about a transaction. A transaction commits only if all nodes
 *           have voted yes.
 * Liveness  every transaction is decided at every node, even if its coordinator never recovers: any node may abort it.
 * Cost      N + 1 log commands: one to begin the transaction, and a vote from each node. On Raft, (N − 1)(2N + 3)
 *           messages if the leader begins the transaction.
 *
 *     begin 0.1   yes by 0   yes by 2   yes by 1   ⇒ commit, at the index of the last yes
 *     begin 0.1   yes by 2   abort                 ⇒ abort; a later yes changes nothing
 */
import type { Chunk } from "../../core/chunk.ts";
import type { Context, NodeId, Protocol } from "../../core/protocol.ts";
import { natural, oneOf, text } from "../../core/shape.ts";
import { count, type OptionsOf, optionTable, positive } from "../options.ts";
import type { System, WireTable } from "../system.ts";
import { type Command, commandShape, snapshotOf, snapshotShape, textOf } from "./family/replicated-log.ts";
import { raft } from "./raft/raft.ts";
import { atomicity, type Decision, type Transaction, unanimity } from "./two-phase-commit/vocabulary.ts";

/** The state of a transaction according to the log. */
interface Tally {
  transaction: Transaction;
  /** The nodes that have voted yes. */
  yes: NodeId[];
  decision: Decision | null;
}

type Vote = "yes" | "no";

/** Vocabulary of atomic commit on a replicated log. */
export type ReplicatedCommit = {
  state: {
    /** The number of times this node has started. It makes the names of its commands and transactions unique. */
    life: number;
    /** The number of commands proposed since the last start. */
    count: number;
    /** The number of transactions that have yet to begin, one after another. */
    wanted: number;
    isWilling: boolean;
    /** Commands that are not yet in the log. */
    pending: { sequence: number; operation: string }[];
    /** The index of the last applied log entry. */
    index: number;
    /** The open transactions and the last decided ones, keyed by name, such as `0.1`. */
    tallies: Record<string, Tally>;
    /** This node's votes, keyed by transaction name. It never votes on a transaction twice. */
    votes: Record<string, Vote>;
  };
  timer: "again" | "votes";
  command: /** Begins this many transactions, one after another. */
    | { type: "propose"; transactions: number }
    /** `refuse`: votes no from now on. `agree`: votes yes again. */
    | { type: "refuse" }
    | { type: "agree" }
    /** Commands that come from the log. */
    | { type: "decided"; index: number; command: Command }
    | { type: "installed"; index: number; snapshot: Chunk[] };
  event:
    | { type: "voted"; transaction: Transaction; vote: Vote }
    | { type: "decided"; transaction: Transaction; value: Decision }
    /** Events that go to the log. */
    | { type: "asked"; command: Command }
    | { type: "saved"; index: number; snapshot: Chunk[] };
  record: { type: "life"; life: number; votes: string } | { type: "voted"; name: string; vote: Vote };
};

const commitOptions = optionTable("replicated-commit", {
  votesMs: positive(
    2_000,
    "a transaction that still lacks votes after this time is aborted by the first node that notices",
  ),
  againMs: positive(1_000, "an entry is proposed again if it is not in the log after this time"),
  snapshotEvery: count(100, "the log may be compacted after this many entries"),
});

/** Options for `replicatedCommit()`. */
export type ReplicatedCommitOptions = OptionsOf<typeof commitOptions>;

/** The maximum number of waiting transactions. */
const MAX_WANTED = 1_000;
/** The number of decided transactions to keep. Votes on older ones are ignored. */
const REMEMBERED = 8;
/** The maximum number of commands between starts. A command's number is `life * MAX_COUNT` plus a counter. */
const MAX_COUNT = 1_000_000;

type State = ReplicatedCommit["state"];
type Ctx = Context<ReplicatedCommit>;

const nameOf = ({ coordinator, number }: Transaction): string => `${coordinator}.${number}`;
const isOpen = ({ decision }: Tally): boolean => decision === null;

/**
 * Creates atomic commit on a replicated log, without the log itself. @throws UsageError `bad-option` if an option is
 * unknown or out of range.
 */
export function replicatedCommit(given?: Partial<ReplicatedCommitOptions>): Protocol<ReplicatedCommit> {
  const { votesMs, againMs, snapshotEvery } = commitOptions.settle(given);

  /** Begins a new series of numbers, at each start and when the previous series is exhausted. */
  function beginLife(state: State, ctx: Ctx): void {
    state.life += 1;
    state.count = 0;
    ctx.compact([{ type: "life", life: state.life, votes: JSON.stringify(state.votes) }]);
  }

  /** Proposes a command repeatedly until it is in the log. */
  function want(state: State, operation: string, ctx: Ctx): void {
    if (state.pending.some((wanted) => wanted.operation === operation)) return;
    state.count += 1;
    if (state.count === MAX_COUNT) beginLife(state, ctx);
    const sequence = state.life * MAX_COUNT + state.count;
    state.pending.push({ sequence, operation });
    ctx.setTimer("again", againMs);
    ctx.emit({ type: "asked", command: { client: ctx.self, sequence, operation } });
  }

  function beginNext(state: State, ctx: Ctx): void {
    const isBusy = Object.values(state.tallies).some(
      (tally) => isOpen(tally) && tally.transaction.coordinator === ctx.self,
    );
    if (state.wanted === 0 || isBusy || state.pending.some(({ operation }) => operation.startsWith("begin"))) return;
    state.wanted -= 1;
    want(state, `begin ${ctx.self}.${state.life * MAX_COUNT + state.count + 1}`, ctx);
  }

  /**
   * Votes on a transaction. The vote is journaled before it is sent, so that the node votes the same way after a crash.
   */
  function vote(state: State, transaction: Transaction, ctx: Ctx): void {
    const name = nameOf(transaction);
    const known = state.votes[name];
    const own = known ?? (state.isWilling ? "yes" : "no");
    if (known === undefined) {
      state.votes[name] = own;
      ctx.persist({ type: "voted", name, vote: own });
      ctx.emit({ type: "voted", transaction, vote: own });
    }
    want(state, `${own} ${name}`, ctx);
    ctx.setTimer("votes", votesMs);
  }

  function decide(state: State, tally: Tally, decision: Decision, ctx: Ctx): void {
    tally.decision = decision;
    ctx.emit({ type: "decided", transaction: tally.transaction, value: decision });
    forgetOld(state);
    beginNext(state, ctx);
  }

  /** Applies one command from the log. The result is the same at all nodes. */
  function apply(state: State, { client, operation }: Command, ctx: Ctx): void {
    const [verb = "", name = ""] = operation.split(" ");
    const tally = state.tallies[name];
    if (verb === "begin") {
      const transaction = transactionNamed(name);
      if (tally !== undefined || transaction?.coordinator !== client) return; // Repeated or invalid.
      state.tallies[name] = { transaction, yes: [], decision: null };
      return vote(state, transaction, ctx);
    }
    if (tally === undefined || !isOpen(tally)) return; // Already decided, possibly long ago.
    if (verb === "no" || verb === "abort") return decide(state, tally, "abort", ctx);
    if (verb !== "yes") return; // An unknown command, which this release never sends.
    if (!tally.yes.includes(client)) tally.yes.push(client);
    if ([ctx.self, ...ctx.peers].every((node) => tally.yes.includes(node))) decide(state, tally, "commit", ctx);
  }

  function save({ index, tallies }: State, ctx: Ctx): void {
    if (index % snapshotEvery === 0) ctx.emit({ type: "saved", index, snapshot: snapshotOf(JSON.stringify(tallies)) });
  }

  return {
    name: "replicated-commit",
    init: () => ({
      life: 0,
      count: 0,
      wanted: 0,
      isWilling: true,
      pending: [],
      index: 0,
      tallies: {},
      votes: {},
    }),
    start: beginLife,
    timeout: {
      again(state, ctx) {
        if (state.pending.length === 0) return;
        ctx.setTimer("again", againMs);
        for (const { sequence, operation } of state.pending)
          ctx.emit({ type: "asked", command: { client: ctx.self, sequence, operation } });
      },
      votes(state, ctx) {
        const open = Object.keys(state.tallies).filter((name) => isOpen(state.tallies[name] as Tally));
        for (const name of open) want(state, `abort ${name}`, ctx);
      },
    },
    command: {
      propose(state, { transactions }, ctx) {
        state.wanted = Math.min(state.wanted + transactions, MAX_WANTED);
        beginNext(state, ctx);
      },
      refuse(state) {
        state.isWilling = false;
      },
      agree(state) {
        state.isWilling = true;
      },
      decided(state, { index, command }, ctx) {
        if (index <= state.index) return; // The log has emitted this entry again.
        state.index = index;
        const { client, operation } = command;
        if (client === ctx.self) state.pending = state.pending.filter((wanted) => wanted.operation !== operation);
        apply(state, command, ctx);
        save(state, ctx);
      },
      installed(state, { index, snapshot }, ctx) {
        if (index <= state.index) return;
        const before = state.tallies;
        state.index = index;
        state.tallies = JSON.parse(textOf(snapshot)) as State["tallies"];
        for (const name of Object.keys(state.votes)) if (state.tallies[name] === undefined) delete state.votes[name];
        for (const [name, tally] of Object.entries(state.tallies)) {
          const { transaction, decision } = tally;
          if (decision === null) vote(state, transaction, ctx);
          else if (before[name] === undefined || isOpen(before[name]))
            ctx.emit({ type: "decided", transaction, value: decision });
        }
      },
    },
    replay: {
      life(state, { life, votes }) {
        state.life = life;
        state.votes = JSON.parse(votes) as State["votes"];
      },
      voted(state, { name, vote: own }) {
        state.votes[name] = own;
      },
    },
    ...declarations,
  };
}

function transactionNamed(name: string): Transaction | null {
  const [, coordinator, number] = /^(\d{1,15})\.(\d{1,15})$/.exec(name) ?? [];
  return number === undefined ? null : { coordinator: Number(coordinator), number: Number(number) };
}

/** Drops old decided transactions but keeps open ones. Each coordinator has at most one open transaction. */
function forgetOld(state: State): void {
  const decided = Object.keys(state.tallies).filter((name) => !isOpen(state.tallies[name] as Tally));
  for (const name of decided.slice(0, -REMEMBERED)) {
    delete state.tallies[name];
    delete state.votes[name];
  }
}

const openTallies = ({ tallies }: State): number => Object.values(tallies).filter(isOpen).length;

const declarations: Pick<
  Protocol<ReplicatedCommit>,
  "shapes" | "source" | "assumes" | "properties" | "costs" | "view"
> = {
  shapes: {
    command: {
      propose: { transactions: natural },
      refuse: {},
      agree: {},
      decided: { index: natural, command: commandShape },
      installed: { index: natural, snapshot: snapshotShape },
    },
    record: {
      life: { life: natural, votes: text(1_048_576) },
      voted: { name: text(64), vote: oneOf("yes", "no") },
    },
  },
  source: "after Gray & Lamport, ACM TODS 2006",
  assumes: ["crash-recovery nodes with a journal", "a replicated log", "for liveness: the assumptions of the log"],
  properties: [
    atomicity,
    unanimity,
    {
      name: "termination",
      claim: "every transaction that a node knows of is eventually decided at that node",
      when: "leadsTo",
      given: ({ state }, node) => openTallies(state(node)) > 0,
      holds: ({ state }, node) => openTallies(state(node)) === 0,
    },
  ] as Protocol<ReplicatedCommit>["properties"],
  costs: [
    {
      when: "one transaction begun by the Raft leader, without heartbeats",
      messages: (nodes) => (nodes - 1) * (2 * nodes + 3),
    },
  ],
  view: (state) => ({ role: openTallies(state) === 0 ? "participant" : "voting" }),
};

const wires: WireTable = {
  commit: {
    asked: ({ command }, give) => give("log", { type: "propose", command }),
    saved: ({ index, snapshot }, give) => give("log", { type: "compact", index, snapshot }),
  },
  log: {
    decided: ({ index, command }, give) => give("commit", { type: "decided", index, command }),
    installed: ({ index, snapshot }, give) => give("commit", { type: "installed", index, snapshot }),
  },
};

/** The system that runs replicated commit on a Raft log. */
export const replicatedCommitSystem: System = {
  parts: { commit: replicatedCommit, log: raft },
  wires,
  algorithm: "commit",
};
