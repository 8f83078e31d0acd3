/**
 * The names that members reserve in the log, such as the endpoint map. If a client could change this map, it could make
 * all other clients send their tokens to an address of its choice.
 */
import { UsageError, unexpected } from "../../core/errors.ts";
import { concernsOwnNames } from "../../protocols/service/coordination-service/large-operations.ts";
import {
  ENDPOINTS,
  isOwn,
  type Operation,
  OWN_NAMES,
  type Query,
  type SessionOperation,
} from "../../protocols/service/coordination-service/operations.ts";
import type { Service } from "../services/state/service.ts";

/**
 * Whether a client may submit this operation, based on the names in it. `release` may have a reserved name, since the
 * client holds nothing under that name.
 */
export function isOfClients(operation: Operation | SessionOperation): boolean {
  if ("name" in operation && operation.type !== "release" && isOwn(operation.name)) return false;
  return !concernsOwnNames(operation as Operation);
}

/** Whether a client may read this. The endpoint map is the only reserved map that clients can read. */
export function mayBeRead(query: Query): boolean {
  if (query.type === "readKeys") return false;
  return !("map" in query && isOwn(query.map)) || query.map === ENDPOINTS;
}

/** Wraps the log for HTTP callers. Refuses operations on reserved names. */
export const forCallers = (service: Pick<Service, "call" | "submit">): Pick<Service, "call" | "submit"> => ({
  call: (call, answer) => service.call(call, answer),
  submit: (operation, isWanted) => {
    if (isOfClients(operation)) return service.submit(operation, isWanted);
    throw new UsageError("bad-name", unexpected("names", `ones that do not begin with ${OWN_NAMES}`, operation.type));
  },
});
