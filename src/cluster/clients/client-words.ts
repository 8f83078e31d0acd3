/**
 * The messages between a client and its member, each as JSON text. The client runs its own session. The member proposes
 * the client's commands to the log and sends the results.
 */
import type { NodeId } from "../../core/protocol.ts";
import {
  boolean,
  list,
  natural,
  nullable,
  oneOf,
  problem,
  type Shape,
  struct,
  text,
  variants,
} from "../../core/shape.ts";
import {
  type Answer,
  answerShape,
  MAX_VALUE_BYTES,
  type Query,
  queryShape,
  type Result,
  type Revision,
  resultShape,
  type SessionId,
} from "../../protocols/service/coordination-service/operations.ts";
import type { Told, Topic } from "../services/state/service.ts";

/** The protocol version. Members refuse clients with a different version. */
export const CLIENT_VERSION = 1;
/** The path at which members accept WebSocket connections from clients. */
export const CLIENT_PATH = "/v1/client";

/**
 * The roles of clients. `read` allows reading shared state. `write` also allows changing it and holding locks. `admin`
 * also allows changing the members and taking snapshots.
 */
export const roles = ["read", "write", "admin"] as const;
/** A client's role. Each role includes the permissions of the ones before it in `roles`. */
export type Role = (typeof roles)[number];

/** A message from a client to its member. */
export type ClientWord =
  /** The first message. `client` is the id from an earlier connection, if any. */
  | { type: "hello"; version: number; client: NodeId | null; token: string | null }
  /** A command from the client's session. It may be lost, so the client repeats it until it is answered. */
  | { type: "propose"; sequence: number; operation: string }
  | { type: "query"; id: number; query: Query }
  | { type: "follow" | "unfollow"; topic: Topic; name: string }
  | { type: "ping"; id: number };

/** The outcome of a client's operation. */
export interface ClientAnswer {
  life: number;
  session: SessionId | null;
  round: number;
  first: number;
  replies: { revision: Revision; result: Result }[];
  isOver: boolean;
  isRestored: boolean;
}

/** A message from a member to its client. */
export type MemberWord =
  | { type: "welcome"; version: number; member: NodeId; client: NodeId; role: Role }
  /** One part of a long message. The parts are sent in order, and each counts as a sign of life. */
  | { type: "fragment"; isLast: boolean; text: string }
  | ({ type: "answered"; isForgotten: boolean } & ClientAnswer)
  | { type: "read"; id: number; revision: Revision; answer: Answer }
  | { type: "refused"; id: number; code: string; reason: string }
  | { type: "told"; event: ToldClient }
  /** Events between the previous message and the next one may be missing. */
  | { type: "restored"; revision: Revision }
  | { type: "led"; leader: NodeId | null; term: number }
  | { type: "pong"; id: number }
  /** The last message. `isFinal` means that other members would refuse the client too. */
  | { type: "farewell"; code: string; reason: string; isFinal: boolean };

/** The log events that a client receives: those about itself and about the names that it follows. */
export type ToldClient = Extract<Told, { type: "changed" | "opened" | "granted" | "released" | "item" | "passed" }>;

/** The maximum number of names that a client can follow: maps that it watches, the endpoint map, and elections. */
export const MAX_FOLLOWED = 1_000;
const MAX_TOKEN_BYTES = 4_096;
const MAX_NAME_BYTES = 256;
/** The maximum size of a command, which is the same as the log's `MAX_PROPOSAL_BYTES`. */
const MAX_COMMAND_BYTES = 65_536;
const MAX_REASON_BYTES = 4_096;
const MAX_REPLIES = 100_000;
/** The maximum length of a fragment, in UTF-16 units. */
export const FRAGMENT_CHARS = 65_536;
/** The maximum length of a message after its fragments have been joined, in UTF-16 units. */
export const MAX_WORD_CHARS = 64 * 1024 * 1024;

/** The size of the largest message from a client: a command as JSON. Every character may be escaped. */
export const MAX_CLIENT_WORD_BYTES = 400_000;

const name = text(MAX_NAME_BYTES);
const followed = { topic: oneOf<Topic>("map", "grants"), name };

export const clientWordShape: Shape<ClientWord> = variants<ClientWord>({
  hello: { version: natural, client: nullable(natural), token: nullable(text(MAX_TOKEN_BYTES)) },
  propose: { sequence: natural, operation: text(MAX_COMMAND_BYTES) },
  query: { id: natural, query: queryShape },
  follow: followed,
  unfollow: followed,
  ping: { id: natural },
} as never);

const grantFields = { name, session: natural, token: natural };
const toldShape: Shape<ToldClient> = variants<ToldClient>({
  changed: { revision: natural, map: name, key: text(MAX_COMMAND_BYTES), value: nullable(text(MAX_VALUE_BYTES)) },
  opened: { session: natural, member: natural, life: natural },
  granted: { ...grantFields, wait: natural, note: text(MAX_REASON_BYTES) },
  released: grantFields,
  item: { ...grantFields, wait: natural, value: text(MAX_VALUE_BYTES) },
  passed: {
    name,
    generation: natural,
    arrivals: list(struct<{ session: number; wait: number }>({ session: natural, wait: natural }), MAX_REPLIES),
  },
});

export const memberWordShape: Shape<MemberWord> = variants<MemberWord>({
  fragment: { isLast: boolean, text: text(3 * FRAGMENT_CHARS) },
  welcome: { version: natural, member: natural, client: natural, role: oneOf(...roles) },
  answered: {
    life: natural,
    session: nullable(natural),
    round: natural,
    first: natural,
    replies: list(
      struct<{ revision: number; result: Result }>({ revision: natural, result: resultShape }),
      MAX_REPLIES,
    ),
    isOver: boolean,
    isRestored: boolean,
    isForgotten: boolean,
  },
  read: { id: natural, revision: natural, answer: answerShape },
  refused: { id: natural, code: text(MAX_NAME_BYTES), reason: text(MAX_REASON_BYTES) },
  told: { event: toldShape },
  restored: { revision: natural },
  led: { leader: nullable(natural), term: natural },
  pong: { id: natural },
  farewell: { code: text(MAX_NAME_BYTES), reason: text(MAX_REASON_BYTES), isFinal: boolean },
});

/**
 * Splits a long message into fragments. Yields a short message unchanged. A split may separate a surrogate pair, but
 * JSON preserves both halves.
 */
export function* inFragments(word: string): Generator<string> {
  if (word.length <= FRAGMENT_CHARS) return yield word;
  for (let at = 0; at < word.length; at += FRAGMENT_CHARS) {
    const isLast = at + FRAGMENT_CHARS >= word.length;
    yield JSON.stringify({ type: "fragment", isLast, text: word.slice(at, at + FRAGMENT_CHARS) } satisfies MemberWord);
  }
}

/** @returns the message, or a sentence that describes the fault */
export function readWord<T>(shape: Shape<T>, said: string): { readonly word: T } | { readonly fault: string } {
  let word: unknown;
  try {
    word = JSON.parse(said);
  } catch {
    return { fault: "expected valid JSON" };
  }
  const fault = problem(shape, word, "message");
  return fault === null ? { word: word as T } : { fault };
}
