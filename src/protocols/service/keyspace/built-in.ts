/** The keyspace among the state machines of the replicated service: every member has it, whether it serves etcd's API or not. */
import type { BuiltInMachine } from "../coordination-service/machines.ts";
import { MAX_OPERATION_BYTES, OWN_NAMES } from "../coordination-service/operations.ts";
import { utf8BytesOf } from "../coordination-service/state.ts";
import { answerQuestion, applyCommand, emptyKeyspace, type Keyspace } from "./keyspace-machine.ts";
import { copyOfKeyspace } from "./versions.ts";
import type { KeyspaceChange, KeyspaceCommand, KeyspaceQuestion, KeyspaceResponse } from "./vocabulary.ts";

export const KEYSPACE = `${OWN_NAMES}etcd`;

/** A command, and who waits for its answer: replicas hold an answer until it has come, so a long one is told where it is applied instead. */
export interface AskedCommand {
  readonly asker: string;
  readonly command: KeyspaceCommand;
}

export interface KeyspaceTold {
  readonly change: KeyspaceChange | null;
  /** Of a response that is too long to be held. */
  readonly long: { readonly asker: string; readonly response: KeyspaceResponse } | null;
}

/** The result of a command whose answer is long. */
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
