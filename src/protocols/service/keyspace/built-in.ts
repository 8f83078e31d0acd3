/**
 * The keyspace as a built-in state machine of the replicated service. Every member has it, even if it does not serve
 * etcd's API.
 */
import type { BuiltInMachine } from "../coordination-service/machines.ts";
import { MAX_OPERATION_BYTES, OWN_NAMES } from "../coordination-service/operations.ts";
import { utf8BytesOf } from "../coordination-service/state.ts";
import { answerQuestion, applyCommand, emptyKeyspace, type Keyspace } from "./keyspace-machine.ts";
import { copyOfKeyspace } from "./versions.ts";
import type { KeyspaceChange, KeyspaceCommand, KeyspaceQuestion, KeyspaceResponse } from "./vocabulary.ts";

export const KEYSPACE = `${OWN_NAMES}etcd`;

/**
 * A command with the caller that waits for its answer. Replicas keep answers until the session acknowledges them, so a
 * long one is reported where the command is applied instead.
 */
export interface AskedCommand {
  readonly asker: string;
  readonly command: KeyspaceCommand;
}

export interface KeyspaceTold {
  readonly change: KeyspaceChange | null;
  /** A response that is too long to keep. */
  readonly long: { readonly asker: string; readonly response: KeyspaceResponse } | null;
}

/** The result of a command with a long answer. */
export const LONG = "long";

export const keyspaceMachine: BuiltInMachine = {
  init: emptyKeyspace,
  run(state, text, room) {
    const { asker, command } = JSON.parse(text) as AskedCommand;
    const { response, change } = applyCommand(state as Keyspace, command, room);
    const result = JSON.stringify(response);
    const isLong = utf8BytesOf(result) > MAX_OPERATION_BYTES;
    const told: KeyspaceTold = { change, long: isLong ? { asker, response } : null };
    return { result: isLong ? LONG : result, change: change !== null || isLong ? told : null };
  },
  ask: (state, question) => JSON.stringify(answerQuestion(state as Keyspace, JSON.parse(question) as KeyspaceQuestion)),
  bytesOf: (state) => (state as Keyspace).bytes,
  copyOf: (state) => copyOfKeyspace(state as Keyspace),
};
