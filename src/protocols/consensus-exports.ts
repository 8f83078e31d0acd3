/** The consensus algorithms that `coterie/protocols` exports. */
export {
  type GeneralsOptions,
  type OralMessages,
  oralMessages,
} from "./consensus/byzantine-generals/byzantine-generals.ts";
export { type SignedMessages, signedMessages } from "./consensus/byzantine-generals/signed-messages.ts";
export { type CheapPaxos, type CheapPaxosOptions, cheapPaxos } from "./consensus/cheap-paxos/cheap-paxos.ts";
export { type LogClient, type LogClientOptions, logClient } from "./consensus/family/client.ts";
export {
  type Machine,
  type MachineKind,
  type MachineOptions,
  machine,
  machineKinds,
  type StateMachine,
  stateMachines,
} from "./consensus/family/machine.ts";
export type { Command, Members, ReplicatedLog } from "./consensus/family/replicated-log.ts";
export { type ReplicatedSystem, type ReplicatedSystemOptions, replicated } from "./consensus/family/systems.ts";
export { type FastPaxos, type FastPaxosOptions, fastPaxos } from "./consensus/fast-paxos/fast-paxos.ts";
export { type FloodSet, type FloodSetOptions, floodSet } from "./consensus/flood-set.ts";
export {
  type GeneralizedPaxos,
  type GeneralizedPaxosOptions,
  generalizedPaxos,
} from "./consensus/generalized-paxos/generalized-paxos.ts";
export {
  type InteractiveConsistency,
  type InteractiveConsistencyOptions,
  interactiveConsistency,
  signedInteractiveConsistency,
} from "./consensus/interactive-consistency.ts";
export { lockstep } from "./consensus/lockstep/lockstep.ts";
export { type Cheat, cheating, cheats, type Table, type Verdict, verdictOn } from "./consensus/lockstep/proofs.ts";
export { type Lockstep, type LockstepOptions, type Proof, proofShape } from "./consensus/lockstep/vocabulary.ts";
export { type MultiPaxos, type MultiPaxosOptions, multiPaxos } from "./consensus/multi-paxos/multi-paxos.ts";
export { type Ballot, type Paxos, type PaxosOptions, type Proposal, paxos } from "./consensus/paxos/paxos.ts";
export { type Pbft, type PbftOptions, pbft } from "./consensus/pbft/pbft.ts";
export { type Raft, type RaftOptions, raft } from "./consensus/raft/raft.ts";
export {
  type ReplicatedCommit,
  type ReplicatedCommitOptions,
  replicatedCommit,
} from "./consensus/replicated-commit.ts";
export { twoPhaseCommit } from "./consensus/two-phase-commit/two-phase-commit.ts";
export type { Transaction, TwoPhaseCommit, TwoPhaseCommitOptions } from "./consensus/two-phase-commit/vocabulary.ts";
