/** The commands, by name. The module of a command is loaded when the command is chosen. */
import type { Command } from "commander";
import type { Invocation } from "./invocation.ts";

interface CommandModule {
  /** Adds options, arguments and the action. */
  declare(command: Command, invocation: Invocation): void;
}

interface Listed {
  /** What follows the name in the list of commands. */
  readonly usage: string;
  readonly summary: string;
  readonly load: () => Promise<CommandModule>;
}

export const commands: Readonly<Record<string, Listed>> = {
  up: {
    usage: "[options]",
    summary: "start a local cluster of real processes, and the studio",
    load: () => import("./up.ts"),
  },
  node: {
    usage: "[options]",
    summary: "run one member of a cluster by itself",
    load: () => import("./node.ts"),
  },
  studio: {
    usage: "[options]",
    summary: "the laboratory, or the studio over members that run elsewhere",
    load: () => import("./studio.ts"),
  },
  status: {
    usage: "[options]",
    summary: "who is alive in a cluster, and who leads",
    load: () => import("./status.ts"),
  },
  doctor: {
    usage: "[options]",
    summary: "look for what may be wrong with a cluster",
    load: () => import("./doctor.ts"),
  },
  member: {
    usage: "",
    summary: "list, add, remove, move members, or mend one that has lost its folder",
    load: () => import("./member.ts"),
  },
  transfer: {
    usage: "[options] <id>",
    summary: "have a member lead the replicated log",
    load: () => import("./transfer.ts"),
  },
  snapshot: {
    usage: "",
    summary: "save what members share, or found a new cluster from it",
    load: () => import("./snapshot.ts"),
  },
  cert: {
    usage: "[options] [ids...]",
    summary: "make certificates for the members and clients of a cluster",
    load: () => import("./cert.ts"),
  },
  get: {
    usage: "[options] <map> [key]",
    summary: "read a key of a map that the cluster shares, or many",
    load: () => import("./get.ts"),
  },
  put: {
    usage: "[options] <map> <key> [value]",
    summary: "put a value under a key of a map",
    load: () => import("./put.ts"),
  },
  del: {
    usage: "[options] <map> <key>",
    summary: "delete a key of a map",
    load: () => import("./del.ts"),
  },
  watch: {
    usage: "[options] <map> [key]",
    summary: "print every change of a map as it happens",
    load: () => import("./watch.ts"),
  },
  txn: {
    usage: "[options] <file>",
    summary: "read and write several keys at one moment",
    load: () => import("./txn.ts"),
  },
  counter: {
    usage: "[options] <name>",
    summary: "print a counter, add to it, or set it",
    load: () => import("./counter.ts"),
  },
  lock: {
    usage: "[options] <name> <command...>",
    summary: "run a command while holding a lock of the cluster",
    load: () => import("./lock.ts"),
  },
  elect: {
    usage: "[options] <name> <command...>",
    summary: "run a command while this member leads",
    load: () => import("./elect.ts"),
  },
  check: {
    usage: "[options] <protocol>",
    summary: "explore every behaviour of a protocol within bounds",
    load: () => import("./check.ts"),
  },
  "check-history": {
    usage: "[options] <file>",
    summary: "check a recorded history for linearizability",
    load: () => import("./check-history.ts"),
  },
  "verify-proof": {
    usage: "[options] <file>",
    summary: "verify a proof that a player of a lockstep game has cheated",
    load: () => import("./verify-proof.ts"),
  },
  sim: {
    usage: "[options] [protocol|file]",
    summary: "run a protocol or a scenario in virtual time",
    load: () => import("./sim.ts"),
  },
  campaign: {
    usage: "[options] <file>",
    summary: "make many runs of experiments, on many threads or machines",
    load: () => import("./campaign.ts"),
  },
  trace: {
    usage: "[options] <file>",
    summary: "show a recorded run, draw it, or hand it to other tools",
    load: () => import("./trace.ts"),
  },
  protocols: {
    usage: "[options] [name]",
    summary: "the algorithms, what they guarantee and what they cost",
    load: () => import("./protocols.ts"),
  },
  new: {
    usage: "[options] <family> <name>",
    summary: "write the files of a new algorithm, to fill in",
    load: () => import("./new-algorithm.ts"),
  },
  "voting-sets": {
    usage: "[options] [nodes]",
    summary: "voting sets for Maekawa's mutual exclusion, made or checked",
    load: () => import("./voting-sets.ts"),
  },
  bench: {
    usage: "[name] [options...]",
    summary: "measure Coterie beside its peers",
    load: () => import("./bench.ts"),
  },
};
