/**
 * What members keep for themselves in the log, such as where they serve clients. If a client could change that, it would have all others
 * send their tokens to a place of its choice.
 */
import { UsageError, unexpected } from "../../core/errors.ts";
import { concernsOwnNames } from "../../protocols/service/coordination-service/large-operations.ts";
import {
  ENDPOINTS,
  type Operation,
  OWN_NAMES,
  type Query,
  type SessionOperation,
} from "../../protocols/service/coordination-service/operations.ts";
import type { Service } from "../services/state/service.ts";

const isOwn = (name: string): boolean => name.startsWith(OWN_NAMES);

/** Whether a client may put this to the log as far as names go. What it releases may have such a name: it holds nothing of it. */
export function isOfClients(operation: Operation | SessionOperation): boolean {
  if ("name" in operation && operation.type !== "release" && isOwn(operation.name)) return false;
  return !concernsOwnNames(operation as Operation);
}

/** Whether a client may read this: of members' own maps that which says where clients are served. */
export function mayBeRead(query: Query): boolean {
  if (query.type === "ask") return !isOwn(query.machine);
  return !("map" in query && isOwn(query.map)) || query.map === ENDPOINTS;
}

/** The log as callers over HTTP have it, whatever their request has been read as. */
export const forCallers = (service: Pick<Service, "call" | "submit">): Pick<Service, "call" | "submit"> => ({
  call: (call, answer) => service.call(call, answer),
  submit: (operation, isWanted) => {
    if (isOfClients(operation)) return service.submit(operation, isWanted);
    throw new UsageError("bad-name", unexpected("names", `none that begin with ${OWN_NAMES}`, operation.type));
  },
});
