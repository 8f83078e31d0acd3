/** Coterie for a Node process: one member of a cluster, its config, and the contract of what it runs. */
export { type ClusterConfig, parseConfig, readConfig } from "./cluster/config.ts";
export { type Member, type MemberOptions, runMember } from "./cluster/member.ts";
export * from "./core/index.ts";
export { createLog, type Log, type LogLevel } from "./runtime/log.ts";
