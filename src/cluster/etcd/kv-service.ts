/** etcd's service KV. */
import type { RequestOp } from "../../protocols/service/keyspace/vocabulary.ts";
import { atLeastZero, deleteOf, type Header, putOf, rangeOf, txnOf, wireResponse } from "./calls.ts";
import { EtcdError } from "./errors.ts";
import { type Method, unary } from "./grpc-door.ts";
import type { KeyspaceClient } from "./keyspace-client.ts";
import * as of from "./messages.ts";

/** Returns the header of a response. */
export type HeaderOf = (revision: number) => Header;

export function kvService(keyspace: KeyspaceClient, headerOf: HeaderOf): Record<string, Method> {
  const execute = async (request: Exclude<RequestOp, { type: "range" }>): Promise<object> => {
    const response = await keyspace.execute(request);
    return wireResponse(response, headerOf(response.revision));
  };
  return {
    Range: unary(of.rangeRequest, of.rangeResponse, async (request) => {
      const response = await keyspace.ask(rangeOf(request));
      return wireResponse(response, headerOf(response.revision));
    }),
    Put: unary(of.putRequest, of.putResponse, (request) => execute(putOf(request))),
    DeleteRange: unary(of.deleteRangeRequest, of.deleteRangeResponse, (request) => execute(deleteOf(request))),
    Txn: unary(of.txnRequest, of.txnResponse, (request) => execute(txnOf(request))),
    Compact: unary(of.compactionRequest, of.headerOnly, async ({ revision }) => {
      const compact = keyspace.execute({ type: "compact", revision: atLeastZero(revision) });
      const response = await (revision === 0 ? compact.catch(orNothing) : compact);
      return { header: headerOf(response.revision) };
    }),
  };
}

/**
 * Accepts a compaction at revision 0, which drops nothing. etcd accepts it until a later revision has been compacted.
 */
function orNothing(error: unknown): { revision: number } {
  if (error instanceof EtcdError && error.is("compacted") && error.compacted === 0) return error;
  throw error;
}
