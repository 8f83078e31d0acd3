/** `coterie/runtime`: protocols on real processes, and proofs of what they have caught. */
export { type HostedNode, type HostingOptions, host } from "../runtime/node.ts";
export { type ProofFile, proofFile, readProofFile, verdictOnFile } from "./proof-file.ts";
