/**
 * The contract that every protocol implements, and the building blocks for protocols.
 *
 * @module coterie/core
 */
export * from "./assemble.ts";
export * from "./chunk.ts";
export * from "./clocks.ts";
export * from "./errors.ts";
export * from "./per-node.ts";
export * from "./plain.ts";
export * from "./protocol.ts";
export * from "./quorums.ts";
export * from "./random.ts";
export * from "./shape.ts";
export * from "./signatures.ts";
export * from "./step.ts";
