/**
 * The keyspace as one of the replicated service's built-in state machines. Every member has it, even members that do
 * not serve the etcd API.
 */
import type { BuiltInMachine } from "../coordination-service/machines.ts";
import { MAX_OPERATION_BYTES, OWN_NAMES } from "../coordination-service/operations.ts";
import { utf8BytesOf } from "../coordination-service/state.ts";
import { answerQuestion, applyCommand, emptyKeyspace, type Keyspace } from "./keyspace-machine.ts";
import { copyOfKeyspace } from "./versions.ts";
import type { KeyspaceChange, KeyspaceCommand, KeyspaceQuestion, KeyspaceResponse } from "./vocabulary.ts";

/** The machine's name. */
export const KEYSPACE = `${OWN_NAMES}etcd`;

/**
 * A command and the caller that is waiting for its answer. Replicas retain answers until the session acknowledges them,
 * so a long answer is not retained, but emitted when the command is applied.
 */
export interface AskedCommand {
  readonly asker: string;
  readonly command: KeyspaceCommand;
}

/** A change that every replica reports. */
export interface KeyspaceTold {
  readonly change: KeyspaceChange | null;
  /** A response that is too long to retain. */
  readonly long: { readonly asker: string; readonly response: KeyspaceResponse } | null;
}

/** The result of a command with a long answer. */
export const LONG = "long";

/** The built-in machine. */
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
