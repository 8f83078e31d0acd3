/**
 * What a client that is no member and the member that it speaks to say to each other, each as one text of JSON. The client runs its
 * session itself; the member puts its commands to the log, and tells what came of them.
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

/** Of the messages between clients and members. Members refuse clients of another version. */
export const CLIENT_VERSION = 1;
/** Where members take clients by WebSocket. */
export const CLIENT_PATH = "/v1/client";

/** `read` what there is; `write`, and hold locks; `admin`: also see who does. Each may do what stands before it. */
export const roles = ["read", "write", "admin"] as const;
export type Role = (typeof roles)[number];

export type ClientWord =
  /** The first. `client`: the number that it has had already, on another connection. */
  | { type: "hello"; version: number; client: NodeId | null; token: string | null }
  /** A command of its session. It may be lost: it is said again until it is answered. */
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
  /** A word that is long comes in fragments, one behind the other, so that each says that its sender is there. */
  | { type: "fragment"; isLast: boolean; text: string }
  | ({ type: "answered"; isForgotten: boolean } & ClientAnswer)
  | { type: "read"; id: number; revision: Revision; answer: Answer }
  | { type: "refused"; id: number; code: string; reason: string }
  | { type: "told"; event: ToldClient }
  /** What was told so far may have a gap before what is told next. */
  | { type: "restored"; revision: Revision }
  | { type: "led"; leader: NodeId | null; term: number }
  | { type: "pong"; id: number }
  /** The last word. `isFinal`: it would be the same elsewhere. */
  | { type: "farewell"; code: string; reason: string; isFinal: boolean };

/** Of what the log does: what concerns the client, or what it follows. */
export type ToldClient = Extract<
  ServiceEvent,
  { type: "changed" | "opened" | "granted" | "released" | "item" | "passed" }
>;

/** What one client follows: maps that it watches, where members serve clients, and elections. */
export const MAX_FOLLOWED = 1_000;
const MAX_TOKEN_BYTES = 4_096;
const MAX_NAME_BYTES = 256;
/** Of a command, as `MAX_PROPOSAL_BYTES` in the log. */
const MAX_COMMAND_BYTES = 65_536;
const MAX_REASON_BYTES = 4_096;
const MAX_REPLIES = 100_000;
/** Of a fragment, and of a word that is put together of fragments, in UTF-16 units. */
export const FRAGMENT_CHARS = 65_536;
export const MAX_WORD_CHARS = 64 * 1024 * 1024;

/** What a client may send at once: a command in JSON, in which each character may be escaped. */
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

/** Fragments of a word that is long; otherwise the word alone. A cut may part two halves of a character: JSON keeps both. */
export function* inFragments(word: string): Generator<string> {
  if (word.length <= FRAGMENT_CHARS) return yield word;
  for (let at = 0; at < word.length; at += FRAGMENT_CHARS) {
    const isLast = at + FRAGMENT_CHARS >= word.length;
    yield JSON.stringify({ type: "fragment", isLast, text: word.slice(at, at + FRAGMENT_CHARS) } satisfies MemberWord);
  }
}

/** @returns the word, or what is wrong with it as a sentence. */
export function readWord<T>(shape: Shape<T>, said: string): { readonly word: T } | { readonly fault: string } {
  let word: unknown;
  try {
    word = JSON.parse(said);
  } catch {
    return { fault: "expected a text of JSON, and it does not parse" };
  }
  const fault = problem(shape, word, "message");
  return fault === null ? { word: word as T } : { fault };
}
