/**
 * Run any protocol on real processes, and verify the proofs that Byzantine fault-tolerant protocols leave.
 *
 * @module coterie/runtime
 */
export { type HostedNode, type HostingOptions, host } from "../runtime/node.ts";
export { type ProofFile, proofFile, readProofFile, verdictOnFile } from "./proof-file.ts";
