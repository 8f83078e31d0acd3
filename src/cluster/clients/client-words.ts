/**
 * The messages between a client and its member, each a JSON text. The client runs its session itself. The member proposes
 * its commands to the log, and sends the results.
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
  type ServiceEvent,
  type SessionId,
} from "../../protocols/service/coordination-service/operations.ts";
import type { Topic } from "../services/state/service.ts";

/** The protocol version. Members refuse clients of another version. */
export const CLIENT_VERSION = 1;
/** The path at which members accept WebSocket connections of clients. */
export const CLIENT_PATH = "/v1/client";

/**
 * `read` shared state; `write` it and hold locks; `admin`: also change the members and take snapshots. Each role includes
 * the ones before it.
 */
export const roles = ["read", "write", "admin"] as const;
/** The permissions of a client: each role includes the ones before it in `roles`. */
export type Role = (typeof roles)[number];

export type ClientWord =
  /** The first message. `client`: the id from an earlier connection. */
  | { type: "hello"; version: number; client: NodeId | null; token: string | null }
  /** A command of its session. It may be lost, so the client repeats it until it is answered. */
  | { type: "propose"; sequence: number; operation: string }
  | { type: "query"; id: number; query: Query }
  | { type: "follow" | "unfollow"; topic: Topic; name: string }
  | { type: "ping"; id: number };

export interface ClientAnswer {
  life: number;
  session: SessionId | null;
  round: number;
  first: number;
  replies: { revision: Revision; result: Result }[];
  isOver: boolean;
  isRestored: boolean;
}

export type MemberWord =
  | { type: "welcome"; version: number; member: NodeId; client: NodeId; role: Role }
  /** A long message is sent in fragments, one after another; each is a sign of life. */
  | { type: "fragment"; isLast: boolean; text: string }
  | ({ type: "answered"; isForgotten: boolean } & ClientAnswer)
  | { type: "read"; id: number; revision: Revision; answer: Answer }
  | { type: "refused"; id: number; code: string; reason: string }
  | { type: "told"; event: ToldClient }
  /** Messages may be missing between the earlier events and the next one. */
  | { type: "restored"; revision: Revision }
  | { type: "led"; leader: NodeId | null; term: number }
  | { type: "pong"; id: number }
  /** The last message. `isFinal`: other members would refuse the client too. */
  | { type: "farewell"; code: string; reason: string; isFinal: boolean };

/** The events of the log that a client receives: those about itself and about names that it follows. */
export type ToldClient = Extract<
  ServiceEvent,
  { type: "changed" | "opened" | "granted" | "released" | "item" | "passed" }
>;

/** The most names that a client may follow: maps that it watches, the map of endpoints, and elections. */
export const MAX_FOLLOWED = 1_000;
const MAX_TOKEN_BYTES = 4_096;
const MAX_NAME_BYTES = 256;
/** The limit of a command, the same as `MAX_PROPOSAL_BYTES` of the log. */
const MAX_COMMAND_BYTES = 65_536;
const MAX_REASON_BYTES = 4_096;
const MAX_REPLIES = 100_000;
/** The limits of a fragment and of a whole message, in UTF-16 units. */
export const FRAGMENT_CHARS = 65_536;
export const MAX_WORD_CHARS = 64 * 1024 * 1024;

/** The largest message of a client: a command as JSON, whose characters may all be escaped. */
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
 * Splits a long message into fragments; otherwise yields the message itself. A split may part a surrogate pair: JSON
 * preserves both halves.
 */
export function* inFragments(word: string): Generator<string> {
  if (word.length <= FRAGMENT_CHARS) return yield word;
  for (let at = 0; at < word.length; at += FRAGMENT_CHARS) {
    const isLast = at + FRAGMENT_CHARS >= word.length;
    yield JSON.stringify({ type: "fragment", isLast, text: word.slice(at, at + FRAGMENT_CHARS) } satisfies MemberWord);
  }
}

/** @returns the message, or a sentence that describes the fault. */
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
