/** What `coterie/protocols` has of consensus. */
export { type OralMessages, oralMessages } from "./byzantine-generals/byzantine-generals.ts";
export type { GeneralsOptions } from "./byzantine-generals/generals.ts";
export { type SignedMessages, signedMessages } from "./byzantine-generals/signed-messages.ts";
export { type CheapPaxos, type CheapPaxosOptions, cheapPaxos } from "./cheap-paxos/cheap-paxos.ts";
export { type LogClient, type LogClientOptions, logClient } from "./family/client.ts";
export { type Machine, type MachineOptions, machine } from "./family/machine.ts";
export type { Command, Members, ReplicatedLog } from "./family/replicated-log.ts";
export { type MachineKind, machineKinds, type StateMachine, stateMachines } from "./family/state-machines.ts";
export { type ReplicatedSystem, type ReplicatedSystemOptions, replicated } from "./family/systems.ts";
export { type FastPaxos, type FastPaxosOptions, fastPaxos } from "./fast-paxos/fast-paxos.ts";
export {
  type GeneralizedPaxos,
  type GeneralizedPaxosOptions,
  generalizedPaxos,
} from "./generalized-paxos/generalized-paxos.ts";
export { lockstep } from "./lockstep/lockstep.ts";
export type { LockstepOptions } from "./lockstep/options.ts";
export { type Table, type Verdict, verdictOn } from "./lockstep/proofs.ts";
export type { Lockstep, Proof } from "./lockstep/vocabulary.ts";
export { type MultiPaxos, type MultiPaxosOptions, multiPaxos } from "./multi-paxos/multi-paxos.ts";
export type { PaxosOptions } from "./paxos/options.ts";
export { paxos } from "./paxos/paxos.ts";
export type { Ballot, Paxos, Proposal } from "./paxos/vocabulary.ts";
export { type Pbft, type PbftOptions, pbft } from "./pbft/pbft.ts";
export { type Raft, type RaftOptions, raft } from "./raft/raft.ts";
export {
  type ReplicatedCommit,
  type ReplicatedCommitOptions,
  replicatedCommit,
} from "./replicated-commit.ts";
export type { TwoPhaseCommitOptions } from "./two-phase-commit/options.ts";
export { twoPhaseCommit } from "./two-phase-commit/two-phase-commit.ts";
export type { Transaction, TwoPhaseCommit } from "./two-phase-commit/vocabulary.ts";
