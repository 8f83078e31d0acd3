/** The parts of the coordination service that `coterie/protocols` exports. */
export {
  type CoordinationService,
  type CoordinationServiceOptions,
  coordinationService,
  type ServiceParts,
} from "./service/coordination-service/coordination-service.ts";
export type { MachineDefinition, MachineDefinitions } from "./service/coordination-service/machines.ts";
export * from "./service/coordination-service/operations.ts";
export type { Replica, ReplicaOptions } from "./service/coordination-service/replica.ts";
export type { SessionOptions } from "./service/coordination-service/session-options.ts";
export type { MemberSession } from "./service/coordination-service/session-vocabulary.ts";
