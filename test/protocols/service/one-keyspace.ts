/** A keyspace alone, to which tests apply commands. */
import { answerQuestion, applyCommand } from "../../../src/protocols/service/keyspace/commands.ts";
import { bound, emptyKeyspace, type Keyspace } from "../../../src/protocols/service/keyspace/store.ts";
import type {
  KeyspaceCommand,
  KeyspaceQuestion,
  KeyspaceResponse,
  RangeRequest,
} from "../../../src/protocols/service/keyspace/vocabulary.ts";

export const ROOM = 1_000_000;
export const HISTORY = 1_000_000;

export function keyspace() {
  const space = emptyKeyspace();
  return {
    space,
    does(command: KeyspaceCommand, room = ROOM): KeyspaceResponse {
      const { response } = applyCommand(space, command, room);
      bound(space, HISTORY);
      return response;
    },
    applies: (command: KeyspaceCommand) => applyCommand(space, command, ROOM),
    finds: (question: KeyspaceQuestion): KeyspaceResponse => answerQuestion(space, question),
    values: (request: RangeRequest): string[] => valuesIn(space, request),
  };
}

function valuesIn(space: Keyspace, request: RangeRequest): string[] {
  const response = answerQuestion(space, request);
  return response.type === "range" ? response.kvs.map(({ key, value }) => `${key}=${value}`) : [codeOf(response)];
}

/** Returns the code of a refusal, or the type of another response. */
export const codeOf = (response: KeyspaceResponse): string =>
  response.type === "refused" ? response.code : response.type;
